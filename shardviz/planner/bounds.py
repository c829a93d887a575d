"""What moving an array from one state to another costs at least, without looking for the moves."""

from __future__ import annotations

from itertools import combinations
from math import floor

from shardviz.planner.moves import Node, StateSpace
from shardviz.planner.prices import Cost, Prices

LARGE = 2**40
"""Bytes of a collective that is bound by its links' bandwidth."""
SAFETY = 1 - 1e-6
"""By how much less a bound is than it is calculated to be, as numbers are rounded."""


class MoveBounds:
    """Bounds for the moves over the axes of a space.

    Whatever a device has in the end but not in the beginning must come to it, no faster than the fastest
    collective brings it, and no sooner than the quickest ends. Of sums that are pending it has nothing yet.
    """

    def __init__(self, space: StateSpace, prices: Prices) -> None:
        self._space, self._prices = space, prices
        names = tuple(space.sizes)
        groups = [
            (space.whole(axes), space.group_size(axes))
            for count in range(1, len(names) + 1)
            for axes in combinations(names, count)
        ]
        kinds = [(op, axes, n) for axes, n in groups for op in ("all_gather", "all_to_all", "ppermute")]

        def received(op: str, n: int) -> float:
            return 1.0 if op == "ppermute" else (n - 1) / n

        self._rate = max(
            (received(op, n) * LARGE / prices.collective_seconds(op, axes, LARGE) for op, axes, n in kinds),
            default=1.0,
        )
        self._latency = (
            min((prices.collective_seconds(op, axes, 1) for op, axes, _ in kinds), default=0.0) * SAFETY
        )

    def least(self, start: Node, goal: Node, held: int, needed: int) -> Cost:
        """The cost of moving an array at least, whose pieces have so many bytes before and after."""
        if start is goal:
            return 0
        missing = start.places - goal.places
        sizes = self._space.sizes
        summed = [axis for axis in start.state[1] if axis not in goal.state[1]]
        if not missing and not summed:
            return 0 if held == needed else self._prices.move("slice", (), held, needed)
        bytes_: float = needed
        if not summed:
            had = 1
            for axis, _, _ in missing:
                had *= sizes[axis]
            bytes_ -= needed / had
        seconds = max(self._latency, bytes_ / self._rate * SAFETY)
        return self._prices.packed(seconds, floor(bytes_ * SAFETY), 1)
