"""The ways to run one statement: each state in which it can leave its result, at the least cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple

from shardviz.planner.pricing.local_work import Shape, matmul_dtype, statement_flops, statement_traffic
from shardviz.planner.pricing.prices import Cost, Prices
from shardviz.planner.problem import Statement
from shardviz.planner.statements.work_split import WorkSplit, work_splits
from shardviz.planner.states.bounds import MoveBounds
from shardviz.planner.states.moves import Axes, State, StateSpace
from shardviz.planner.states.paths import PathSearch
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

    @cached_property
    def _bounds(self) -> MoveBounds:
        return MoveBounds(self._space, self._prices)

    def ways(
        self,
        part: Statement,
        operands: Sequence[PathSearch],
        uneven: Collection[tuple[str, Axes]] = (),
        splits: Collection[tuple[str, str]] | None = None,
    ) -> dict[State, Way]:
        """For each state in which the statement can leave its result, before any move, the cheapest way to
        there. `operands` are searches from the states in which the operands are; for the others see
        `work_splits`."""
        found: dict[State, Way] = {}
        pending = [search.pending for search in operands]
        for split in work_splits(part, pending, self._space.sizes, uneven, splits):
            cost = self.work(part, split)
            for place, (search, needed) in enumerate(zip(operands, split.operands, strict=True)):
                moved = search.cost(needed)
                if moved is None:
                    break
                cost += moved
                if place == 0:
                    cost += self._prices.of_first(search.added(needed))
            else:
                known = found.get(split.result)
                if known is None or cost < known.cost:
                    found[split.result] = Way(cost, split)
        return found

    def best(
        self,
        part: Statement,
        operands: Sequence[PathSearch],
        ends: PathSearch,
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
        candidates: list[tuple[Cost, int, Cost, WorkSplit]] = []
        bounds: list[dict[State, Cost]] = [{} for _ in searches]
        for number, split in enumerate(
            work_splits(part, [search.pending for search in operands], self._space.sizes, uneven, splits)
        ):
            if kept is not None and not set(kept[1]) <= set(split.assignment.get(kept[0], ())):
                continue
            work = least = self.work(part, split)
            for search, known, state in zip(searches, bounds, (*split.operands, split.result), strict=True):
                bound = known.get(state)
                if bound is None:
                    bound = known[state] = search.least(state, self._bounds)
                least += bound
            if least < limit:
                candidates.append((least, number, work, split))
        candidates.sort()
        for least, _, work, split in candidates:
            if least >= limit:
                break
            cost = self._within(searches, split, work, limit)
            if cost is not None:
                found, limit = Way(cost, split), cost
        return found

    def _within(
        self, searches: Sequence[PathSearch], split: WorkSplit, work: Cost, limit: Cost
    ) -> Cost | None:
        """The cost of a way; None where it is not less than `limit`."""
        states = (*split.operands, split.result)
        bounds = [search.least(state, self._bounds) for search, state in zip(searches, states, strict=True)]
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
        flops = statement_flops(part, operands, result)
        return self._prices.work(flops, statement_traffic(part, operands, result), matmul_dtype(part))

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
