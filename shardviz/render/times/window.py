"""A stretch of a timeline's drawn clock, and round numbers to read it by."""

from __future__ import annotations

import math
from dataclasses import dataclass

UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
MAX_DECIMALS = 4
"""Of a tick; where it needs more, it is in the next smaller unit."""
SMALLEST = 1e-10
"""Seconds of the narrowest window."""
GAP = 3
"""Columns between two ticks' labels at least."""


@dataclass(frozen=True)
class TimeWindow:
    """Seconds `start` to `end` of a drawn clock that ends at `limit`; none of it lies outside."""

    start: float
    end: float
    limit: float

    @classmethod
    def whole(cls, drawn_seconds: float) -> TimeWindow:
        """All of a drawn clock, or of a nanosecond where nothing takes time."""
        limit = drawn_seconds if drawn_seconds > 0 else 1e-9
        return cls(0.0, limit, limit)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def zoom(self, factor: float, at: float = 0.5) -> TimeWindow:
        """A window `factor` times as long, in which the time at the share `at` of this one stays in place."""
        length = min(max(self.seconds * factor, SMALLEST), self.limit)
        return self._from(self.start + (self.seconds - length) * at, length)

    def pan(self, share: float) -> TimeWindow:
        """The window moved by a share of its length: later, or earlier where it is negative."""
        return self._from(self.start + self.seconds * share, self.seconds)

    def around(self, start: float, end: float, share: float = 0.5) -> TimeWindow:
        """A window in the middle of which `start` to `end` take this share."""
        length = min(max((end - start) / share, SMALLEST), self.limit)
        return self._from((start + end - length) / 2, length)

    def containing(self, start: float, end: float) -> TimeWindow:
        """The window as it is if it shows `start` to `end`, else moved, and widened where that is longer."""
        if self.start <= start and end <= self.end:
            return self
        if end - start > self.seconds:
            return self.around(start, end, 0.9)
        return self._from((start + end - self.seconds) / 2, self.seconds)

    def _from(self, start: float, length: float) -> TimeWindow:
        start = min(max(start, 0.0), self.limit - length)
        return TimeWindow(start, start + length, self.limit)


def ticks(window: TimeWindow, width: int) -> list[tuple[float, str]]:
    """Round times in a window of `width` columns, as many as have room, each with its label: ``20 ms``."""
    least = window.seconds / max(width, 1)
    power = math.floor(math.log10(least))
    steps = (digit * 10.0**exponent for exponent in range(power, power + 9) for digit in (1, 2, 5))
    for step in steps:
        if step < least:
            continue
        unit, decimals = _unit(window.end, step)
        longest = len(_label(window.end, unit, decimals))
        if step / least >= longest + GAP:
            first, last = math.ceil(window.start / step - 1e-9), math.floor(window.end / step + 1e-9)
            return [(n * step, _label(n * step, unit, decimals)) for n in range(first, last + 1)]
    return []


def _unit(end: float, step: float) -> tuple[int, int]:
    """The number of the unit and the decimals that ticks `step` apart need up to `end`."""
    number = next((i for i, (_, size) in enumerate(UNITS) if end >= size * 0.9995), len(UNITS) - 1)
    while True:
        decimals = max(0, math.ceil(-math.log10(step / UNITS[number][1]) - 1e-9))
        if decimals <= MAX_DECIMALS or number == len(UNITS) - 1:
            return number, decimals
        number += 1


def _label(time: float, unit: int, decimals: int) -> str:
    name, size = UNITS[unit]
    return f"{time / size:,.{decimals}f} {name}" if time else "0"
