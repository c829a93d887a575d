"""Sets of time as stretches that neither overlap nor touch, in order: ``[(start, end), …]``.

Times are whole picoseconds, so that sums are exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

Stretch = tuple[int, int]
PICO = 1e-12
"""Seconds of a picosecond."""


def union(stretches: Iterable[Stretch]) -> list[Stretch]:
    """All that some stretch covers."""
    found: list[Stretch] = []
    last = None
    for start, end in sorted(stretches):
        if end <= start:
            continue
        if last is not None and start <= last:
            if end > last:
                found[-1] = found[-1][0], end
                last = end
            continue
        found.append((start, end))
        last = end
    return found


def total(stretches: Sequence[Stretch]) -> int:
    """The length of a union."""
    return sum(end - start for start, end in stretches)


class Covered:
    """A union, of which the part between any two times is known at once."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._starts = [start for start, _ in stretches]
        self._ends = [end for _, end in stretches]
        self._before = [0, *accumulate(end - start for start, end in stretches)]

    def within(self, start: int, end: int) -> int:
        """The length of what it covers between two times."""
        return self._until(end) - self._until(start)

    def _until(self, time: int) -> int:
        place = bisect_right(self._starts, time) - 1
        if place < 0:
            return 0
        return self._before[place] + min(time, self._ends[place]) - self._starts[place]
