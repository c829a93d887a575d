"""The best sharding of a program's arrays on one mesh, within the memory of a device.

Where one thing hides another the time of a step cannot be added up, and memory is a limit: both are brought
into sums by multipliers (Lagrangian relaxation: Everett 1963). For any multipliers the least sum is a bound
that no sharding is faster than; the best sharding met on the way is the answer, with what it may lack of the
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardviz.planner.search.program_tables import Multipliers, ProgramSharding, ProgramTables
from shardviz.planner.search.step_time import LITTLE, Overlap, StepTime, multipliers, step_time

HALVINGS = 8
"""How often the range of a multiplier is halved."""
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
        found = self._least(0.0, price)
        if self.overlap == "none" or not self._overflows(found):
            return found
        low, high = 0.0, 1.0
        for number in range(HALVINGS):
            share = (low + high) / 2 if number else 1.0
            each = self._least(share, price)
            is_faster = self._cost(each, price) < self._cost(found, price)
            found = replace(each if is_faster else found, least=max(found.least, each.least))
            if found.is_close:
                break
            if self._overflows(each):
                low = share
            else:
                high = share
        return found

    def _least(self, share: float, price: float) -> StepSharding:
        """The sharding whose sum by multipliers is least."""
        bound, sharding = self.tables.best(multipliers(self.overlap, share, price / self.layers))
        time = step_time(sharding, self.overlap, self.layers, self.bubble)
        least = 0.0 if price else bound * self.layers * (1 + self.bubble) / (1 + LITTLE)
        return StepSharding(sharding, time, least)

    def _overflows(self, found: StepSharding) -> bool:
        """Return whether there is more communication to hide than there is work to hide it behind."""
        sharding = found.sharding
        hidden = sum(sharding.hidden.values())
        return hidden + (self.overlap == "all") * sum(sharding.exposed.values()) > sharding.work

    def _cost(self, found: StepSharding, price: float) -> tuple[float, float]:
        time = found.time
        return time.seconds + price * found.sharding.memory, time.communication_seconds
