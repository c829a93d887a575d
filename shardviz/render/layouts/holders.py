"""The devices that hold one block of an array, in as few characters as there is room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from shardviz.sharding import Layout

LISTED = 64
"""Up to so many devices are looked at one by one; of more, the first few and the last."""
FEW = 8
EVERYTHING = 10**6
"""Room for any label."""


@dataclass(frozen=True)
class Holders:
    """Device ids that hold equal data: the first of them in order, the last, and how many there are.

    `first` is all of them when there are no more than `LISTED`.
    """

    first: tuple[int, ...]
    last: int
    count: int

    def labels(self, room: int = EVERYTHING) -> Iterator[str]:
        """Ways to write them, the longest first: ``0,1,2,3``, ``0–3``, ``4 devices``, ``×4``.

        Those that do not follow one another are no range: ``0,4,8,12``, ``0,4,…,12``, ``0,…,12``. The list of
        all may be missing where it cannot fit into `room`.
        """
        if self.count == len(self.first) and 2 * self.count - 1 <= room:
            yield ",".join(map(str, self.first))
        if self.count > 2:
            start, step = self.first[0], self.first[1] - self.first[0]
            regular = all(b - a == step for a, b in pairwise(self.first))
            regular = regular and self.last == start + step * (self.count - 1)
            ends = f"{start}–{self.last}" if regular and step == 1 else f"{start},…,{self.last}"
            if regular:
                yield ends if step == 1 else f"{start},{start + step},…,{self.last}"
            yield f"{self.count:,} devices"
            yield ends
        if self.count > 1:
            yield f"×{self.count}"


@dataclass(frozen=True)
class Copies:
    """Where the blocks of a layout are held: one is found without a look at the others."""

    layout: Layout

    def position(self, block: tuple[int, ...], partial: int = 0) -> int:
        """The row-major position of the first device that holds a block and, unreduced, a partial sum."""
        mesh, spec = self.layout.mesh, self.layout.spec
        position = 0
        for axes, index in zip((*spec.dims, spec.unreduced), (*block, partial), strict=True):
            for axis in reversed(axes):
                index, coordinate = divmod(index, mesh.axis_size(axis))
                position += self._strides[axis] * coordinate
        return position

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """From the position of a block's first holder to those of all, in order.

        Of more than `LISTED`, the first few and the last.
        """
        count = self.layout.replicas
        if count <= LISTED:
            return tuple(map(self._offset, range(count)))
        return (*map(self._offset, range(FEW)), self._offset(count - 1))

    def holders(self, block: tuple[int, ...], partial: int = 0) -> Holders:
        """The devices that hold a block (an index per dimension) and, unreduced, a partial sum of it."""
        base, mesh, count = self.position(block, partial), self.layout.mesh, self.layout.replicas
        ids = [mesh.device_id(base + offset) for offset in self.offsets]
        if count <= LISTED:
            ids.sort()
            return Holders(tuple(ids), ids[-1], count)
        return Holders(tuple(ids[:-1]), ids[-1], count)

    def labels(self, block: tuple[int, ...], room: int = EVERYTHING) -> Iterator[str]:
        """Ways to write who holds a block, the longest first; the devices of a pending sum are joined by +.

        As `Holders.labels`, or ``0+1+2+3``, ``(0,4)+…+(3,7)``, ``Σ4``. What cannot fit into `room` may be
        missing.
        """
        partials = self.partials
        if partials == 1:
            yield from self.holders(block).labels(room)
            return
        if partials <= LISTED and 2 * partials - 1 <= room:
            yield "+".join(self._addend(block, partial) for partial in range(partials))
        if partials > 2:
            yield f"{self._addend(block, 0)}+…+{self._addend(block, partials - 1)}"
        yield f"Σ{partials}"

    @cached_property
    def partials(self) -> int:
        """How many partial sums make a block; 1 unless the array is unreduced."""
        return self.layout.mesh.group_size(self.layout.spec.unreduced)

    def _addend(self, block: tuple[int, ...], partial: int) -> str:
        label = next(self.holders(block, partial).labels())
        return f"({label})" if "," in label else label

    @cached_property
    def _strides(self) -> dict[str, int]:
        mesh = self.layout.mesh
        strides, stride = {}, 1
        for axis, size in zip(reversed(mesh.axis_names), reversed(mesh.axis_sizes), strict=True):
            strides[axis] = stride
            stride *= size
        return strides

    def _offset(self, number: int) -> int:
        """That of the copy of this number: the free axes' coordinates count in the mesh's order."""
        mesh, spec = self.layout.mesh, self.layout.spec
        offset = 0
        for axis in reversed(mesh.axis_names):
            if axis not in (*spec.axes, *spec.unreduced):
                number, coordinate = divmod(number, mesh.axis_size(axis))
                offset += self._strides[axis] * coordinate
        return offset
