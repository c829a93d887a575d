"""The ways to run one statement, given the copies of its operands, found once for all statements alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shardviz.planner.problem import Statement
from shardviz.planner.programs.copies import ArrayCopies, ArrayPath, CopyMoves
from shardviz.planner.statements.array_searches import ArraySearches
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import WorkSplit, work_splits
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import ArrayKind
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import Mesh, ShardedArray


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


class StatementChoice(NamedTuple):
    """One way to run a statement, given the copies of its operands.

    `paths` lead each operand to what the split needs, `result_path` the result to its constraint. `copies`
    are those of each operand afterwards, and last those of the result.
    """

    cost: Cost
    split: WorkSplit
    paths: tuple[ArrayPath, ...]
    result_path: ArrayPath
    copies: tuple[ArrayCopies, ...]


class StatementChoices:
    """The ways of statements over some axes; what is found serves all statements that are alike."""

    def __init__(
        self,
        pool: AxisPool,
        mesh: Mesh,
        prices: Prices,
        splits: frozenset[tuple[str, str]] | None = None,
    ) -> None:
        """Over an axis only those dimensions are split that `splits` has with it, where it is given."""
        self.pool, self.prices, self._allowed = pool, prices, splits
        self.searches = ArraySearches(pool, mesh, prices)
        self.moves = CopyMoves(self.searches)
        self._space = space = self.searches.space
        self._sizes = space.sizes
        self._ways = StatementWays(space, prices)
        self.local_work = self._ways.local_work
        self._forms: dict[object, StatementForm] = {}
        self._found: dict[
            tuple[int, tuple[ArrayCopies, ...], tuple[bool, ...]], tuple[StatementChoice, ...]
        ] = {}
        self._least: dict[tuple[int, tuple[ArrayCopies | None, ...]], Cost] = {}
        self._splits: dict[tuple[int, tuple[frozenset[str], ...]], tuple[tuple[WorkSplit, Cost], ...]] = {}

    def kind(self, array: ShardedArray) -> ArrayKind:
        return self.searches.kind(array)

    def form(self, part: Statement, through: tuple[State | None, ...], wanted: State | None) -> StatementForm:
        """The form of a statement, the same for all that are alike."""
        kinds = tuple(map(self.kind, (*part.operands, part.result)))
        names = [operand.name for operand in part.operands]
        same = tuple(map(names.index, names))
        key = (part.einsum, part.function, part.merged, part.whole, part.number, kinds, same, through, wanted)
        if key not in self._forms:
            self._forms[key] = StatementForm(len(self._forms), part, kinds, same, through, wanted)
        return self._forms[key]

    def least(self, form: StatementForm, copies: tuple[ArrayCopies | None, ...]) -> Cost:
        """The cost that no plan can save of a statement: its work, the moves of those operands of which these
        copies are held, where the others (None) are as they are needed, and those of the result."""
        key = (form.number, copies)
        found = self._least.get(key)
        if found is None:
            pending = tuple(frozenset() if held is None else _pending(held) for held in copies)
            for split, work in self.splits(form, pending):
                cost = work
                for place, (held, needed) in enumerate(zip(copies, split.operands, strict=True)):
                    if held is not None and form.through[place] is None and form.same[place] == place:
                        moved = self.moves.nearest(held, needed)
                        cost = cost + moved[0] if moved is not None else cost
                cost += self.constraint(form, split.result)
                found = cost if found is None else min(found, cost)
            assert found is not None
            self._least[key] = found
        return found

    def constraint(self, form: StatementForm, result: State) -> Cost:
        """The cost of bringing a result to where it is wanted."""
        if form.wanted is None:
            return 0
        moved = self.moves.nearest(self.moves.copies(form.kinds[-1], result), form.wanted)
        return 0 if moved is None else moved[0]

    def splits(
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

    def ways(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...], kept: tuple[bool, ...]
    ) -> tuple[StatementChoice, ...]:
        """The ways to run a statement whose operands a device holds so, the cheapest first, without those
        that a cheaper one can imitate. `kept` says which operands later statements need, and the result."""
        key = (form.number, copies, kept)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = tuple(self._not_imitated(form, copies, kept))
        return found

    def every_way(self, form: StatementForm, copies: tuple[ArrayCopies, ...]) -> Iterator[StatementChoice]:
        """The cheapest way with each split of the work."""
        for split, work in self.splits(form, tuple(map(_pending, copies))):
            choice = self._choice(form, copies, split, work)
            if choice is not None:
                yield choice

    def _choice(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...], split: WorkSplit, cost: Cost
    ) -> StatementChoice | None:
        """The cheapest way with this split, whose work has this `cost`; None where an operand cannot be
        had."""
        held, paths = list(copies), []
        for same, through, needed in zip(form.same, form.through, split.operands, strict=True):
            found = self._way(held[same], through, needed)
            if found is None:
                return None
            cost += found[0]
            paths.append(found[1])
            held[same] = self.moves.with_copies(held[same], found[1].states)
        result_path, result = ArrayPath(split.result), self.moves.copies(form.kinds[-1], split.result)
        if form.wanted is not None:
            found = self._way(result, None, form.wanted)
            if found is None:
                return None
            cost += found[0]
            result_path, result = found[1], self.moves.copies(form.kinds[-1], form.wanted)
        after = (*(held[same] for same in form.same), result)
        return StatementChoice(cost, split, tuple(paths), result_path, after)

    def _way(
        self, copies: ArrayCopies, through: State | None, needed: State
    ) -> tuple[Cost, ArrayPath] | None:
        """The cheapest moves from a copy to what is needed, and what they cost."""
        kind = copies.kind
        first = self.moves.nearest(copies, needed if through is None else through)
        if first is None:
            return None
        cost, start = first
        if through is None:
            return cost, self.moves.path(kind, start, needed)
        second = self.moves.nearest(self.moves.copies(kind, through), needed)
        if second is None:
            return None
        moves = self.moves.path(kind, start, through).moves + self.moves.path(kind, through, needed).moves
        return cost + second[0], ArrayPath(start, moves)

    def _not_imitated(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...], kept: tuple[bool, ...]
    ) -> list[StatementChoice]:
        needed = [
            place
            for place, is_kept in enumerate(kept)
            if is_kept and form.same[place : place + 1] in ((place,), ())
        ]
        found: list[tuple[StatementChoice, list[ArrayCopies]]] = []
        for choice in sorted(self.every_way(form, copies), key=lambda each: each.cost):
            own = [choice.copies[place] for place in needed]
            if not any(self.imitates(better, own, choice.cost - cheaper.cost) for cheaper, better in found):
                found.append((choice, own))
        return [choice for choice, _ in found]

    def imitates(self, copies: Sequence[ArrayCopies], others: Sequence[ArrayCopies], slack: Cost) -> bool:
        """Return whether moves that cost no more than `slack` make the other copies of these."""
        for own, wanted in zip(copies, others, strict=True):
            if own is not wanted:
                cost = self.moves.imitation(own, wanted, slack + 1)
                if cost is None or cost > slack:
                    return False
                slack -= cost
        return True


def _pending(copies: ArrayCopies) -> frozenset[str]:
    """The axes over which sums of some copy are pending."""
    return frozenset(axis for _, pending in copies.states for axis in pending)
