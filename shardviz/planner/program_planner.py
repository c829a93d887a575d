"""Plans of programs whose arrays are used several times.

The statements are walked in their order, with the *copies* that a device may hold of every array that is
still needed: an array as it was made, and what moves for earlier uses have made of it, so that what several
statements need is gathered once. Of all partial plans that hold the same copies the cheapest is followed, and
none that costs as much as a cheaper one with the moves that make the other's copies of what that one holds.
What is left are the partial plans that no other can imitate. Where there are more than `WIDTH`, the cheapest
are followed, and the answer says by how much a plan through the others could be cheaper at most: they would
at least cost the local work that is left, shared as well as can be.

Where a program stands for several layers, one copy of an array is kept from the forward pass to what follows,
the smallest, and of an argument none but the given one: as many of them as there are layers lie in memory
meanwhile, which fully sharded training avoids by gathering its weights twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.errors import QuestionError
from shardviz.planner.axis_pool import AxisPool
from shardviz.planner.moves import State, StateSpace
from shardviz.planner.paths import ArrayKind, PathMove, PathSearch
from shardviz.planner.prices import Cost, Prices
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statement_ways import StatementWays
from shardviz.planner.work_split import WorkSplit, work_splits
from shardviz.sharding import ShardedArray, array_bytes

WIDTH = 48
"""Partial plans that are followed from statement to statement."""
COMPARED = 12
"""Cheaper partial plans that each is compared with."""

Copies = tuple[State, ...]
"""The states in which a device holds an array: as it was made, then the others in order."""


@dataclass(frozen=True)
class ArrayPath:
    """Moves of one array from the state of a copy."""

    start: State
    moves: tuple[PathMove, ...] = ()

    @property
    def states(self) -> Iterator[State]:
        """The states that the moves make."""
        return (move.after for move in self.moves)


class StatementChoice(NamedTuple):
    """One way to run a statement, given the copies of its operands.

    `paths` lead each operand to what the split needs, `result_path` the result to its constraint. `copies`
    are those of each operand afterwards, and last those of the result.
    """

    cost: Cost
    split: WorkSplit
    paths: tuple[ArrayPath, ...]
    result_path: ArrayPath
    copies: tuple[Copies, ...]


@dataclass(frozen=True)
class PlannedProgram:
    """The choices of all statements, the moves that leave the returned arrays as they are wanted, and the
    cost; `least` is what no plan of the space searched can go below."""

    choices: tuple[StatementChoice, ...]
    returns: dict[str, ArrayPath]
    cost: Cost
    least: Cost


class CopyMoves:
    """The least costs of making copies of an array from others, for all arrays of a kind alike."""

    def __init__(self, space: StateSpace, prices: Prices) -> None:
        self._space, self._prices = space, prices
        self._searches: dict[tuple[ArrayKind, State], PathSearch] = {}
        self._nearest: dict[tuple[ArrayKind, Copies, State], tuple[Cost, State] | None] = {}

    def nearest(self, kind: ArrayKind, copies: Copies, goal: State) -> tuple[Cost, State] | None:
        """The least cost of making a copy, and of which; None where no moves lead to it."""
        key = (kind, copies, goal)
        if key not in self._nearest:
            found: tuple[Cost, State] | None = None
            for copy in copies:
                cost = 0 if copy == goal else self._search(kind, copy).cost(goal)
                if cost is not None and (found is None or cost < found[0]):
                    found = (cost, copy)
            self._nearest[key] = found
        return self._nearest[key]

    def path(self, kind: ArrayKind, start: State, goal: State) -> ArrayPath:
        """The cheapest moves from one copy to another."""
        if start == goal:
            return ArrayPath(start)
        return ArrayPath(*self._search(kind, start).path(goal))

    def imitation(self, kind: ArrayKind, copies: Copies, others: Copies) -> Cost | None:
        """The cost of making all of `others`, each on its own."""
        total = 0
        for state in others:
            if state not in copies:
                found = self.nearest(kind, copies, state)
                if found is None:
                    return None
                total += found[0]
        return total

    def free_end(
        self, kind: ArrayKind, copies: Copies, splits: frozenset[tuple[int, str]]
    ) -> tuple[Cost, State, State]:
        """The least cost of leaving an array without pending sums, its dimensions split over no axes but
        those in `splits` (by the dimension's number): with the copy and the state."""
        found: list[tuple[Cost, State, State]] = []
        for copy in copies:
            for end, cost in self._search(kind, copy).costs():
                placed = {(dim, axis) for dim, axes in enumerate(end[0]) for axis in axes}
                if not end[1] and placed <= splits:
                    found.append((cost, copy, end))
                    break
        return min(found)

    def _search(self, kind: ArrayKind, start: State) -> PathSearch:
        found = self._searches.get((kind, start))
        if found is None:
            found = PathSearch(self._space, kind, self._prices, {start: 0})
            self._searches[kind, start] = found
        return found


class StatementForm(NamedTuple):
    """A statement as far as its ways depend on it: `part` stands for all that differ in names only.

    `kinds` are those of the operands and of the result; `same` says for each operand which is the first that
    is the same array, `through` the state that it must pass, `wanted` that of the result.
    """

    number: int
    part: Statement
    kinds: tuple[ArrayKind, ...]
    same: tuple[int, ...]
    through: tuple[State | None, ...]
    wanted: State | None


class ProgramPlanner:
    """Plans programs over some axes; remembers what it has found of statements that are alike."""

    def __init__(
        self,
        pool: AxisPool,
        space: StateSpace,
        prices: Prices,
        splits: frozenset[tuple[str, str]] | None = None,
    ) -> None:
        """Over an axis only those dimensions are split that `splits` has with it, where it is given."""
        self.pool, self._allowed = pool, splits
        self.moves = CopyMoves(space, prices)
        self._sizes = space.sizes
        self._ways = StatementWays(space, prices)
        self._forms: dict[object, StatementForm] = {}
        self._choices: dict[
            tuple[int, tuple[Copies, ...], tuple[bool, ...]], tuple[StatementChoice, ...]
        ] = {}
        self._least: dict[tuple[int, tuple[Copies | None, ...]], Cost] = {}
        self._splits: dict[tuple[int, tuple[frozenset[str], ...]], tuple[tuple[WorkSplit, Cost], ...]] = {}

    def planned(self, problem: Problem) -> PlannedProgram:
        """The choices for all statements. Raises `QuestionError` where an array cannot be had as wanted."""
        return _Planning(self, problem).planned()

    def kind(self, array: ShardedArray) -> ArrayKind:
        return ArrayKind(array.shape, array.dtype, self.pool.uneven_of(array))

    def form(self, part: Statement, through: tuple[State | None, ...], wanted: State | None) -> StatementForm:
        """The form of a statement, the same for all that are alike."""
        kinds = tuple(map(self.kind, (*part.operands, part.result)))
        names = [operand.name for operand in part.operands]
        same = tuple(map(names.index, names))
        key = (part.einsum, part.function, part.merged, part.whole, part.number, kinds, same, through, wanted)
        if key not in self._forms:
            self._forms[key] = StatementForm(len(self._forms), part, kinds, same, through, wanted)
        return self._forms[key]

    def least(self, form: StatementForm, copies: tuple[Copies | None, ...]) -> Cost:
        """The cost that no plan can save of a statement: its work, the moves of those operands of which these
        copies are held, where the others (None) are as they are needed, and those of the result."""
        key = (form.number, copies)
        found = self._least.get(key)
        if found is None:
            pending = tuple(frozenset(axis for _, own in held or () for axis in own) for held in copies)
            for split, work in self._splits_of(form, pending):
                cost = work
                for place, (held, needed) in enumerate(zip(copies, split.operands, strict=True)):
                    if held is not None and form.through[place] is None and form.same[place] == place:
                        moved = self.moves.nearest(form.kinds[place], held, needed)
                        cost = cost + moved[0] if moved is not None else cost
                if form.wanted is not None:
                    moved = self.moves.nearest(form.kinds[-1], (split.result,), form.wanted)
                    cost = cost + moved[0] if moved is not None else cost
                found = cost if found is None else min(found, cost)
            assert found is not None
            self._least[key] = found
        return found

    def _splits_of(
        self, form: StatementForm, pending: tuple[frozenset[str], ...]
    ) -> tuple[tuple[WorkSplit, Cost], ...]:
        """Every way to share the work, with the local work; `pending` as `work_splits` has it."""
        key = (form.number, pending)
        found = self._splits.get(key)
        if found is None:
            splits = work_splits(form.part, pending, self._sizes, self.pool.uneven, self._allowed)
            found = tuple((split, self._ways.work(form.part, split)) for split in splits)
            self._splits[key] = found
        return found

    def choices(
        self, form: StatementForm, copies: tuple[Copies, ...], kept: tuple[bool, ...]
    ) -> tuple[StatementChoice, ...]:
        """The ways to run a statement whose operands a device holds so, the cheapest first, without those
        that a cheaper one can imitate. `kept` says which operands later statements need, and the result."""
        key = (form.number, copies, kept)
        found = self._choices.get(key)
        if found is None:
            found = self._choices[key] = tuple(self._not_imitated(form, copies, kept))
        return found

    def _choice(
        self, form: StatementForm, copies: tuple[Copies, ...], split: WorkSplit, cost: Cost
    ) -> StatementChoice | None:
        """The cheapest way with this split, whose work has this `cost`; None where an operand cannot be
        had."""
        held, paths = list(copies), []
        for place, (same, through, needed) in enumerate(
            zip(form.same, form.through, split.operands, strict=True)
        ):
            found = self._way(form.kinds[place], held[same], through, needed)
            if found is None:
                return None
            cost += found[0]
            paths.append(found[1])
            held[same] = with_copies(held[same], found[1].states)
        result_path, result = ArrayPath(split.result), (split.result,)
        if form.wanted is not None:
            found = self._way(form.kinds[-1], result, None, form.wanted)
            if found is None:
                return None
            cost += found[0]
            result_path, result = found[1], (form.wanted,)
        after = (*(held[same] for same in form.same), result)
        return StatementChoice(cost, split, tuple(paths), result_path, after)

    def _way(
        self, kind: ArrayKind, copies: Copies, through: State | None, needed: State
    ) -> tuple[Cost, ArrayPath] | None:
        """The cheapest moves from a copy to what is needed, and what they cost."""
        first = self.moves.nearest(kind, copies, needed if through is None else through)
        if first is None:
            return None
        cost, start = first
        if through is None:
            return cost, self.moves.path(kind, start, needed)
        second = self.moves.nearest(kind, (through,), needed)
        if second is None:
            return None
        moves = self.moves.path(kind, start, through).moves + self.moves.path(kind, through, needed).moves
        return cost + second[0], ArrayPath(start, moves)

    def _not_imitated(
        self, form: StatementForm, copies: tuple[Copies, ...], kept: tuple[bool, ...]
    ) -> list[StatementChoice]:
        pending = tuple(frozenset(axis for _, own in held for axis in own) for held in copies)
        choices = [
            choice
            for split, work in self._splits_of(form, pending)
            if (choice := self._choice(form, copies, split, work)) is not None
        ]
        needed = [
            place
            for place, is_kept in enumerate(kept)
            if is_kept and form.same[place : place + 1] in ((place,), ())
        ]
        kinds = [form.kinds[place] for place in needed]
        found: list[tuple[StatementChoice, list[Copies]]] = []
        for choice in sorted(choices, key=lambda each: each.cost):
            own = [choice.copies[place] for place in needed]
            if not any(
                self.imitates(kinds, better, own, choice.cost - cheaper.cost) for cheaper, better in found
            ):
                found.append((choice, own))
        return [choice for choice, _ in found]

    def imitates(
        self, kinds: Sequence[ArrayKind], copies: Sequence[Copies], others: Sequence[Copies], slack: Cost
    ) -> bool:
        """Return whether moves that cost no more than `slack` make the other copies of these."""
        for kind, own, wanted in zip(kinds, copies, others, strict=True):
            if own != wanted:
                cost = self.moves.imitation(kind, own, wanted)
                if cost is None or cost > slack:
                    return False
                slack -= cost
        return True


def with_copies(copies: Copies, made: Iterable[State]) -> Copies:
    """Copies with further ones; the first stays the first."""
    new = [state for state in made if state not in copies]
    return (copies[0], *sorted({*copies[1:], *new})) if new else copies


class _Partial(NamedTuple):
    """A plan of the first statements: the copies of each array that is still needed, in the order that
    `_Planning.live` has."""

    cost: Cost
    copies: tuple[Copies, ...]
    before: _Partial | None
    choice: StatementChoice | None


class _NextUse(NamedTuple):
    """A statement that is the next to use some live arrays: `places` are their numbers among these, by
    operand; `first` are the copies of arguments that it uses first, with which it costs `least`."""

    form: StatementForm
    least: Cost
    places: tuple[int | None, ...]
    first: tuple[Copies | None, ...]

    def excess(self, planner: ProgramPlanner, copies: tuple[Copies, ...]) -> Cost:
        """The cost of the statement beyond the least with these copies of the live arrays."""
        held = tuple(
            first if place is None else copies[place]
            for place, first in zip(self.places, self.first, strict=True)
        )
        return planner.least(self.form, held) - self.least


class _Planning:
    """One program while it is planned."""

    def __init__(self, planner: ProgramPlanner, problem: Problem) -> None:
        self._planner, self._problem = planner, problem
        self._starts = {array.name: (planner.pool.state(array.decided_spec),) for array in problem.arguments}
        self._kinds = {array.name: planner.kind(array) for array in problem.arrays}
        self._last_use = {
            operand.name: number for number, part in enumerate(problem.parts) for operand in part.operands
        } | dict.fromkeys(problem.results, len(problem.parts))
        self._forms = [self._form(part) for part in problem.parts]
        self._first = self._held_first()
        self._least = [planner.least(form, held) for form, held in zip(self._forms, self._first, strict=True)]
        self._open = {
            part.result.name: self._splits(part.result)
            for part, form in zip(problem.parts, self._forms, strict=True)
            if form.wanted is None and part.result.name in self._problem.results
        }

    def _splits(self, array: ShardedArray) -> frozenset[tuple[int, str]]:
        """The axes that may split the dimensions of an array that is the compiler's choice."""
        given = self._planner.pool.splits
        return frozenset(
            (number, axis) for number, dim in enumerate(array.dims) for name, axis in given if name == dim
        )

    def _form(self, part: Statement) -> StatementForm:
        pool = self._planner.pool
        through = tuple(
            None
            if operand.spec is None or (pool.state(operand.spec),) == self._starts.get(operand.name)
            else pool.state(operand.spec)
            for operand in part.operands
        )
        spec = part.result.spec
        if part is self._problem.parts[-1]:
            spec = self._problem.wanted_spec
        return self._planner.form(part, through, None if spec is None else pool.state(spec))

    def planned(self) -> PlannedProgram:
        """The cheapest plan that was found."""
        partials = [_Partial(0, (), None, None)]
        live: list[str] = []
        left = sum(self._least)
        dropped: list[Cost] = []
        for number, least in enumerate(self._least):
            left -= least
            partials, live = self._extended(number, partials, live)
            if not partials:
                raise _cannot_be_had(self._problem.parts[number])
            outlook = self._outlook(number, live)
            partials, others = self._followed(partials, live, outlook)
            dropped += [] if others is None else [others + left]
        ends = [self._ends(partial, live) for partial in partials]
        totals = [partial.cost + cost for partial, (cost, _) in zip(partials, ends, strict=True)]
        cost = min(totals)
        best = totals.index(cost)
        returns = {
            name: self._planner.moves.path(self._kinds[name], *states)
            for name, states in ends[best][1].items()
        }
        choices: list[StatementChoice] = []
        partial: _Partial | None = partials[best]
        while partial is not None and partial.choice is not None:
            choices.append(partial.choice)
            partial = partial.before
        return PlannedProgram(tuple(reversed(choices)), returns, cost, min((cost, *dropped)))

    def _held_first(self) -> list[tuple[Copies | None, ...]]:
        """For each statement the given copies of the arguments that it uses first."""
        found: list[tuple[Copies | None, ...]] = []
        used: set[str] = set()
        for part in self._problem.parts:
            names = [operand.name for operand in part.operands]
            found.append(tuple(None if name in used else self._starts.get(name) for name in names))
            used.update(names)
        return found

    def _outlook(self, number: int, live: list[str]) -> list[_NextUse]:
        """The statements that next need the arrays that are live behind a statement."""
        found = []
        waiting = set(live)
        for later in range(number + 1, len(self._forms)):
            names = [operand.name for operand in self._problem.parts[later].operands]
            if waiting.intersection(names):
                places = tuple(live.index(name) if name in waiting else None for name in names)
                found.append(_NextUse(self._forms[later], self._least[later], places, self._first[later]))
                waiting.difference_update(names)
        return found

    def _followed(
        self, partials: list[_Partial], live: list[str], outlook: list[_NextUse]
    ) -> tuple[list[_Partial], Cost | None]:
        """The partial plans to follow, the most promising first, and what one of the others costs at least,
        with what its next uses cost more than the least."""
        kinds = [self._kinds[name] for name in live]
        promising = sorted(
            (
                (partial.cost + sum(use.excess(self._planner, partial.copies) for use in outlook), partial)
                for partial in partials
            ),
            key=lambda each: each[0],
        )
        found: list[_Partial] = []
        for cost, partial in promising:
            if len(found) == WIDTH:
                return found, cost
            if not any(
                self._planner.imitates(kinds, better.copies, partial.copies, partial.cost - better.cost)
                for better in found[:COMPARED]
            ):
                found.append(partial)
        return found, None

    def _extended(
        self, number: int, partials: list[_Partial], live: list[str]
    ) -> tuple[list[_Partial], list[str]]:
        """The partial plans with one statement more, and the arrays that are needed still."""
        part, form = self._problem.parts[number], self._forms[number]
        names = [operand.name for operand in part.operands]
        arrays = (*names, part.result.name)
        kept = tuple(self._last_use.get(name, -1) > number for name in arrays)
        after = [name for name in dict.fromkeys((*live, *arrays)) if self._last_use.get(name, -1) > number]
        places = [
            (True, arrays.index(name)) if name in arrays else (False, live.index(name)) for name in after
        ]
        found: dict[tuple[Copies, ...], _Partial] = {}
        for partial in partials:
            held = dict(zip(live, partial.copies, strict=True))
            copies = tuple(held.get(name) or self._starts[name] for name in names)
            for choice in self._planner.choices(form, copies, kept):
                own = tuple(
                    choice.copies[place] if is_new else partial.copies[place] for is_new, place in places
                )
                if self._leaves_forward(number):
                    own = tuple(map(self._kept_for_later, after, own))
                cost = partial.cost + choice.cost
                known = found.get(own)
                if known is None or cost < known.cost:
                    found[own] = _Partial(cost, own, partial, choice)
        return list(found.values()), after

    def _leaves_forward(self, number: int) -> bool:
        phases = [part.phase for part in self._problem.parts[number : number + 2]]
        return self._problem.layers > 1 and phases[0] == "forward" and phases[-1] != "forward"

    def _kept_for_later(self, name: str, copies: Copies) -> Copies:
        """The copy that takes the least bytes, of arguments the array as it is given."""
        if name in self._starts:
            return copies[:1]
        return (min(copies, key=lambda copy: self._bytes(name, copy)),)

    def _bytes(self, name: str, copy: State) -> int:
        kind, mesh = self._kinds[name], self._problem.mesh
        shape = [-(-size // mesh.group_size(axes)) for size, axes in zip(kind.shape, copy[0], strict=True)]
        return array_bytes(shape, kind.dtype)

    def _ends(self, partial: _Partial, live: list[str]) -> tuple[Cost, dict[str, tuple[State, State]]]:
        """The cost of leaving the returned arrays as they may be left, and from which copy to which state."""
        total: Cost = 0
        found: dict[str, tuple[State, State]] = {}
        for name, copies in zip(live, partial.copies, strict=True):
            if name in self._open:
                kind, splits = self._kinds[name], self._open[name]
                cost, copy, end = self._planner.moves.free_end(kind, copies, splits)
                total, found[name] = total + cost, (copy, end)
        return total, found


def _cannot_be_had(part: Statement) -> QuestionError:
    names = ", ".join(array.name for array in (*part.operands, part.result) if array.spec is not None)
    return QuestionError(
        f"no moves over whole pieces bring {names or part.result.name} to where {part.einsum} needs it",
        "split it in another way, or use sizes that its axes divide",
    )
