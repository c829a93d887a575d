"""The way not taken: what a plan would cost if an operand of a statement kept a split that it loses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from shardviz.planner.problem import Objective, Statement
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import Axes
from shardviz.planner.states.paths import UNREACHABLE, ArrayPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import PartitionSpec
from shardviz.units import estimated_seconds, exact_bytes

MOST_COMPARED = 3
"""Parts of axes up to which another way to split the work is looked for."""


NOTICED = 1e-8
"""Seconds; two ways that differ by less take as long."""


@dataclass(frozen=True)
class OtherWay:
    """The best of the ways that keep a split, against the one that was chosen: seconds and wire bytes of a
    device more, negative where they are less. `gathered` are the operands that it gathers and does not move
    otherwise."""

    seconds: float
    wire_bytes: int
    gathered: frozenset[str]
    objective: Objective

    def more(self) -> str:
        """Such as ``would take 43 µs more and send 96 bytes more``; "" where it would cost no more by the
        plan's objective, as within a margin it may."""
        time = estimated_seconds(abs(self.seconds))
        sent = exact_bytes(abs(self.wire_bytes))
        is_alike = abs(self.seconds) < NOTICED
        if self.objective == "bytes":
            less = f", though it would take {time} less" if self.seconds < 0 and not is_alike else ""
            return f"would send {sent} more{less}" if self.wire_bytes > 0 else ""
        if self.seconds >= 0 and is_alike and self.wire_bytes > 0:
            return f"would take as long and send {sent} more"
        if self.seconds <= 0:
            return ""
        rest = f" and send {sent} more" if self.wire_bytes else ""
        if self.wire_bytes < 0:
            rest = f", though it would send {sent} less"
        return f"would take {time} more{rest}"


def cost_of_other_way(prices: Prices, other: Cost, chosen: Cost, gathered: frozenset[str]) -> OtherWay:
    """A way by its cost against that of the chosen one."""
    own, instead = prices.parts(chosen), prices.parts(other)
    return OtherWay(
        instead.seconds - own.seconds, instead.wire_bytes - own.wire_bytes, gathered, prices.objective
    )


class WaysNotTaken(Protocol):
    """The other ways to plan a statement."""

    def keeping(self, dim: str, axes: Axes) -> OtherWay | None:
        """The best way that splits a dimension over axes while the devices compute; None where there is none,
        or where nobody looks for it because there are too many."""


@dataclass(frozen=True)
class OtherWays:
    """A statement as planned, with all that its work could be split by otherwise.

    `searches` are those of its operands, `ends` leads its result to where it may be left, or, of an
    intermediate, to where the plan has it next.
    """

    ways: StatementWays
    prices: Prices
    pool: AxisPool
    splits: Collection[tuple[str, str]] | None
    part: Statement
    chosen: WorkSplit
    searches: Sequence[ArrayPaths]
    ends: ArrayPaths

    def keeping(self, dim: str, axes: Axes) -> OtherWay | None:
        """As `WaysNotTaken` has it."""
        if len(self.pool.sizes) > MOST_COMPARED or dim in self.part.whole or self.part.merged:
            return None
        (own,), _ = self.pool.state(PartitionSpec((axes,)))
        way = self.ways.best(
            self.part, self.searches, self.ends, UNREACHABLE, self.pool.uneven, self.splits, (dim, own)
        )
        if way is None:
            return None
        gathered = frozenset(
            operand.name
            for operand, search, state in zip(
                self.part.operands, self.searches, way.split.operands, strict=True
            )
            if [move.op for move in search.path(state)[1]] == ["all_gather"]
        )
        return cost_of_other_way(self.prices, way.cost, self._cost(), gathered)

    def _cost(self) -> Cost:
        """The cost of the way that was chosen, from what its operands come from to the end."""
        total = self.ways.work(self.part, self.chosen)
        states = (*self.chosen.operands, self.chosen.result)
        for search, state in zip((*self.searches, self.ends), states, strict=True):
            total += search.cost(state) or 0
        return total
