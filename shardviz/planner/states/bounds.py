"""The least cost of moving an array from one state to another, without looking for the moves."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from math import floor, inf

from shardviz.planner.pricing.prices import LARGE, Cost, Prices
from shardviz.planner.states.moves import Node, StateSpace

SAFETY = 1 - 1e-6
"""By how much less a bound is than it is calculated to be, as numbers are rounded."""


class MoveBounds:
    """Bounds for the moves over the axes of a space.

    A device must receive what it needs in the end and does not have in the beginning, and of pending sums has
    nothing yet. What devices with another coordinate on an axis have must come over the links of that axis,
    once for all devices of this coordinate that need the same. Neither is faster than the collective that is
    fastest at it, and the quickest collective takes its time.
    """

    def __init__(self, space: StateSpace, prices: Prices) -> None:
        self._space, self._prices = space, prices

    @cached_property
    def _fastest(self) -> tuple[float, float, dict[str, float]]:
        """Bytes a second that a device receives at most, seconds of the quickest collective, and bytes a
        second over each axis."""
        space, prices = self._space, self._prices
        names = tuple(space.sizes)
        groups = [axes for count in range(1, len(names) + 1) for axes in combinations(names, count)]
        rate, latency = 0.0, inf
        rates = dict.fromkeys(names, 0.0)
        for axes in groups:
            whole, n = space.whole(axes), space.group_size(axes)
            for op in ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute"):
                seconds = prices.collective_seconds(op, whole, LARGE)
                latency = min(latency, prices.collective_seconds(op, whole, 1))
                received = LARGE if op == "ppermute" else LARGE * (n - 1) / n * (2 if op == "psum" else 1)
                rate = max(rate, received / seconds if seconds else inf)
                for axis in axes:
                    crossing = _crossing(op, n, space.sizes[axis])
                    rates[axis] = max(rates[axis], LARGE * crossing / seconds if seconds else inf)
        return rate, latency, rates

    @property
    def fastest(self) -> tuple[float, float]:
        """Bytes a second that a device receives at most, and seconds of the quickest collective."""
        rate, latency, _ = self._fastest
        return rate, latency

    def least(self, start: Node, goal: Node, held: int, needed: int) -> Cost:
        """The least cost of moving an array whose pieces have so many bytes before and after."""
        if start is goal:
            return 0
        missing = start.places - goal.places
        summed = [axis for axis in start.state[1] if axis not in goal.state[1]]
        if not missing and not summed:
            return 0 if held == needed else self._prices.move("slice", (), held, needed)
        rate, latency, rates = self._fastest
        sizes = self._space.sizes
        copies = 1
        used = {axis for axis, _, _ in goal.places}.union(goal.state[1])
        for axis, size in sizes.items():
            if axis not in used:
                copies *= size
        seconds, had = 0.0, 1
        for axis, _, _ in missing:
            size = sizes[axis]
            had *= size
            alike = copies if axis in used else copies // size
            seconds = max(seconds, needed * (1 - 1 / size) / alike / rates[axis])
        for axis in summed:
            alike = copies if axis in used else copies // sizes[axis]
            seconds = max(seconds, needed / alike / rates[axis])
        received = needed if summed else needed - needed / had
        seconds = max(seconds, received / rate, latency)
        return self._prices.packed(seconds * SAFETY, floor(received * SAFETY), 1)


def _crossing(op: str, n: int, size: int) -> float:
    """The part of a collective's bytes that each device of a group of n gets over an axis of this size, of
    what it did not have."""
    match op:
        case "all_gather":
            return (size - 1) / n
        case "psum":
            return size / n
        case "psum_scatter":
            return 1 / n
        case "all_to_all":
            return (size - 1) / size
        case _:
            return 1.0
