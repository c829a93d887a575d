"""A cost below which no plan of a program can go.

A plan may move an array once and use the copy several times. Here every array is charged the moves to one of
its uses, the next; for its other uses it is there as they need it, also with pending sums. What is left is a
forest of statements each of whose arrays is used once, so its best plan is found as that of a tree is. In
H = A·W; G = A·V; Y = H + G the moves of A are charged to H alone, and the least costs of H and of G lead to
that of Y.
"""

from __future__ import annotations

from shardviz.planner.programs.program_planner import ArrayUses
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import CheapestPaths, FreePaths
from shardviz.planner.states.prices import UNREACHABLE, Cost


def lower_bound(uses: ArrayUses) -> Cost:
    """The cost of the best plan of the forest."""
    ways, total = uses.choices.ways, 0
    waiting: dict[str, CheapestPaths] = {}

    def passed(paths: CheapestPaths, state: State) -> CheapestPaths:
        """The moves of an array from a state that it must pass."""
        return ways.to(paths.kind, {state: paths.cost(state) or 0})

    for part, form, names, first in uses.statements:
        operands: list[CheapestPaths] = []
        for index, (kind, name) in enumerate(zip(form.kinds[:-1], names, strict=True)):
            given, through = first[index], form.through[index]
            operand: CheapestPaths = FreePaths(ways.space, kind, ways.prices)
            if form.same[index] == index:
                operand = waiting.pop(name, operand)
                if given is not None:
                    operand = ways.to(kind, dict.fromkeys(given.states, 0))
                if through is not None:
                    operand = passed(operand, through)
            operands.append(operand)
        kind = form.kinds[-1]
        if part.result.name in uses.used:
            made = ways.ways([(part, operands)])
            waiting[part.result.name] = ways.of_made(kind, made.least, made.cost)
            if form.wanted is not None:
                waiting[part.result.name] = passed(waiting[part.result.name], form.wanted)
        else:
            goals = uses.open[part.result.name] if form.wanted is None else (form.wanted,)
            way = ways.best([(part, operands)], ways.onward(kind, goals), UNREACHABLE)
            total += 0 if way is None else way.cost
    return total
