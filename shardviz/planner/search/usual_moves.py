"""The price of an array's way from one sharding to another, on one mesh: a usual way, not the cheapest of
all.

The planner looks for the cheapest way among all (`reshard`); a search asks so often that it takes this one:
pending sums are scattered where the new sharding splits them, axes that are added cut first, those that
change their dimension move by an all-to-all, and the others are gathered last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, prod

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.costs import collective_price
from shardviz.planner.reshard import Axes, State
from shardviz.sharding import array_bytes

Shape = tuple[int, ...]
Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds; no axes for what a device does alone."""


@dataclass(frozen=True)
class UsualMoves:
    """Prices of moves on a placed mesh, remembered by shape, dtype and both states."""

    placed: PlacedMesh
    sizes: dict[str, int]
    _known: dict[tuple[Shape, str, State, State], tuple[Part, ...]] = field(default_factory=dict, repr=False)
    _priced: dict[tuple[str, int, Axes], float] = field(default_factory=dict, repr=False)

    def seconds(self, shape: Shape, dtype: str, before: State, after: State) -> float:
        """Seconds of all operations of a move."""
        return sum(seconds for _, seconds in self.parts(shape, dtype, before, after))

    def parts(self, shape: Shape, dtype: str, before: State, after: State) -> tuple[Part, ...]:
        """The operations of a move, in order; whole values do not become pending sums."""
        if before == after:
            return ()
        if not set(after[1]) <= set(before[1]):
            return (((), inf),)
        key = (shape, dtype, before, after)
        if key not in self._known:
            self._known[key] = tuple(self._operations(shape, dtype, before, after))
        return self._known[key]

    def local_bytes(self, shape: Shape, dtype: str, dims: tuple[Axes, ...]) -> int:
        """Bytes of a device's shard."""
        local = (
            -(-size // prod(self.sizes[axis] for axis in axes))
            for size, axes in zip(shape, dims, strict=True)
        )
        return array_bytes(tuple(local), dtype)

    def _operations(self, shape: Shape, dtype: str, before: State, after: State) -> Iterator[Part]:
        dims, pending = [list(axes) for axes in before[0]], list(before[1])
        wanted = after[0]
        place_of = {axis: place for place, axes in enumerate(wanted) for axis in axes}

        def held() -> int:
            return self.local_bytes(shape, dtype, tuple(map(tuple, dims)))

        scattered = [axis for axis in pending if axis in place_of]
        if scattered:
            larger = held()
            for axis in scattered:
                dims[place_of[axis]].append(axis)
            pending = [axis for axis in pending if axis not in scattered]
            yield self._collective("psum_scatter", tuple(scattered), larger, larger + held())
        used = {axis for axes in dims for axis in axes}.union(pending, after[1])
        idle = [axis for axis in place_of if axis not in used]
        if idle:
            for axis in idle:
                dims[place_of[axis]].append(axis)
            yield (), self._traffic(2 * held())
        moved = [
            (axis, place)
            for place, axes in enumerate(dims)
            for axis in axes
            if axis in place_of and place_of[axis] != place
        ]
        if moved:
            larger = held()
            for axis, place in moved:
                dims[place].remove(axis)
                dims[place_of[axis]].append(axis)
            yield self._collective("all_to_all", tuple(axis for axis, _ in moved), larger, 2 * larger)
        added = tuple(axis for axis in pending if axis not in after[1])
        if added:
            yield self._collective("psum", added, held(), 2 * held())
        gathered = []
        for place, axes in enumerate(dims):
            # Only the minor end can be gathered: what is minor to it comes along, and is cut again.
            kept = next((n for n, axis in enumerate(axes) if axis not in place_of), len(axes))
            gathered += axes[kept:]
            dims[place] = axes[:kept]
        if gathered:
            smaller = self.local_bytes(shape, dtype, tuple(map(tuple, before[0])))
            yield self._collective("all_gather", tuple(gathered), held(), smaller + held())
            if any(axis in place_of for axis in gathered):
                yield (), self._traffic(2 * self.local_bytes(shape, dtype, wanted))

    def _traffic(self, moved: int) -> float:
        bandwidth = self.placed.machine.device.hbm_bandwidth
        return moved / bandwidth if bandwidth else 0.0

    def _collective(self, op: str, axes: Axes, size: int, moved: int) -> Part:
        """The axes and seconds of a collective of so many bytes, which reads and writes `moved` of HBM."""
        key = (op, size, axes)
        if key not in self._priced:
            self._priced[key] = collective_price(op, size, axes, self.placed).seconds
        return axes, max(self._priced[key], self._traffic(moved))
