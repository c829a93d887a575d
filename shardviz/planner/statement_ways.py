"""The ways to run one statement: each state in which it can leave its result, at the least cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from shardviz.planner.costs import statement_flops
from shardviz.planner.moves import Axes, State, StateSpace
from shardviz.planner.paths import PathSearch
from shardviz.planner.prices import Cost, Prices
from shardviz.planner.problem import Statement
from shardviz.planner.work_split import WorkSplit, work_splits
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
        local: dict[str, int] = {}
        bytes_ = 0
        states = (*split.operands, split.result)
        for number, (array, (dims, _)) in enumerate(zip((*part.operands, part.result), states, strict=True)):
            shape = [
                -(-size // self._space.group_size(axes)) for size, axes in zip(array.shape, dims, strict=True)
            ]
            bytes_ += array_bytes(shape, array.dtype)
            if number < len(part.operands):
                local.update(zip(array.dims, shape, strict=True))
        flops = statement_flops(part, math.prod(local.values()))
        return self._prices.work(flops, bytes_, part.result.dtype)
