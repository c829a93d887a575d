"""The best sharding of a program's arrays on one mesh, within the memory of a device.

Where one thing hides another the time of a step cannot be added up, and memory is a limit: multipliers bring
both into sums (Lagrangian relaxation: Everett 1963). A step of work w and of communication c that it can hide
takes max(w, c), at least (1 - s)·w + s·c for any share s from 0 to 1. So for any multipliers the least sum is
a bound for all shardings on a mesh; the best sharding met on the way is the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, TypeVar

from shardviz.planner.pricing.priced_plan import Passes, overlapped
from shardviz.planner.search.least_sum import TooWideError
from shardviz.planner.search.program_space import ProgramSpaces
from shardviz.planner.search.program_tables import (
    Multipliers,
    PlacedProgram,
    ProgramSharding,
    ProgramTables,
    least_shardings,
    priced,
)
from shardviz.planner.search.question import Overlap
from shardviz.planner.states.moves import Axes

LITTLE = 1e-3
"""The least weight of a side of the longer of two: of equal sums the one with less of it is chosen."""
HALVINGS = 8
"""How often the range of the price of memory is halved."""
FEW = 2
"""The same on a mesh that is slow."""
MAX_SHARES = 8
"""Shares of hidden communication that are tried."""
ROUNDING = 1e-9
"""The part of a sum by which it may be wrong."""
CLOSE = 1e-3
"""A sharding within this part of its bound is not improved."""
SLOW = 2.0
"""A mesh that takes as many times the best one's seconds is slow: no batch is taken in parts there."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step of one device: local `work`; all `communication` by the axes of its groups, none
    for that with the host; `exposed`, the part of it that is not hidden; `bubble`, what a pipeline waits."""

    work: float
    communication: tuple[tuple[Axes, float], ...]
    exposed: float
    bubble: float
    seconds: float

    @property
    def communication_seconds(self) -> float:
        return sum(seconds for _, seconds in self.communication)


def step_time(sharding: ProgramSharding, overlap: Overlap, layers: float, bubble: float = 0.0) -> StepTime:
    """The time of so many layers on each device, all communication together; `bubble` is what a pipeline
    waits, as a part of the rest."""
    work, hidden, waited = overlapping(sharding, overlap)
    busy = (overlapped(work, hidden) + sum(waited)) * layers
    sent = (sum(sharding.exposed) + sum(sharding.hidden)) * layers
    local = sum(work) * layers
    return StepTime(local, (((), sent),), busy - local, busy * bubble, busy * (1 + bubble))


def overlapping(sharding: ProgramSharding, overlap: Overlap) -> tuple[Passes, Passes, Passes]:
    """By pass the seconds of one layer's work, of the communication that it can hide, and of all other."""
    exposed, hidden = sharding.exposed, sharding.hidden
    if overlap == "parameters":
        return sharding.work, hidden, exposed
    every, none = (exposed[0] + hidden[0], exposed[1] + hidden[1]), (0.0, 0.0)
    return (sharding.work, none, every) if overlap == "none" else (sharding.work, every, none)


Request = PlacedProgram | tuple[ProgramTables, Multipliers]
"""What a search asks for: the tables of a program, or their least sum and a sharding that has it."""
Result = TypeVar("Result")
Search = Generator[Request, Any, Result]


def side_by_side(searches: Sequence[Search[Result]]) -> Iterator[Result | None]:
    """The result of each search as it ends, and None each time before what all others ask for next is found
    at once."""
    answers: list[tuple[Search[Result], Any]] = [(search, None) for search in searches]
    while answers:
        asked = []
        for search, answer in answers:
            is_error = isinstance(answer, TooWideError)
            try:
                asked.append((search, search.throw(answer) if is_error else search.send(answer)))
            except StopIteration as end:
                yield end.value
        if asked:
            yield None
        tables = iter(priced([one for _, one in asked if isinstance(one, PlacedProgram)]))
        sums = iter(least_shardings([one for _, one in asked if not isinstance(one, PlacedProgram)]))
        answers = [
            (search, next(tables if isinstance(one, PlacedProgram) else sums)) for search, one in asked
        ]


@dataclass
class SharedState:
    """The spaces of programs, which meshes share, and the `seconds` of the fastest step so far on any."""

    seconds: float = inf
    spaces: ProgramSpaces = field(default_factory=ProgramSpaces)

    @property
    def slow(self) -> float:
        """The seconds from which a mesh is looked at less closely."""
        return SLOW * self.seconds


@dataclass(frozen=True)
class StepSharding:
    """A sharding with the time of its step, and the least that any on this mesh could have in seconds. One
    that `is_limited` was chosen for its memory."""

    sharding: ProgramSharding
    time: StepTime
    least: float
    is_limited: bool = False


class TooLarge(NamedTuple):
    """The sharding of a mesh that holds the least, which is too much, and the least seconds of any."""

    smallest: ProgramSharding
    least: float


