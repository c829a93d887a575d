"""The ways to run one statement: each state in which it can leave its result, at the least cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from shardviz.planner.local_work import matmul_dtype, statement_flops, statement_traffic
from shardviz.planner.moves import Axes, State, StateSpace
from shardviz.planner.paths import PathSearch
from shardviz.planner.prices import Cost, Prices
from shardviz.planner.problem import Statement
from shardviz.planner.work_split import WorkSplit, work_splits


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
                cost += self._prices.as_first(moved) if place == 0 and search.is_argument else moved
            else:
                known = found.get(split.result)
                if known is None or cost < known.cost:
                    found[split.result] = Way(cost, split)
        return found

    def work(self, part: Statement, split: WorkSplit) -> Cost:
        """The cost of the local work."""
        group = self._space.group_size
        *operands, result = (
            tuple([-(-size // group(axes)) for size, axes in zip(array.shape, dims, strict=True)])
            for array, (dims, _) in zip(
                (*part.operands, part.result), (*split.operands, split.result), strict=True
            )
        )
        flops = statement_flops(part, operands, result)
        return self._prices.work(flops, statement_traffic(part, operands, result), matmul_dtype(part))
