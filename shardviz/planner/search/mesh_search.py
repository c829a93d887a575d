"""The best sharding of a program's arrays on one mesh, within the memory of a device.

Where one thing hides another the time of a step cannot be added up, and memory is a limit: both are brought
into sums by multipliers (Lagrangian relaxation: Everett 1963). For any multipliers the least sum is a bound
that no sharding is faster than; the best sharding met on the way is the answer, with what it may lack of the
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardviz.planner.search.program_tables import Multipliers, ProgramSharding, ProgramTables
from shardviz.planner.search.step_time import LITTLE, Overlap, StepTime, multipliers, overlapping, step_time

HALVINGS = 8
"""How often the range of the price of memory is halved."""
MAX_SHARES = 8
"""Shares of hidden communication that are tried."""
ROUNDING = 1e-9
"""The part of a sum by which it may be wrong."""
CLOSE = 1e-3
"""A sharding within this part of its bound is not improved."""


@dataclass(frozen=True)
class StepSharding:
    """A sharding with the time of its step, and the least that any on this mesh could have (seconds)."""

    sharding: ProgramSharding
    time: StepTime
    least: float

    @property
    def is_close(self) -> bool:
        return self.time.seconds <= self.least * (1 + CLOSE)


@dataclass(frozen=True)
class MeshSearch:
    """The search on one mesh: `layers` are those of a device, `limit` the bytes that it may hold, if known;
    `bubble` is what a pipeline waits, as a part of the rest."""

    tables: ProgramTables
    overlap: Overlap
    layers: float
    bubble: float
    limit: int | None

    def best(self) -> StepSharding | None:
        """The fastest that fits; None where none does."""
        free = self._fastest(0.0)
        if self._fits(free):
            return free
        if self.limit is None or self.smallest().memory > self.limit:
            return None
        low, high = 0.0, free.time.seconds / self.limit
        found = self._fastest(high)
        for _ in range(HALVINGS):
            if self._fits(found):
                break
            low, high = high, high * 16
            found = self._fastest(high)
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5 if low else high / 16
            each = self._fastest(middle)
            if self._fits(each):
                high = middle
                found = min(found, each, key=lambda one: one.time.seconds)
            else:
                low = middle
        return replace(found, least=free.least) if self._fits(found) else None

    def smallest(self) -> ProgramSharding:
        """The sharding that holds the least."""
        return self.tables.best(Multipliers(LITTLE, LITTLE, LITTLE, memory=1.0))[1]

    def _fits(self, found: StepSharding) -> bool:
        return self.limit is None or found.sharding.memory <= self.limit

    def _fastest(self, price: float) -> StepSharding:
        """The fastest where each byte of memory adds `price` seconds."""
        found = low = self._least(0.0, price)
        if self.overlap == "none" or not self._overflows(found):
            return found
        share, high = 1.0, None
        for _ in range(MAX_SHARES):
            each = self._least(share, price)
            is_faster = self._cost(each, price) < self._cost(found, price)
            found = replace(each if is_faster else found, least=max(found.least, each.least))
            # Each sharding's sum is a line over the share; the bound is highest where the lines cross.
            is_top = high and self._sum(each, share, price) >= self._sum(low, share, price) * (1 - ROUNDING)
            if found.is_close or is_top or (high is None and self._overflows(each)):
                break
            low, high = (each, high) if high and self._overflows(each) else (low, each)
            share = self._crossing(low, high, price)
        return found

    def _sum(self, found: StepSharding, share: float, price: float) -> float:
        """The sum by multipliers of a sharding, in seconds."""
        work, hidden, waited = overlapping(found.sharding, self.overlap, self.layers)
        return (1 - share) * work + share * hidden + waited + price * found.sharding.memory

    def _crossing(self, low: StepSharding, high: StepSharding, price: float) -> float:
        """The share at which the sums of two shardings are equal."""
        (at_none, at_all), (other_none, other_all) = (
            (self._sum(each, 0.0, price), self._sum(each, 1.0, price)) for each in (low, high)
        )
        rise = (at_all - at_none) - (other_all - other_none)
        return min(1.0, max(0.0, (other_none - at_none) / rise)) if rise > 0 else 0.5

    def _least(self, share: float, price: float) -> StepSharding:
        """The sharding whose sum by multipliers is least."""
        bound, sharding = self.tables.best(multipliers(self.overlap, share, price / self.layers))
        time = step_time(sharding, self.overlap, self.layers, self.bubble)
        least = 0.0 if price else bound * self.layers * (1 + self.bubble) / (1 + LITTLE)
        return StepSharding(sharding, time, least)

    def _overflows(self, found: StepSharding) -> bool:
        """Return whether there is more communication to hide than there is work to hide it behind."""
        work, hidden, _ = overlapping(found.sharding, self.overlap, self.layers)
        return hidden > work

    def _cost(self, found: StepSharding, price: float) -> tuple[float, float]:
        time = found.time
        return time.seconds + price * found.sharding.memory, time.communication_seconds