@dataclass(frozen=True)
class MeshSearch:
    """The search on one mesh: `layers` are those of a device, `limit` the bytes that it may hold, if known;
    `bubble` is what a pipeline waits, as a part of the rest. A mesh where a step takes much longer than on
    others is looked at less closely; what cannot take less than `known` seconds is left."""

    tables: ProgramTables
    overlap: Overlap
    layers: float
    bubble: float
    limit: int | None
    shared: SharedState = field(default_factory=SharedState)
    ends: ProgramSharding | None = None
    known: float = inf

    def best(self) -> Search[StepSharding | TooLarge]:
        """The fastest that fits, if any does."""
        free = yield from self._fastest(0.0, self.known)
        if self._fits(free) or self.limit is None:
            return free
        fastest = yield from self.smallest()
        if isinstance(fastest, TooLarge):
            return TooLarge(fastest.smallest, free.least)
        low, high, is_between = 0.0, free.time.seconds / self.limit, False
        left = halvings = HALVINGS if free.least < self.shared.slow else FEW
        most, least = min(self.known, fastest.time.seconds), free.least
        while left and least <= most:
            price = high if not is_between else (low * high) ** 0.5 if low else high / 16
            candidate = yield from self._fastest(price, most)
            fits, left, least = self._fits(candidate), left - 1, candidate.least
            if fits:
                high, most = price, min(most, candidate.time.seconds)
                fastest = min(fastest, candidate, key=lambda one: one.time.seconds)
            else:
                low, high = price, high if is_between else 16 * price
            if not is_between and (fits or not left):
                is_between, left = True, halvings
        return replace(fastest, least=free.least, is_limited=True)

    def smallest(self) -> Search[StepSharding | TooLarge]:
        """That of the least memory, if it fits."""
        little = LITTLE, LITTLE
        _, smallest = yield from self._with_ends(Multipliers(little, little, little, memory=1.0))
        if self.limit is not None and smallest.memory > self.limit:
            return TooLarge(smallest, 0.0)
        return StepSharding(smallest, step_time(smallest, self.overlap, self.layers, self.bubble), 0.0)

    def _with_ends(self, by: Multipliers) -> Search[tuple[float, ProgramSharding]]:
        """The least sum of a layer and its part of the ends, and a sharding that has it."""
        bound, sharding = yield self.tables, by
        if self.ends is None:
            return bound, sharding
        once = 1 / (self.layers * self.tables.program.stage.stages)
        return bound + once * self.ends.seconds(by), sharding.beside(self.ends, once, is_last=True)

    def _fits(self, sharding: StepSharding) -> bool:
        fits = self.limit is None or sharding.sharding.memory <= self.limit
        if fits:
            self.shared.seconds = min(self.shared.seconds, sharding.time.seconds)
        return fits

    def _fastest(self, price: float, most: float) -> Search[StepSharding]:
        """The fastest where each byte of memory adds `price` seconds, or one of a sum that shows that none
        which fits takes `most` seconds or less."""
        sharding = low = yield from self._least((0.0, 0.0), price)
        work, hidden, _ = overlapping(sharding.sharding, self.overlap)
        # The passes in which communication stands out; of the other the sum is that of its work.
        full: Passes = float(hidden[0] > work[0]), float(hidden[1] > work[1])
        if not any(full) or sharding.least > most:
            return sharding
        share, high = 1.0, None
        for _ in range(MAX_SHARES):
            shares = full[0] * share, full[1] * share
            trial = yield from self._least(shares, price)
            is_faster = self._cost(trial, price) < self._cost(sharding, price)
            sharding = replace(trial if is_faster else sharding, least=max(sharding.least, trial.least))
            # Each sharding's sum is a line over the share; the bound is highest where the lines cross.
            low_sum, own_sum = (self._sum(one, shares, price) for one in (low, trial))
            is_top = high is not None and own_sum >= low_sum * (1 - ROUNDING)
            rises = self._sum(trial, full, price) > self._sum(trial, (0.0, 0.0), price)
            is_close = not price and sharding.time.seconds <= sharding.least * (1 + CLOSE)
            if sharding.least > most or is_close or is_top or (high is None and rises):
                break
            low, high = (trial, high) if high and rises else (low, trial)
            share = self._crossing(low, high, full, price)
        return sharding

    def _sum(self, sharding: StepSharding, shares: Passes, price: float) -> float:
        """The sum by multipliers of a sharding, in seconds."""
        sides = zip(shares, *overlapping(sharding.sharding, self.overlap), strict=True)
        layer = sum((1 - share) * work + share * hidden + waited for share, work, hidden, waited in sides)
        return layer * self.layers + price * sharding.sharding.memory

    def _crossing(self, low: StepSharding, high: StepSharding, full: Passes, price: float) -> float:
        """The part of the shares `full` at which the sums of two shardings are equal."""
        (at_none, at_all), (other_none, other_all) = (
            (self._sum(sharding, (0.0, 0.0), price), self._sum(sharding, full, price))
            for sharding in (low, high)
        )
        rise = (at_all - at_none) - (other_all - other_none)
        return min(1.0, max(0.0, (other_none - at_none) / rise)) if rise > 0 else 0.5

    def _least(self, shares: Passes, price: float) -> Search[StepSharding]:
        """The sharding whose sum by multipliers is least: of the longer of work and hidden communication they
        take the part `shares` of the second, and of the first the rest. It bounds the time of what fits."""
        work = hidden = exposed = (1.0, 1.0)
        if self.overlap != "none":
            work = max(1 - shares[0], LITTLE), max(1 - shares[1], LITTLE)
            hidden = max(shares[0], LITTLE), max(shares[1], LITTLE)
            exposed = hidden if self.overlap == "all" else exposed
        by = Multipliers(work, exposed, hidden, price / self.layers)
        bound, sharding = yield from self._with_ends(by)
        time = step_time(sharding, self.overlap, self.layers, self.bubble)
        # What fits holds no more than the limit, beside gradients that take the place of activations.
        held = price * (self.limit or 0) * (1 + (self.tables.program.stage.microbatches == 1))
        least = (bound * self.layers - held) * (1 + self.bubble) / (1 + LITTLE)
        return StepSharding(sharding, time, least)

    def _cost(self, sharding: StepSharding, price: float) -> tuple[float, float]:
        time = sharding.time
        return time.seconds + price * sharding.sharding.memory, time.communication_seconds
