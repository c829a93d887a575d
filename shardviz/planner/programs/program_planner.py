"""Plans of programs whose arrays are used several times.

The statements are walked in their order, with the *copies* that a device may hold of every array that is
still needed: an array as it was made, and what moves for earlier uses have made of it, so that what several
statements need is gathered once. Of all partial plans that hold the same copies the cheapest is followed, and
none that costs as much as a cheaper one with the moves that make the other's copies of what that one holds.
What is left are the partial plans that no other can imitate. Of these the most promising are followed, with
what the next uses of their arrays cost at least (a beam search with dominance: Lowerre, "The HARPY Speech
Recognition System", 1976); `lower_bound` says how far the best can be. In H = A·W; G = A·V with A[_, X] a
plan that gathers A for H holds it whole for G: it costs more than one that adds up H, until G.

Where a program stands for several layers, one copy of an array is kept from the forward pass to what follows,
the smallest, and of an argument none but the given one: as many of them as there are layers lie in memory
meanwhile, which fully sharded training avoids by gathering its weights twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.programs.array_uses import ArrayUses, NextUse
from shardviz.planner.programs.copies import ArrayCopies, ArrayPath
from shardviz.planner.programs.statement_choices import StatementChoice, StatementChoices
from shardviz.planner.programs.ways_not_taken import ProgramWays, state_of_all_uses
from shardviz.planner.statements.planned_statement import ArrayMoves, Joined, PlannedStatement
from shardviz.planner.states.paths import PathMove
from shardviz.planner.states.prices import Cost
from shardviz.sharding import ShardedArray

WIDTH = 48
"""Partial plans that are followed from statement to statement."""
COMPARED = 12
"""Cheaper partial plans that each is compared with."""


@dataclass(frozen=True)
class PlannedProgram:
    """The statements of a program as planned, and what they cost."""

    cost: Cost
    statements: tuple[PlannedStatement, ...]


class _Partial(NamedTuple):
    """A plan of the first statements: the copies of each array that is still needed, in the order that
    `_Planning.live` has."""

    cost: Cost
    copies: tuple[ArrayCopies, ...]
    before: _Partial | None
    choice: StatementChoice | None


def planned_program(choices: StatementChoices, problem: Problem) -> PlannedProgram:
    """The cheapest plan that was found. Raises `QuestionError` where an array cannot be had as wanted."""
    return _Planning(choices, problem).planned()


class _Planning:
    """One program while it is planned."""

    def __init__(self, choices: StatementChoices, problem: Problem) -> None:
        self._choices, self._problem = choices, problem
        self._uses = ArrayUses(choices, problem)

    def planned(self) -> PlannedProgram:
        """The cheapest plan that was found."""
        partials = [_Partial(0, (), None, None)]
        live: list[str] = []
        lives = [live]
        for number in range(len(self._problem.parts)):
            partials, live = self._extended(number, partials, live)
            lives.append(live)
            if not partials:
                raise _cannot_be_had(self._problem.parts[number])
            outlook = self._uses.next_uses(number, live)
            partials = self._followed(partials, outlook)
        ends = [self._ends(partial, live) for partial in partials]
        totals = [partial.cost + cost for partial, (cost, _) in zip(partials, ends, strict=True)]
        cost = min(totals)
        best = totals.index(cost)
        returns = ends[best][1]
        choices: list[StatementChoice] = []
        held: list[dict[str, ArrayCopies]] = []
        partial = partials[best]
        while partial.before is not None and partial.choice is not None:
            choices.insert(0, partial.choice)
            partial = partial.before
            held.insert(0, dict(zip(lives[-len(choices) - 1], partial.copies, strict=True)))
        ways = self._other_ways(choices, held, returns)
        return PlannedProgram(cost, tuple(_scheduled(self._problem, choices, ways, returns)))

    def _other_ways(
        self,
        choices: Sequence[StatementChoice],
        held: Sequence[Mapping[str, ArrayCopies]],
        returns: Mapping[str, ArrayPath],
    ) -> tuple[ProgramWays, ...]:
        """The other ways to plan each statement; `held` are the copies of live arrays before it."""
        uses: dict[str, list[ArrayPath]] = {name: [path] for name, path in returns.items()}
        found: list[ProgramWays] = []
        for number in reversed(range(len(choices))):
            part, choice = self._problem.parts[number], choices[number]
            names = self._uses.names[number]
            (natural,) = choice.copies[-1].states
            later = uses.get(part.result.name)
            found.append(
                ProgramWays(
                    self._choices,
                    self._uses.forms[number],
                    tuple(held[number].get(name) or self._uses.starts[name] for name in names),
                    choice,
                    tuple(self._used(uses.get(name, ()), choice.copies[names.index(name)]) for name in names),
                    natural if later is None else state_of_all_uses(natural, later),
                )
            )
            for name, path in zip(names, choice.paths, strict=True):
                uses.setdefault(name, []).insert(0, path)
        return tuple(reversed(found))

    def _used(self, paths: Sequence[ArrayPath], copies: ArrayCopies) -> ArrayCopies:
        """The copies from which paths start."""
        starts = dict.fromkeys(path.start for path in paths if path.start in copies.states)
        return self._choices.moves.copies(copies.kind, *starts)

    def _followed(self, partials: list[_Partial], outlook: list[NextUse]) -> list[_Partial]:
        """The partial plans to follow, the most promising first: by their cost with what their next uses cost
        more than the least."""
        costs = [partial.cost for partial in partials]
        for use in outlook:
            held = [use.held(partial.copies) for partial in partials]
            alike = dict(zip(held, partials, strict=True))
            excess = {own: use.excess(self._choices, partial.copies) for own, partial in alike.items()}
            costs = [cost + excess[own] for cost, own in zip(costs, held, strict=True)]
        promising = sorted(range(len(partials)), key=costs.__getitem__)
        found: list[_Partial] = []
        for partial in map(partials.__getitem__, promising):
            if len(found) == WIDTH:
                return found
            if not any(
                self._choices.imitates(better.copies, partial.copies, partial.cost - better.cost)
                for better in found[:COMPARED]
            ):
                found.append(partial)
        return found

    def _extended(
        self, number: int, partials: list[_Partial], live: list[str]
    ) -> tuple[list[_Partial], list[str]]:
        """The partial plans with one statement more, and the arrays that are needed still."""
        part, form = self._problem.parts[number], self._uses.forms[number]
        names = self._uses.names[number]
        arrays = (*names, part.result.name)
        kept = tuple(self._uses.last.get(name, -1) > number for name in arrays)
        after = [name for name in dict.fromkeys((*live, *arrays)) if self._uses.last.get(name, -1) > number]
        places = [arrays.index(name) if name in arrays else len(arrays) + live.index(name) for name in after]
        found: dict[tuple[ArrayCopies, ...], _Partial] = {}
        for partial in partials:
            held = dict(zip(live, partial.copies, strict=True))
            copies = tuple(held.get(name) or self._uses.starts[name] for name in names)
            for choice in self._choices.ways(form, copies, kept):
                both = choice.copies + partial.copies
                own = tuple([both[place] for place in places])
                if self._uses.leaves_forward(number):
                    own = tuple(map(self._uses.kept_for_later, after, own))
                cost = partial.cost + choice.cost
                known = found.get(own)
                if known is None or cost < known.cost:
                    found[own] = _Partial(cost, own, partial, choice)
        return list(found.values()), after

    def _ends(self, partial: _Partial, live: list[str]) -> tuple[Cost, dict[str, ArrayPath]]:
        """The cost of leaving the returned arrays as they may be left, and the moves to there."""
        total: Cost = 0
        found: dict[str, ArrayPath] = {}
        for name, copies in zip(live, partial.copies, strict=True):
            if name in self._uses.open:
                cost, found[name] = self._choices.moves.free_end(copies, self._uses.open[name])
                total += cost
        return total, found


def _cannot_be_had(part: Statement) -> QuestionError:
    names = ", ".join(array.name for array in (*part.operands, part.result) if array.spec is not None)
    return QuestionError(
        f"no moves over whole pieces bring {names or part.result.name} to where {part.einsum} needs it",
        "split it in another way, or use sizes that its axes divide",
    )


def _scheduled(
    problem: Problem,
    choices: Sequence[StatementChoice],
    ways: Sequence[ProgramWays],
    returns: Mapping[str, ArrayPath],
) -> Iterator[PlannedStatement]:
    """The statements in order, with the moves around them. Pending sums are added right behind the statement
    that leaves them, and what else brings a result to where it is returned, behind the last."""
    joined = Joined(problem.mesh)
    makers = {part.result.name: number for number, part in enumerate(problem.parts)}
    before: list[list[ArrayMoves]] = [[] for _ in choices]
    behind: list[list[ArrayMoves]] = [[] for _ in choices]

    def behind_maker(array: ShardedArray, path: ArrayPath) -> tuple[PathMove, ...]:
        """Have the sums that a path adds first added behind the statement that makes the array: the moves
        left."""
        number = makers.get(array.name)
        if number is None or path.start != choices[number].split.result:
            return path.moves
        sums = list(takewhile(lambda move: move.op in ("psum", "psum_scatter"), path.moves))
        if sums:
            behind[number].append((problem.parts[number].result, joined.moves(array, sums)))
        return path.moves[len(sums) :]

    for number, (part, choice) in enumerate(zip(problem.parts, choices, strict=True)):
        for operand, path in zip(part.operands, choice.paths, strict=True):
            if rest := behind_maker(operand, path):
                before[number].append((operand, joined.moves(operand, rest)))
        if choice.result_path.moves:
            behind[number].append((part.result, joined.moves(part.result, choice.result_path.moves)))
    for name, path in returns.items():
        array = problem.parts[makers[name]].result
        if rest := behind_maker(array, path):
            behind[-1].append((array, joined.moves(array, rest)))
    for number, (part, choice) in enumerate(zip(problem.parts, choices, strict=True)):
        starts = tuple(joined.state(path.start) for path in choice.paths)
        split = joined.split(choice.split)
        yield PlannedStatement(
            problem.mesh, part, split, starts, before[number], behind[number], ways[number]
        )
