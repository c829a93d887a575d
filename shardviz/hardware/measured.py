"""Times of collectives as they were measured: lines that stand for the formulas.

A collective over a group takes the same time over any other group with the same links. So what was measured
over an axis of one mesh holds for each axis of another mesh that lies on such links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shardviz.hardware.levels import LinkLevel

COLLECTIVES = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
"""The collectives that are measured, by JAX's names, with HLO's."""

Levels = tuple[LinkLevel, ...]


@dataclass(frozen=True)
class Regime:
    """A straight line of time over size: from `start` bytes on, V bytes take `latency` seconds and V over
    `bandwidth`, which is in bytes a second. The errors are standard errors of the fit, in the same units."""

    start: int
    latency: float
    bandwidth: float
    latency_error: float = 0.0
    bandwidth_error: float = 0.0

    def seconds(self, size: float) -> float:
        """Seconds of so many bytes."""
        return self.latency + size / self.bandwidth


@dataclass(frozen=True)
class MeasuredTimes:
    """A collective over the groups along some axes of a mesh, measured over a range of sizes.

    `op` is JAX's name. `regimes` begin with small sizes; the first and the last also hold beyond what was
    measured. `noise` is the usual spread of a time over its median, None where it is not known. `links` are
    the levels of these groups.
    """

    op: str
    mesh: str
    axes: tuple[str, ...]
    regimes: tuple[Regime, ...]
    links: Levels
    dtype: str = ""
    noise: float | None = None

    def regime(self, size: float) -> Regime:
        """The line on which a size lies."""
        return next((regime for regime in reversed(self.regimes) if regime.start <= size), self.regimes[0])

    def seconds(self, size: float) -> float:
        """Seconds of so many bytes, which are as few as those of the regimes before, or more."""
        before = (one.seconds(after.start) for one, after in pairwise(self.regimes) if after.start <= size)
        return max([self.regime(size).seconds(size), *before])

    def is_of(self, op: str, links: Levels) -> bool:
        """Return whether it is HLO's operation `op` over groups with such links."""
        return COLLECTIVES[self.op] == op and self.links == links


def links_alike(levels: Sequence[LinkLevel]) -> Levels:
    """The levels without their names: groups of which these are equal have the same links."""
    return tuple(replace(level, name="") for level in levels)


def measured_times(
    op: str, levels: Sequence[LinkLevel], measured: Sequence[MeasuredTimes]
) -> tuple[MeasuredTimes, ...]:
    """All that was measured of HLO's operation `op` over groups with such links, maybe along several axes."""
    if all(COLLECTIVES[times.op] != op for times in measured):
        return ()
    links = links_alike([level for level in levels if level.size > 1])
    return tuple(times for times in measured if times.is_of(op, links))


def corners(measured: Sequence[MeasuredTimes]) -> Iterator[int]:
    """The sizes at which a regime ends or begins."""
    for times in measured:
        for regime in times.regimes[1:]:
            yield from (regime.start - 1, regime.start)
