"""A cost below which no plan of a program can go.

Every array is charged the moves to one of its uses, the next; for its other uses it is there as they need it.
What is left is a forest of statements, each of whose arrays is used once, and its best plan is found as that
of a chain is: by the least cost of having each array in each state, from statement to statement. Sums of any
operand may be pending over any axes, so that what another use has made of an array is counted on as well.
"""

from __future__ import annotations

from shardviz.planner.programs.array_uses import ArrayUses
from shardviz.planner.programs.copies import ArrayCopies
from shardviz.planner.programs.statement_choices import StatementForm
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import ArrayPaths
from shardviz.planner.states.prices import Cost


def lower_bound(uses: ArrayUses) -> Cost:
    """The cost of the best plan of the forest."""
    choices, total = uses.choices, 0
    waiting: dict[str, ArrayPaths] = {}
    anywhere = frozenset(choices.pool.sizes)
    for part, form, first in zip(uses.problem.parts, uses.forms, uses.first, strict=True):
        names = [operand.name for operand in part.operands]
        here = {name: waiting.pop(name) for name in dict.fromkeys(names) if name in waiting}
        sources: dict[State, Cost] = {}
        for split, work in choices.splits(form, (anywhere,) * len(names)):
            cost = work
            for place, needed in enumerate(split.operands):
                if form.same[place] == place:
                    moved = _moved(uses, form, place, here.get(names[place]), first[place], needed)
                    if moved is None:
                        break
                    cost += moved
            else:
                result = split.result
                if form.wanted is not None:
                    cost, result = cost + choices.constraint(form, result), form.wanted
                if result not in sources or cost < sources[result]:
                    sources[result] = cost
        name = part.result.name
        if name in uses.used:
            waiting[name] = choices.searches.to(form.kinds[-1], sources)
        elif form.wanted is not None:
            total += sources[form.wanted]
        else:
            ends = choices.searches.onward(form.kinds[-1], uses.open[name])
            total += min(
                cost + moved for state, cost in sources.items() if (moved := ends.cost(state)) is not None
            )
    return total


def _moved(
    uses: ArrayUses,
    form: StatementForm,
    place: int,
    search: ArrayPaths | None,
    given: ArrayCopies | None,
    needed: State,
) -> Cost | None:
    """The charge for having an operand as it is needed: with what it has cost so far if it comes from a
    statement whose `search` this is, 0 where another use is charged; None where it cannot be had."""
    moves, kind, through = uses.choices.moves, form.kinds[place], form.through[place]
    cost: Cost | None = 0
    if search is not None:
        cost = search.cost(needed if through is None else through)
    elif given is not None:
        nearest = moves.nearest(given, needed if through is None else through)
        cost = None if nearest is None else nearest[0]
    if cost is None or through is None:
        return cost
    rest = moves.nearest(moves.copies(kind, through), needed)
    return None if rest is None else cost + rest[0]
