"""The best sharding of a program's arrays on one mesh, within the memory of a device.

The time of a step is no sum where one thing hides another, and memory is a limit: both are brought into sums by
multipliers (Lagrangian relaxation: Everett 1963). For any multipliers the least sum is a bound that no
sharding is faster than; the best sharding met on the way is the answer, with what it may lack of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.planner.search.program_tables import ProgramSharding, ProgramTables
from shardviz.planner.search.step_time import LITTLE, Overlap, StepTime, multipliers, step_time

SHARES, PRICES = 6, 8
"""How often each multiplier is halved in."""
CLOSE = 1e-3
"""A sharding within this part of the bound is as good as the best."""


@dataclass(frozen=True)
class StepSharding:
    """A sharding with the time of its step, and the least that any on this mesh could have (seconds)."""

    sharding: ProgramSharding
    time: StepTime
    least: float


@dataclass(frozen=True)
class MeshSearch:
    """The search on one mesh: `layers` are those of a device, `limit` the bytes that it may hold, if known."""

    tables: ProgramTables
    overlap: Overlap
    layers: float
    bubble: float
    limit: int | None

    def best(self) -> StepSharding | None:
        """The fastest that fits; None where none does."""
        free = self._fastest(0.0)
        if self.limit is None or free.sharding.memory <= self.limit:
            return free
        low, high = 0.0, free.time.seconds / self.limit
        found = self._fastest(high)
        for _ in range(PRICES):
            if found.sharding.memory <= self.limit:
                break
            low, high = high, high * 16
            found = self._fastest(high)
        if found.sharding.memory > self.limit:
            return None
        for _ in range(PRICES):
            middle = (low * high) ** 0.5 if low else high / 16
            each = self._fastest(middle)
            if each.sharding.memory <= self.limit:
                high = middle
                found = min(found, each, key=lambda one: one.time.seconds)
            else:
                low = middle
            if found.time.seconds <= free.least * (1 + CLOSE):
                break
        return StepSharding(found.sharding, found.time, free.least)

    def smallest(self) -> ProgramSharding:
        """The sharding that holds the least."""
        return self.tables.best(multipliers("none", 0.0, 1.0))[1]

    def _fastest(self, memory: float) -> StepSharding:
        """The fastest where a byte costs `memory` seconds."""
        low, high = 0.0, 1.0
        best: StepSharding | None = None
        least = 0.0
        for number in range(SHARES):
            share = 0.0 if number == 0 else 1.0 if number == 1 else (low + high) / 2
            bound, sharding = self.tables.best(multipliers(self.overlap, share, memory / self.layers))
            time = step_time(sharding, self.overlap, self.layers, self.bubble)
            if not memory:
                least = max(least, bound * self.layers * (1 + self.bubble) * (1 - LITTLE))
            each = StepSharding(sharding, time, least)
            if best is None or self._key(each, memory) < self._key(best, memory):
                best = each
            hidden = sum(sharding.hidden.values()) + sum(sharding.exposed.values()) * (self.overlap == "all")
            if self.overlap == "none" or best.time.seconds <= least * (1 + CLOSE):
                break
            if number > 1 and hidden > sharding.work:
                low = share
            elif number > 1:
                high = share
            elif (hidden > sharding.work) == bool(number):
                # The longer side is the one that counted: this is the best.
                break
        assert best is not None
        return StepSharding(best.sharding, best.time, least)

    def _key(self, each: StepSharding, memory: float) -> tuple[float, float]:
        sharding = each.sharding
        return each.time.seconds + memory * sharding.memory, each.time.communication_seconds
