"""The ways to run one statement: each state in which it can leave its result, at the least cost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from shardviz.planner.problem import Statement
from shardviz.planner.statements.local_work import Shape, work_cost
from shardviz.planner.statements.work_split import (
    WorkSplit,
    ordered_splits,
    unordered_splits,
    work_splits,
)
from shardviz.planner.states.moves import Axes, State, StateSpace
from shardviz.planner.states.paths import UNREACHABLE, ArrayPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import array_bytes


class Way(NamedTuple):
    """One way to run a statement: what it costs with the moves of its operands, and how its work is split.

    The moves of an operand are those of its search to its state in `split.operands`.
    """

    cost: Cost
    split: WorkSplit


class StatementWays:
    """Finds the ways of statements on one mesh."""

    def __init__(self, space: StateSpace, prices: Prices) -> None:
        self._space, self._prices = space, prices

    def ways(
        self,
        part: Statement,
        operands: Sequence[ArrayPaths],
        uneven: Collection[tuple[str, Axes]] = (),
        splits: Collection[tuple[str, str]] | None = None,
    ) -> WaysByResult:
        """The ways to run a statement, before any move of its result. `operands` are searches from the states
        in which the operands are; for the others see `work_splits`."""
        bounds = _SplitBounds([search.least for search in operands])
        found: dict[State, list[tuple[Cost, Cost, WorkSplit]]] = {}
        pending = [search.pending for search in operands]
        for split in work_splits(part, pending, self._space.sizes, uneven, splits):
            work = self.work(part, split)
            least = work + bounds.of(split)
            if least < UNREACHABLE:
                found.setdefault(split.result, []).append((least, work, split))
        return WaysByResult(self, operands, found)

    def best(
        self,
        part: Statement,
        operands: Sequence[ArrayPaths],
        ends: ArrayPaths,
        limit: Cost,
        uneven: Collection[tuple[str, Axes]] = (),
        splits: Collection[tuple[str, str]] | None = None,
        kept: tuple[str, Axes] | None = None,
    ) -> Way | None:
        """The cheapest way to run a statement and to have its result where a backward search `ends`; None
        where none costs less than `limit`. The cost is that of all of it. With a dimension and axes as `kept`
        only the ways count that split it over these."""
        searches = (*operands, ends)
        found: Way | None = None
        for least, work, split in self._likely(part, searches, limit, uneven, splits, kept):
            if least >= limit:
                break
            cost = self.within(searches, split, work, limit)
            if cost is not None:
                found, limit = Way(cost, split), cost
        return found

    def _likely(
        self,
        part: Statement,
        searches: Sequence[ArrayPaths],
        limit: Cost,
        uneven: Collection[tuple[str, Axes]],
        splits: Collection[tuple[str, str]] | None,
        kept: tuple[str, Axes] | None,
    ) -> Iterator[tuple[Cost, Cost, WorkSplit]]:
        """The splits that may cost less than a limit, each with what it costs at least, which grows, and its
        work. Of most splits no order of the axes comes into question, so it is left for later."""
        axes, pending = self._space.sizes, [search.pending for search in searches[:-1]]
        in_any_order = _SplitBounds([search.least_in_any_order for search in searches])
        in_order = _SplitBounds([search.least for search in searches])
        found: list[tuple[Cost, int, Cost, WorkSplit, bool]] = []
        for split in unordered_splits(part, pending, axes, uneven, splits):
            if kept is None or set(kept[1]) <= set(split.assignment.get(kept[0], ())):
                work = self.work(part, split)
                least = work + in_any_order.of(split)
                if least < limit:
                    found.append((least, len(found), work, split, False))
        heapq.heapify(found)
        number = len(found)
        while found:
            least, _, work, split, is_ordered = heapq.heappop(found)
            if is_ordered:
                yield least, work, split
                continue
            for ordered in ordered_splits(part, split, axes, uneven):
                least = work + in_order.of(ordered)
                if least < limit:
                    heapq.heappush(found, (least, number, work, ordered, True))
                    number += 1

    def within(
        self, searches: Sequence[ArrayPaths], split: WorkSplit, work: Cost, limit: Cost
    ) -> Cost | None:
        """The cost of a way, with the moves of its result where `searches` go so far; None where it is not
        less than `limit`."""
        states = (*split.operands, split.result)[: len(searches)]
        bounds = [search.least(state) for search, state in zip(searches, states, strict=True)]
        total = work + sum(bounds)
        for place, (search, state, bound) in enumerate(zip(searches, states, bounds, strict=True)):
            moved = search.cost(state, limit - total + bound)
            if moved is None:
                return None
            total += moved - bound
            if place == 0:
                total += self._prices.of_first(search.added(state))
            if total >= limit:
                return None
        return total

    def local_work(self, part: Statement, operands: Sequence[Shape], result: Shape) -> Cost:
        """The cost of the work on a device that holds pieces of these shapes."""
        return work_cost(self._prices, part, operands, result)

    def work(self, part: Statement, split: WorkSplit) -> Cost:
        """The cost of the local work, and of the `pmax` behind it."""
        group = self._space.group_size
        *operands, result = (
            tuple([-(-size // group(axes)) for size, axes in zip(array.shape, dims, strict=True)])
            for array, (dims, _) in zip(
                (*part.operands, part.result), (*split.operands, split.result), strict=True
            )
        )
        work = self.local_work(part, operands, result)
        if not split.largest:
            return work
        size = array_bytes(result, part.result.dtype)
        return work + self._prices.move("pmax", self._space.whole(split.largest), size, size)


class WaysByResult:
    """The ways to run a statement, by the state in which it leaves its result; of each is known what it costs
    at least, and the cheapest is found when it is asked for."""

    def __init__(
        self,
        ways: StatementWays,
        operands: Sequence[ArrayPaths],
        splits: Mapping[State, list[tuple[Cost, Cost, WorkSplit]]],
    ) -> None:
        self._ways, self._operands, self._splits = ways, operands, splits
        self.least = {state: min(least for least, _, _ in own) for state, own in splits.items()}
        self._found: dict[State, Way] = {}

    def way(self, state: State, limit: Cost) -> Way | None:
        """The cheapest way to a state; None where it does not cost less than a limit."""
        found = self._found.get(state)
        if found is not None:
            return found if found.cost < limit else None
        for least, work, split in sorted(self._splits.get(state, ()), key=itemgetter(0)):
            if least >= limit:
                break
            cost = self._ways.within(self._operands, split, work, limit)
            if cost is not None:
                found, limit = Way(cost, split), cost
        if found is not None:
            self._found[state] = found
        return found


class _SplitBounds:
    """The least cost of the moves of a split's arrays, each state asked for once."""

    def __init__(self, least: Sequence[Callable[[State], Cost]]) -> None:
        self._found = [(bound, dict[State, Cost]()) for bound in least]

    def of(self, split: WorkSplit) -> Cost:
        total = 0
        for (least, known), state in zip(self._found, (*split.operands, split.result), strict=False):
            bound = known.get(state)
            if bound is None:
                bound = known[state] = least(state)
            total += bound
        return total
