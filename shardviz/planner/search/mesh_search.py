"""The best sharding of a program's arrays on one mesh, within the memory of a device.

Communication that gathers parameters or reduces their gradients can run beside the work of other layers; that
of activations stands between two statements of a layer. By default the first is hidden behind the work of its
pass (`priced_plan`) as far as that lasts, and the second is waited for. ``none`` hides nothing; ``all`` hides
everything, as "How to Scale Your Model" counts.

Where one thing hides another the time of a step cannot be added up, and memory is a limit: both are brought
into sums by multipliers (Lagrangian relaxation: Everett 1963). For any multipliers the least sum is a bound
that no sharding is faster than; the best sharding met on the way is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from shardviz.planner.pricing.priced_plan import Passes, by_pass, overlapped, sums_of
from shardviz.planner.search.program_tables import Multipliers, ProgramSharding, ProgramTables
from shardviz.planner.states.moves import Axes

Overlap = Literal["none", "parameters", "all"]
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
LITTLE = 1e-3
"""The least weight of a side of the longer of two, so that of equal sums the one with less of it is
chosen."""
HALVINGS = 8
"""How often the range of the price of memory is halved."""
MAX_SHARES = 8
"""Shares of hidden communication that are tried."""
LITTLES = LITTLE, LITTLE
"""The least weight of each pass."""
ROUNDING = 1e-9
"""The part of a sum by which it may be wrong."""
CLOSE = 1e-3
"""A sharding within this part of its bound is not improved."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step of one device: local `work`; all `communication` by the axes of its groups;
    `exposed`, the part of it that is not hidden; `bubble`, what a pipeline waits."""

    work: float
    communication: tuple[tuple[Axes, float], ...]
    exposed: float
    bubble: float
    seconds: float

    @property
    def communication_seconds(self) -> float:
        return sum(seconds for _, seconds in self.communication)


def step_time(sharding: ProgramSharding, overlap: Overlap, layers: float, bubble: float = 0.0) -> StepTime:
    """The time of so many layers on each device; `bubble` is what a pipeline waits, as a part of the rest."""
    work, hidden, waited = overlapping(sharding, overlap)
    busy = (overlapped(work, hidden) + sum(waited)) * layers
    by_axes = sums_of((axes, seconds * layers) for _, axes, seconds in (*sharding.exposed, *sharding.hidden))
    local = sum(work) * layers
    return StepTime(local, tuple(by_axes.items()), busy - local, busy * bubble, busy * (1 + bubble))


def overlapping(sharding: ProgramSharding, overlap: Overlap) -> tuple[Passes, Passes, Passes]:
    """By pass the seconds of one layer's work, of the communication that it can hide, and of all other."""
    exposed, hidden = (
        by_pass((phase, seconds) for phase, _, seconds in each)
        for each in (sharding.exposed, sharding.hidden)
    )
    every = exposed[0] + hidden[0], exposed[1] + hidden[1]
    none = 0.0, 0.0
    return sharding.work, *{"none": (none, every), "all": (every, none), "parameters": (hidden, exposed)}[
        overlap
    ]


def multipliers(overlap: Overlap, shares: Passes, memory: float) -> Multipliers:
    """Weights whose least sum is a bound on the time of a step: of the longer of work and hidden
    communication they take, in each pass, the part `shares` of the second, and of the first the rest."""
    if overlap == "none":
        return Multipliers(memory=memory)
    work = max(1 - shares[0], LITTLE), max(1 - shares[1], LITTLE)
    hidden = max(shares[0], LITTLE), max(shares[1], LITTLE)
    return Multipliers(work, hidden if overlap == "all" else (1.0, 1.0), hidden, memory)


@dataclass(frozen=True)
class StepSharding:
    """A sharding with the time of its step, and the least that any on this mesh could have (seconds)."""

    sharding: ProgramSharding
    time: StepTime
    least: float


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
        sharding = self._fastest(high)
        for _ in range(HALVINGS):
            if self._fits(sharding):
                break
            low, high = high, high * 16
            sharding = self._fastest(high)
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5 if low else high / 16
            each = self._fastest(middle)
            if self._fits(each):
                high = middle
                sharding = min(sharding, each, key=lambda one: one.time.seconds)
            else:
                low = middle
        return replace(sharding, least=free.least) if self._fits(sharding) else None

    def smallest(self) -> ProgramSharding:
        """The sharding that holds the least."""
        return self.tables.best(Multipliers(LITTLES, LITTLES, LITTLES, memory=1.0))[1]

    def _fits(self, sharding: StepSharding) -> bool:
        return self.limit is None or sharding.sharding.memory <= self.limit

    def _fastest(self, price: float) -> StepSharding:
        """The fastest where each byte of memory adds `price` seconds."""
        sharding = low = self._least((0.0, 0.0), price)
        work, hidden, _ = overlapping(sharding.sharding, self.overlap)
        # The passes in which communication stands out; of the other the sum is that of its work.
        full: Passes = float(hidden[0] > work[0]), float(hidden[1] > work[1])
        if not any(full):
            return sharding
        share, high = 1.0, None
        for _ in range(MAX_SHARES):
            each = self._least(_scaled(full, share), price)
            is_faster = self._cost(each, price) < self._cost(sharding, price)
            sharding = replace(each if is_faster else sharding, least=max(sharding.least, each.least))
            # Each sharding's sum is a line over the share; the bound is highest where the lines cross.
            low_sum, own_sum = (self._sum(one, _scaled(full, share), price) for one in (low, each))
            is_top = high is not None and own_sum >= low_sum * (1 - ROUNDING)
            rises = self._sum(each, full, price) > self._sum(each, (0.0, 0.0), price)
            is_close = sharding.time.seconds <= sharding.least * (1 + CLOSE)
            if is_close or is_top or (high is None and rises):
                break
            low, high = (each, high) if high and rises else (low, each)
            share = self._crossing(low, high, full, price)
        return sharding

    def _sum(self, sharding: StepSharding, shares: Passes, price: float) -> float:
        """The sum by multipliers of a sharding, in seconds."""
        layer = sum(
            (1 - share) * work + share * hidden + waited
            for share, work, hidden, waited in zip(
                shares, *overlapping(sharding.sharding, self.overlap), strict=True
            )
        )
        return layer * self.layers + price * sharding.sharding.memory

    def _crossing(self, low: StepSharding, high: StepSharding, full: Passes, price: float) -> float:
        """The part of the shares `full` at which the sums of two shardings are equal."""
        (at_none, at_all), (other_none, other_all) = (
            (self._sum(sharding, (0.0, 0.0), price), self._sum(sharding, full, price))
            for sharding in (low, high)
        )
        rise = (at_all - at_none) - (other_all - other_none)
        return min(1.0, max(0.0, (other_none - at_none) / rise)) if rise > 0 else 0.5

    def _least(self, shares: Passes, price: float) -> StepSharding:
        """The sharding whose sum by multipliers is least."""
        bound, sharding = self.tables.best(multipliers(self.overlap, shares, price / self.layers))
        time = step_time(sharding, self.overlap, self.layers, self.bubble)
        least = 0.0 if price else bound * self.layers * (1 + self.bubble) / (1 + LITTLE)
        return StepSharding(sharding, time, least)

    def _cost(self, sharding: StepSharding, price: float) -> tuple[float, float]:
        time = sharding.time
        return time.seconds + price * sharding.sharding.memory, time.communication_seconds


def _scaled(shares: Passes, part: float) -> Passes:
    return shares[0] * part, shares[1] * part
