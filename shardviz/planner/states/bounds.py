"""The least that any move takes, by the collective that is fastest at it."""

from __future__ import annotations

from itertools import combinations
from math import inf

from shardviz.hardware.measured import corners
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.prices import LARGE, Prices

SAFETY = 1 - 1e-6
"""By how much less a bound is than it is calculated to be, as numbers are rounded."""


def fastest_collective(space: StateSpace, prices: Prices) -> tuple[float, float]:
    """Bytes a second that a device receives at most, and seconds of the quickest collective."""
    names = tuple(space.sizes)
    rate, latency = 0.0, inf
    # A line has its best rate at its end.
    sizes = {LARGE, *corners(prices.placed.machine.measured)}
    for axes in (axes for count in range(1, len(names) + 1) for axes in combinations(names, count)):
        whole, n = space.whole(axes), space.group_size(axes)
        for op in ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute"):
            latency = min(latency, prices.collective_seconds(op, whole, 1))
            times_received = 1.0 if op == "ppermute" else (n - 1) / n * (2 if op == "psum" else 1)
            for size in sizes:
                seconds = prices.collective_seconds(op, whole, size)
                rate = max(rate, times_received * size / seconds if seconds else inf)
    return rate, latency
