"""The ways to run statements over the axes of a pool, and the moves of their arrays: each found once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import NamedTuple

from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import local_work
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.work_split import WorkSplit, WorkSplits, splittable_dims
from shardviz.planner.states.moves import Axes, State, state_space
from shardviz.planner.states.paths import ArrayKind, CheapestPaths, DirectPaths
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices
from shardviz.sharding import Mesh, ShardedArray, array_bytes

MOST_SEARCHED = 5
"""Parts of axes up to which the cheapest moves are searched: with more, direct ones are taken."""


WithOperands = tuple[Statement, Sequence[CheapestPaths]]
"""A statement with the moves of its operands."""


class Way(NamedTuple):
    """One way to run a statement, of several that make the same that of this `number`: what it costs with
    the moves of its operands, and how its work is split."""

    cost: Cost
    split: WorkSplit
    number: int = 0


class StatementWays:
    """The ways of statements over the axes of a pool. Over an axis only those dimensions are split that
    `allowed` has with it, where it is given. The `searches` of arrays' moves may be shared by pools of a
    mesh."""

    def __init__(
        self,
        pool: AxisPool,
        mesh: Mesh,
        prices: Prices,
        allowed: frozenset[tuple[str, str]] | None = None,
        searches: dict[object, CheapestPaths] | None = None,
    ) -> None:
        self.pool, self.prices, self._allowed = pool, prices, allowed
        self.space = state_space(pool.sizes_of_parts, tuple(mesh.shape.items()), pool.may_mask)
        self._paths = CheapestPaths if len(pool.sizes) <= MOST_SEARCHED else DirectPaths
        self._searches: dict[object, CheapestPaths] = {} if searches is None else searches

    def kind(self, array: ShardedArray) -> ArrayKind:
        return ArrayKind(array.shape, array.dtype)

    def to(
        self, kind: ArrayKind, sources: Mapping[State, Cost], ends_pending: Axes | None = None
    ) -> CheapestPaths:
        """The moves to any state from some, which have had a cost; for `ends_pending` see
        `CheapestPaths`."""
        key = self.space, kind, tuple(sources.items()), ends_pending
        if key not in self._searches:
            self._searches[key] = self._paths(self.space, kind, self.prices, sources, ends_pending)
        return self._searches[key]

    def onward(self, kind: ArrayKind, goals: Iterable[State], pending: Axes | None = None) -> CheapestPaths:
        """The moves from any state to one of some, where sums are pending over no other axes than these,
        where they are given."""
        may_pend = tuple(self.space.sizes) if pending is None else pending
        return self.to(kind, dict.fromkeys(goals, 0), may_pend)

    def of_made(
        self, kind: ArrayKind, least: Mapping[State, Cost], exact: Callable[[State, Cost], Cost | None]
    ) -> CheapestPaths:
        """The moves from the states in which statements leave an array, which cost at least so much; `exact`
        finds how much, or None where that is not less than a limit."""
        return self._paths(self.space, kind, self.prices, least, None, exact)

    def splits(self, part: Statement) -> WorkSplits:
        """The ways to share the work of a statement."""
        dims, allowed, sizes = splittable_dims(part), self._allowed, self.space.sizes
        places = [
            (None, *(dim for dim in dims if allowed is None or (dim, axis) in allowed)) for axis in sizes
        ]
        return WorkSplits(part, sizes, places)

    def ways(self, several: Sequence[WithOperands]) -> WaysByResult:
        """The ways to run one of several statements that make the same array of their operands, before any
        move of it."""
        found: dict[State, list[tuple[int, Cost, Cost, WorkSplit]]] = {}
        for number, (part, operands) in enumerate(several):
            bounds = [cache(operand.least) for operand in operands]
            for split in self.splits(part).every([operand.pending for operand in operands]):
                work = self.work(part, split)
                least = work + _least_moves(bounds, split)
                if least < UNREACHABLE:
                    found.setdefault(split.result, []).append((number, least, work, split))
        return WaysByResult(self, [operands for _, operands in several], found)

    def best(self, several: Sequence[WithOperands], ends: CheapestPaths, limit: Cost) -> Way | None:
        """The cheapest way to run one of several statements and to have its result where a backward search
        `ends`, with the cost of all of it; None where none costs less than `limit`."""
        way: Way | None = None
        for number, (part, operands) in enumerate(several):
            for least, work, split in self._likely(part, operands, ends, limit):
                if least >= limit:
                    break
                cost = self.within((*operands, ends), split, work, limit)
                if cost is not None:
                    way, limit = Way(cost, split, number), cost
        return way

    def _likely(
        self, part: Statement, operands: Sequence[CheapestPaths], ends: CheapestPaths, limit: Cost
    ) -> Iterator[tuple[Cost, Cost, WorkSplit]]:
        """The splits that may cost less than a limit, each with what it costs at least, which grows, and its
        work. Of most splits no order of the axes comes into question, so it is left for later."""
        # Each state is asked for once.
        in_any_order = [cache(paths.least_in_any_order) for paths in (*operands, ends)]
        in_order = [cache(paths.least) for paths in (*operands, ends)]
        splits = self.splits(part)
        found: list[tuple[Cost, int, Cost, WorkSplit, bool]] = []
        for split in splits.unordered([operand.pending for operand in operands]):
            work = self.work(part, split)
            least = work + _least_moves(in_any_order, split)
            if least < limit:
                found.append((least, len(found), work, split, False))
        heapq.heapify(found)
        number = len(found)
        while found:
            least, _, work, split, is_ordered = heapq.heappop(found)
            if is_ordered:
                yield least, work, split
                continue
            for ordered in splits.ordered(split):
                least = work + _least_moves(in_order, ordered)
                if least < limit:
                    heapq.heappush(found, (least, number, work, ordered, True))
                    number += 1

    def within(
        self, arrays: Sequence[CheapestPaths], split: WorkSplit, work: Cost, limit: Cost
    ) -> Cost | None:
        """The cost of a way, with the moves of its result where `arrays` go so far; None where it is not less
        than `limit`."""
        states = split.states[: len(arrays)]
        bounds = [array.least(state) for array, state in zip(arrays, states, strict=True)]
        total = work + sum(bounds)
        for index, (array, state, bound) in enumerate(zip(arrays, states, bounds, strict=True)):
            moved = array.cost(state, limit - total + bound)
            if moved is None:
                return None
            total += moved - bound
            if index == 0:
                total += self.prices.of_first(array.added(state))
            if total >= limit:
                return None
        return total

    def work(self, part: Statement, split: WorkSplit) -> Cost:
        """The cost of the local work, and of the `pmax` behind it."""
        group = self.space.group_size
        *operands, result = (
            tuple([-(-size // group(axes)) for size, axes in zip(array.shape, dims, strict=True)])
            for array, (dims, _) in zip(part.arrays, split.states, strict=True)
        )
        work = self.prices.work(*local_work(part, operands, result))
        if not split.largest:
            return work
        size = array_bytes(result, part.result.dtype)
        return work + self.prices.move("pmax", self.space.whole(split.largest), size, size)


class WaysByResult:
    """The ways to run a statement, by the state in which it leaves its result; of each is known what it costs
    at least, and the cheapest is found when it is asked for."""

    def __init__(
        self,
        ways: StatementWays,
        operands: Sequence[Sequence[CheapestPaths]],
        splits: Mapping[State, list[tuple[int, Cost, Cost, WorkSplit]]],
    ) -> None:
        self._ways, self._operands, self._splits = ways, operands, splits
        self.least = {state: min(least for _, least, _, _ in own) for state, own in splits.items()}
        self._found: dict[State, Way] = {}

    def way(self, state: State, limit: Cost) -> Way | None:
        """The cheapest way to a state; None where it does not cost less than a limit."""
        way = self._found.get(state)
        if way is not None:
            return way if way.cost < limit else None
        for number, least, work, split in sorted(self._splits.get(state, ()), key=itemgetter(0, 1)):
            cost = None
            if least < limit:
                cost = self._ways.within(self._operands[number], split, work, limit)
            if cost is not None:
                way, limit = Way(cost, split, number), cost
        if way is not None:
            self._found[state] = way
        return way

    def cost(self, state: State, limit: Cost) -> Cost | None:
        """The least cost of a state; None where it is not less than a limit."""
        way = self.way(state, limit)
        return None if way is None else way.cost


def _least_moves(least: Sequence[Callable[[State], Cost]], split: WorkSplit) -> Cost:
    """The sum of bounds on the moves of a split's arrays, its result last if at all."""
    return sum([bound(state) for bound, state in zip(least, split.states, strict=False)])
