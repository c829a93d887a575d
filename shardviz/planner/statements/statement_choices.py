"""The ways to run one statement, given the copies of its operands that a device holds under several
shardings, and the moves that make copies: found once for all statements and arrays that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.planner.problem import Statement
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import PathMove, State, remembered
from shardviz.planner.states.paths import ArrayKind, CheapestPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import Mesh

Path = tuple[State, tuple[PathMove, ...]]
"""The copy that an array comes from, and its moves from there."""


@dataclass(frozen=True, eq=False, slots=True)
class ArrayCopies:
    """The states in which a device holds an array: as it was made, then the others in order.
    `StatementChoices` has one object for all that are alike: they are looked up as objects, which is most of
    what planning a program does."""

    kind: ArrayKind
    states: tuple[State, ...]

    @property
    def pending(self) -> frozenset[str]:
        """The axes over which sums of some copy are pending."""
        return frozenset(axis for _, pending in self.states for axis in pending)


@dataclass(frozen=True, eq=False, slots=True)
class StatementForm:
    """A statement as far as its ways depend on it, the same object for all that differ in names only: `kinds`
    are those of the operands and of the result; `same` says for each operand which is the first that is the
    same array, `through` the state that it must pass, `wanted` that of the result."""

    part: Statement
    kinds: tuple[ArrayKind, ...]
    same: tuple[int, ...]
    through: tuple[State | None, ...]
    wanted: State | None


class StatementChoice(NamedTuple):
    """One way to run a statement: `paths` lead each operand to what the split needs, `result_path` the
    result to its constraint. `copies` are those of each operand afterwards, and last those of the result."""

    cost: Cost
    split: WorkSplit
    paths: tuple[Path, ...]
    result_path: Path
    copies: tuple[ArrayCopies, ...]


class StatementChoices(StatementWays):
    """The ways of statements over some axes; what is found serves all statements that are alike."""

    def __init__(
        self,
        pool: AxisPool,
        mesh: Mesh,
        prices: Prices,
        allowed: frozenset[tuple[str, str]] | None = None,
        searches: dict[object, CheapestPaths] | None = None,
    ) -> None:
        super().__init__(pool, mesh, prices, allowed, searches)
        self._nearest: dict[tuple[ArrayCopies, State], tuple[Cost, State]] = {}
        self._imitations: dict[tuple[ArrayCopies, ArrayCopies], Cost] = {}
        self._forms: dict[object, StatementForm] = {}

    def form(self, part: Statement, through: tuple[State | None, ...], wanted: State | None) -> StatementForm:
        """The form of a statement, the same for all that are alike."""
        kinds = tuple(map(self.kind, part.arrays))
        names = [operand.name for operand in part.operands]
        same = tuple(map(names.index, names))
        key = (part.einsum, part.function, part.merged, part.whole, part.number, kinds, same, through, wanted)
        return self._forms.setdefault(key, StatementForm(part, kinds, same, through, wanted))

    @remembered
    def least(self, form: StatementForm, copies: tuple[ArrayCopies | None, ...]) -> Cost:
        """The cost that no plan can save of a statement: its work, the moves of those operands of which
        copies are held (None: it is as it is needed), and those of the result."""
        pending = tuple(frozenset() if held is None else held.pending for held in copies)
        costs = []
        for split, cost in self._splits_of(form, pending):
            for index, (held, needed) in enumerate(zip(copies, split.operands, strict=True)):
                if held is not None and form.through[index] is None and form.same[index] == index:
                    moved = self.nearest(held, needed)
                    cost += moved[0] if moved is not None else 0
            if form.wanted is not None:
                moved = self.nearest(self.copies(form.kinds[-1], split.result), form.wanted)
                cost += moved[0] if moved is not None else 0
            costs.append(cost)
        return min(costs)

    @remembered
    def choices(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...], kept: tuple[bool, ...]
    ) -> tuple[StatementChoice, ...]:
        """The ways to run a statement whose operands a device holds so, the cheapest first, without those
        that a cheaper one can imitate. `kept` says which operands later statements need, and the result."""
        needed = [
            index
            for index, is_kept in enumerate(kept)
            if is_kept and form.same[index : index + 1] in ((index,), ())
        ]
        found: list[tuple[StatementChoice, list[ArrayCopies]]] = []
        for choice in sorted(self._every_choice(form, copies), key=lambda choice: choice.cost):
            own = [choice.copies[index] for index in needed]
            if not any(self.imitates(better, own, choice.cost - cheaper.cost) for cheaper, better in found):
                found.append((choice, own))
        return tuple(choice for choice, _ in found)

    @remembered
    def _splits_of(
        self, form: StatementForm, pending: tuple[frozenset[str], ...]
    ) -> list[tuple[WorkSplit, Cost]]:
        """Every way to share the work, with the local work; `pending` as `WorkSplits` has it."""
        splits = self.splits(form.part).every(pending)
        return [(split, self.work(form.part, split)) for split in splits]

    def _every_choice(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...]
    ) -> Iterator[StatementChoice]:
        """The cheapest way with each split of the work with which all operands can be had."""
        for split, cost in self._splits_of(form, tuple(own.pending for own in copies)):
            held, paths = list(copies), []
            for same, through, needed in zip(form.same, form.through, split.operands, strict=True):
                moved = self.way(held[same], *((needed,) if through is None else (through, needed)))
                if moved is None:
                    break
                cost += moved[0]
                paths.append(moved[1])
                held[same] = self.with_copies(held[same], [move.after for move in moved[1][1]])
            else:
                made = split.result if form.wanted is None else form.wanted
                moved = self.way(self.copies(form.kinds[-1], split.result), made)
                if moved is not None:
                    after = (*(held[same] for same in form.same), self.copies(form.kinds[-1], made))
                    yield StatementChoice(cost + moved[0], split, tuple(paths), moved[1], after)

    @remembered
    def copies(self, kind: ArrayKind, *states: State) -> ArrayCopies:
        """The copies of an array in these states."""
        return ArrayCopies(kind, states)

    def with_copies(self, copies: ArrayCopies, made: Iterable[State]) -> ArrayCopies:
        """Copies with further ones; the first stays the first."""
        first, *others = copies.states
        new = {state for state in made if state not in copies.states}
        return self.copies(copies.kind, first, *sorted(new.union(others))) if new else copies

    def nearest(
        self, copies: ArrayCopies, goal: State, limit: Cost | None = None
    ) -> tuple[Cost, State] | None:
        """The least cost of making a copy, and of which; None where no moves lead to it, or none for less
        than `limit`."""
        key = (copies, goal)
        found = self._nearest.get(key)
        if found is None:
            for copy in copies.states:
                cost = 0 if copy == goal else self._from(copies.kind, copy).cost(goal, limit)
                if cost is not None and (limit is None or cost < limit):
                    found, limit = (cost, copy), cost
            if found is not None:
                self._nearest[key] = found
        return found

    @remembered
    def _from(self, kind: ArrayKind, copy: State) -> CheapestPaths:
        return self.to(kind, {copy: 0})

    def way(self, copies: ArrayCopies, *goals: State) -> tuple[Cost, Path] | None:
        """The cheapest moves from a copy through some states, one after the other, and what they cost; None
        where no moves lead there."""
        total: Cost = 0
        path: Path | None = None
        for goal in goals:
            found = self.nearest(copies, goal)
            if found is None:
                return None
            cost, start = found
            moves = () if start == goal else self._from(copies.kind, start).path(goal)[1]
            path = (start, moves) if path is None else (path[0], path[1] + moves)
            total, copies = total + cost, self.copies(copies.kind, goal)
        assert path is not None
        return total, path

    def imitation(self, copies: ArrayCopies, others: ArrayCopies, limit: Cost | None = None) -> Cost | None:
        """The cost of making all of `others`, each on its own; None where no moves lead to one, or none for
        less than `limit`."""
        key = (copies, others)
        total = self._imitations.get(key)
        if total is None:
            total = 0
            for state in others.states:
                if state not in copies.states:
                    found = self.nearest(copies, state, None if limit is None else limit - total)
                    if found is None:
                        return None
                    total += found[0]
            self._imitations[key] = total
        return total

    def imitates(self, copies: Sequence[ArrayCopies], others: Sequence[ArrayCopies], slack: Cost) -> bool:
        """Return whether moves that cost no more than `slack` make the other copies of these."""
        for own, wanted in zip(copies, others, strict=True):
            if own is not wanted:
                cost = self.imitation(own, wanted, slack + 1)
                if cost is None or cost > slack:
                    return False
                slack -= cost
        return True

    def free_end(self, copies: ArrayCopies, goals: tuple[State, ...]) -> tuple[Cost, Path]:
        """The least cost of leaving an array in one of some states, and the moves."""
        ends = self.onward(copies.kind, goals)
        found: tuple[Cost, State] | None = None
        for copy in copies.states:
            cost = ends.cost(copy, None if found is None else found[0])
            if cost is not None:
                found = cost, copy
        assert found is not None  # a copy on every device is one of the goals
        return found[0], (found[1], ends.path(found[1])[1])
