"""A mesh: devices arranged along named axes, as `jax.sharding.Mesh` arranges them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shardviz.errors import QuestionError, did_you_mean, plural, quote
from shardviz.sharding.axis_parts import SubAxis, axis_part
from shardviz.sharding.digits import Digit, numbers

MAX_DEVICES = 2**40
"""More devices than any question needs; keeps products of axis sizes within 64-bit arithmetic."""


@dataclass(frozen=True)
class Mesh:
    """Named axes with their sizes, and the order of the devices.

    `device_order` lists device ids in row-major order of the mesh's coordinates (the last axis moves
    fastest). None leaves it to `jax.make_mesh`: 0, 1, 2, … on simulated devices and on GPUs, on a TPU as
    suits its torus. Raises `QuestionError` for a bad name, a name used twice, a size below 1, or an order
    that is not a permutation of the device ids."""

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    device_order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.axis_names) != len(self.axis_sizes):
            names, sizes = plural(len(self.axis_names), "axis name"), plural(len(self.axis_sizes), "size")
            raise QuestionError(f"{names} but {sizes}", "give every axis a size: X=2,Y=4")
        for name, size in zip(self.axis_names, self.axis_sizes, strict=True):
            if not is_axis_name(name):
                problem = f"{quote(name)} is not an axis name"
                raise QuestionError(problem, "use letters, digits and _, starting with a letter")
            if size < 1:
                problem = f"mesh axis {name}={size} has no devices"
                raise QuestionError(problem, "an axis has a size of 1 or more")
        for name in self.axis_names:
            if self.axis_names.count(name) > 1:
                raise QuestionError(f"mesh axis {name} is named twice", "give every axis its own name")
        if self.size > MAX_DEVICES:
            problem = f"a mesh of more than {MAX_DEVICES:,} devices is too large"
            raise QuestionError(problem, "use smaller axes")
        order = self.device_order
        if order is not None and (len(order) != self.size or sorted(order) != list(range(self.size))):
            problem = f"the device order is not a permutation of the {plural(self.size, 'device')}"
            raise QuestionError(problem, f"name each device from 0 to {self.size - 1} once")

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes)

    @property
    def shape(self) -> dict[str, int]:
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    def without_ones(self) -> Mesh:
        """The mesh without the axes of size 1, which split nothing; that of one device as it is."""
        kept = {name: size for name, size in self.shape.items() if size > 1} or self.shape
        return Mesh(tuple(kept), tuple(kept.values()), self.device_order)

    def axis_size(self, name: str) -> int:
        """Devices along one axis, or a part of one. Raises `QuestionError` for what the mesh does not
        have."""
        try:
            return self.axis_sizes[self.axis_names.index(name)]
        except ValueError:
            return self._digit(name)[1]

    def _digit(self, name: str) -> tuple[int, int, int]:
        """The number of an axis or a part of one, its devices, and the steps along the axis between
        neighbours."""
        part = axis_part(name)
        axis = name if part is None else part.axis
        if axis not in self.axis_names:
            raise QuestionError(f"unknown mesh axis {quote(axis)}", axes_like(axis, self.axis_names))
        index = self.axis_names.index(axis)
        whole = self.axis_sizes[index]
        if part is None:
            return index, whole, 1
        if whole % (part.before * part.size):
            problem = f"mesh axis {axis}={whole} has no part {part}"
            raise QuestionError(problem, f"{part.before} × {part.size} must divide {whole}")
        return index, part.size, whole // (part.before * part.size)

    def coordinate(self, coords: Sequence[Any], name: str) -> Any:
        """The coordinate along an axis, or a part of one, of a device at these coordinates, or of arrays of
        devices at arrays of them."""
        index, size, step = self._digit(name)
        return coords[index] // step % size

    def group_size(self, axes: Iterable[str]) -> int:
        return math.prod(self.axis_size(axis) for axis in axes)

    def device_id(self, position: int) -> int:
        return position if self.device_order is None else self.device_order[position]

    def coords(self, position: int) -> tuple[int, ...]:
        """Coordinates of a row-major position, one for each axis."""
        result = []
        for size in reversed(self.axis_sizes):
            position, coordinate = divmod(position, size)
            result.append(coordinate)
        return tuple(reversed(result))

    def groups(self, axes: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Row-major positions of each group of a collective over `axes`, which order a group's members.
        Groups follow the other axes, and the other parts of these, in row-major order."""
        members, bases = numbers(map(self.digit, axes)), numbers(self.loops_without(axes))
        return tuple(tuple(base + member for member in members) for base in bases)

    def group_of(self, position: int, axes: tuple[str, ...]) -> tuple[int, ...]:
        """Row-major positions of the group over `axes` that has a position, without a look at the others."""
        coords = self.coords(position)
        base = position - sum(self.coordinate(coords, axis) * self.stride(axis) for axis in axes)
        return tuple(base + member for member in numbers(map(self.digit, axes)))

    def stride(self, name: str) -> int:
        """Row-major positions between neighbours along an axis, or a part of one."""
        index, _, step = self._digit(name)
        return step * math.prod(self.axis_sizes[index + 1 :])

    def digit(self, name: str) -> Digit:
        """The digit of a row-major position that an axis, or a part of one, is."""
        return Digit(self.axis_size(name), self.stride(name))

    def loops_without(self, axes: Iterable[str]) -> list[tuple[int, int]]:
        """Size and stride of the axes, and parts of axes, that are left without some, the major first."""
        used = {*axes}
        parts = sorted(part for part in map(axis_part, used) if part is not None)
        loops = []
        for axis in self.axis_names:
            whole, stride, done = self.axis_size(axis), self.stride(axis), 1
            for part in (*(part for part in parts if part.axis == axis), SubAxis(axis, whole, 1)):
                loops.append((part.before // done, stride * (whole // part.before)))
                done = part.before * part.size
            if axis in used:
                loops.pop()
        return loops

    def replica_groups(self, axes: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """`groups` as device ids, as HLO's `replica_groups` lists them."""
        return tuple(tuple(map(self.device_id, group)) for group in self.groups(axes))

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.shape.items())


def is_axis_name(name: str) -> bool:
    """A name can stand in every notation: ASCII, a letter first, then letters, digits, `_`."""
    return name.isascii() and name.isidentifier() and name[0] != "_"


def writable_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names as every notation can write them, with _ in place of what offends: JAX takes any."""
    written: list[str] = []
    for name in names:
        name = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not is_axis_name(name):
            name = f"axis_{name.strip('_')}"
        while name in written:
            name += "_"
        written.append(name)
    return tuple(written)


def axes_like(unknown: str, axis_names: Sequence[str]) -> str:
    """A hint for an axis that a mesh does not have: the one that may be meant, and all of them."""
    names = ", ".join(axis_names)
    known = "no axes" if not names else f"one axis: {names}" if len(axis_names) == 1 else f"the axes {names}"
    return f"{did_you_mean(unknown, axis_names)}this mesh has {known}"
