"""The price of an array's way from one sharding to another, on one mesh: a usual way, not the cheapest of
all.

The planner looks for the cheapest way among all (`paths`); a search asks so often that it takes this one:
pending sums are scattered where the new sharding splits them, axes that are added cut first, those that
change their dimension move by an all-to-all, and the others are gathered last, together with axes that hold
copies where that is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf

from shardviz.planner.pricing.prices import Prices
from shardviz.planner.states.moves import Axes, Dims, State
from shardviz.sharding import Mesh, array_bytes

Shape = tuple[int, ...]
Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds; no axes for what a device does alone."""


class UsualMoves:
    """Moves on a placed mesh and their prices, remembered by shape, dtype and both states."""

    def __init__(self, prices: Prices, mesh: Mesh) -> None:
        self._prices, self._mesh = prices, mesh
        self._wide = [axis for axis, size in mesh.shape.items() if size > 1]
        self._devices: dict[Axes, int] = {(): 1}
        self._times: dict[tuple[str, Axes, int, int], float] = {}
        self._known: dict[tuple[Shape, str, State, State], tuple[Part, ...]] = {}

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

    def local_bytes(self, shape: Shape, dtype: str, dims: Dims) -> int:
        """Bytes of a device's shard."""
        return array_bytes(
            [-(-size // self._group_size(axes)) for size, axes in zip(shape, dims, strict=True)], dtype
        )

    def _group_size(self, axes: Axes) -> int:
        if axes not in self._devices:
            self._devices[axes] = self._mesh.group_size(axes)
        return self._devices[axes]

    def _operations(self, shape: Shape, dtype: str, before: State, after: State) -> Iterator[Part]:
        dims, pending = [list(axes) for axes in before[0]], list(before[1])
        place_of = {axis: place for place, axes in enumerate(after[0]) for axis in axes}
        held = self.local_bytes(shape, dtype, before[0])

        def part(op: str, axes: Sequence[str]) -> Part:
            """The operation that has led to `dims` as they are now."""
            nonlocal held
            last, held = held, self.local_bytes(shape, dtype, tuple(map(tuple, dims)))
            return () if op == "slice" else tuple(axes), self._seconds(op, tuple(axes), last, held)

        def move_in(axes: Sequence[str]) -> None:
            for axis in axes:
                dims[place_of[axis]].append(axis)

        if scattered := [axis for axis in pending if axis in place_of]:
            pending = [axis for axis in pending if axis not in scattered]
            move_in(scattered)
            yield part("psum_scatter", scattered)
        used = {axis for axes in dims for axis in axes}.union(pending, after[1])
        if idle := [axis for axis in place_of if axis not in used]:
            move_in(idle)
            yield part("slice", idle)
        if moved := [
            axis for place, axes in enumerate(dims) for axis in axes if place_of.get(axis, place) != place
        ]:
            for axes in dims:
                axes[:] = [axis for axis in axes if axis not in moved]
            move_in(moved)
            yield part("all_to_all", moved)
        if added := [axis for axis in pending if axis not in after[1]]:
            yield part("psum", added)
        gathered: list[str] = []
        cut = held
        for axes in dims:
            # Only the minor end can be gathered: what is minor to it comes along, and is cut again.
            kept = next((n for n, axis in enumerate(axes) if axis not in place_of), len(axes))
            gathered += axes[kept:]
            del axes[kept:]
        if gathered:
            whole = self.local_bytes(shape, dtype, tuple(map(tuple, dims)))
            idle = [axis for axis in self._wide if axis not in {*used, *gathered, *pending}]
            yield from self._gather(gathered, idle, shape, cut, whole)
            held = whole
        if again := [axis for axis in gathered if axis in place_of]:
            move_in(again)
            yield part("slice", again)

    def _gather(
        self, axes: Sequence[str], idle: Sequence[str], shape: Shape, before: int, after: int
    ) -> tuple[Part, ...]:
        """A gather, or a cut over axes that hold copies and a gather over these too, which has more links."""
        found = [self._sliced(axes, (), before, after)]
        for count in range(1, len(idle) + 1):
            for more in combinations(idle, count):
                devices = self._group_size((*axes, *more))
                if any(size % devices == 0 for size in shape):
                    found.append(self._sliced(axes, more, before, after))
        return min(found, key=lambda parts: sum(seconds for _, seconds in parts))

    def _sliced(self, axes: Sequence[str], more: Axes, before: int, after: int) -> tuple[Part, ...]:
        """A cut over `more` axes, if there are any, and a gather over all."""
        smaller = before // self._group_size(more)
        parts: list[Part] = []
        if more:
            parts.append(((), self._seconds("slice", more, before, smaller)))
        together = (*axes, *more)
        return (*parts, (together, self._seconds("all_gather", together, smaller, after)))

    def _seconds(self, op: str, axes: Axes, before: int, after: int) -> float:
        key = (op, axes, before, after)
        if key not in self._times:
            self._times[key] = self._prices.move_seconds(*key)
        return self._times[key]
