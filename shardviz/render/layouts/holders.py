"""The devices that hold one block of an array, in as few characters as there is room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardviz.sharding import Layout

LISTED = 64
"""Up to so many devices are looked at one by one; of more, the first few and the last."""


@dataclass(frozen=True)
class Holders:
    """Device ids that hold equal data: the first of them in order, the last, and how many there are.

    `first` is all of them when there are no more than `LISTED`.
    """

    first: tuple[int, ...]
    last: int
    count: int

    def labels(self) -> Iterator[str]:
        """Ways to write them, the longest first: ``0,1,2,3``, ``0–3``, ``4 devices``, ``0…3``, ``×4``."""
        if self.count == len(self.first):
            yield ",".join(map(str, self.first))
        if self.count > 2:
            start, step = self.first[0], self.first[1] - self.first[0]
            regular = all(b - a == step for a, b in zip(self.first, self.first[1:], strict=False))
            regular = regular and self.last == start + step * (self.count - 1)
            if regular and step == 1:
                yield f"{start}–{self.last}"
            elif regular:
                yield f"{start},{start + step},…,{self.last}"
            yield f"{self.count:,} devices"
            yield f"{start}…{self.last}"
        if self.count > 1:
            yield f"×{self.count}"


def holders(layout: Layout, block: tuple[int, ...], partial: int = 0) -> Holders:
    """The devices that hold a block (an index per dimension) and, of an unreduced array, a partial sum."""
    mesh, spec = layout.mesh, layout.spec
    coordinates: dict[str, int] = {}
    for axes, index in zip((*spec.dims, spec.unreduced), (*block, partial), strict=True):
        for axis in reversed(axes):
            index, coordinates[axis] = divmod(index, mesh.axis_size(axis))
    strides, stride = {}, 1
    for axis, size in zip(reversed(mesh.axis_names), reversed(mesh.axis_sizes), strict=True):
        strides[axis] = stride
        stride *= size
    base = sum(strides[axis] * coordinate for axis, coordinate in coordinates.items())
    free = [axis for axis in reversed(mesh.axis_names) if axis not in coordinates]
    count = layout.replicas

    def device(number: int) -> int:
        position = base
        for axis in free:
            number, coordinate = divmod(number, mesh.axis_size(axis))
            position += strides[axis] * coordinate
        return mesh.device_id(position)

    if count <= LISTED:
        ids = sorted(map(device, range(count)))
        return Holders(tuple(ids), ids[-1], count)
    return Holders(tuple(map(device, range(8))), device(count - 1), count)


def sum_labels(layout: Layout, block: tuple[int, ...], partials: int) -> Iterator[str]:
    """Ways to write a block whose value is a sum over devices: ``0+1+2+3``, ``(0,4)+…+(3,7)``, ``Σ4``."""

    def addend(partial: int) -> str:
        label = next(holders(layout, block, partial).labels())
        return f"({label})" if "," in label else label

    if partials <= LISTED:
        yield "+".join(map(addend, range(partials)))
    if partials > 2:
        yield f"{addend(0)}+…+{addend(partials - 1)}"
    yield f"Σ{partials}"
