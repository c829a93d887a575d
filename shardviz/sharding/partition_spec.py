"""The mesh axes that split each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from shardviz.errors import QuestionError, plural
from shardviz.sharding.axis_parts import are_apart, axis_part
from shardviz.sharding.mesh import Mesh


@dataclass(frozen=True)
class PartitionSpec:
    """One tuple of mesh axes per dimension, the first axis of each the major one, and the axes over which the
    array is a pending sum.

    ``PartitionSpec((("X",), ("Y", "Z")))`` is JAX's ``P('X', ('Y', 'Z'))``. `unreduced` lists, in
    alphabetical order, axes along which devices hold partial sums. The dimensions in `open_dims` may be split
    further (JAX's ``P.UNCONSTRAINED``). `devices` are the ids of the devices that hold the array, where these
    are not the mesh's in its order: one that holds all of it (`jax.sharding.SingleDeviceSharding`), or all of
    them in the row-major order of another mesh of the same axes. Raises `QuestionError` when an axis occurs
    more than once, and when an array on one device is split."""

    dims: tuple[tuple[str, ...], ...]
    unreduced: tuple[str, ...] = ()
    open_dims: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "unreduced", tuple(sorted(self.unreduced)))
        used = [axis for dim in self.dims for axis in dim] + list(self.unreduced)
        for axis in used:
            if used.count(axis) > 1:
                problem = f"mesh axis {axis} is used twice in {self}"
                raise QuestionError(problem, "an axis can shard only one dimension of an array")
        if any(":" in axis for axis in used):
            _check_parts(self, used)
        if self.only_device is not None and (used or self.open_dims):
            problem = f"an array on device {self.only_device} alone is split in {self}"
            raise QuestionError(problem, "leave its dimensions whole: __@3 is a matrix on device 3")

    @classmethod
    def replicated(cls, rank: int) -> PartitionSpec:
        return cls(((),) * rank)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def axes(self) -> tuple[str, ...]:
        """Every axis that splits a dimension, in order of the dimensions."""
        return tuple(axis for dim in self.dims for axis in dim)

    @property
    def only_device(self) -> int | None:
        """The id of the one device that holds all of the array; None where all devices of the mesh do."""
        return self.devices[0] if len(self.devices) == 1 else None

    def parts(self, mesh: Mesh) -> tuple[int, ...]:
        return tuple(mesh.group_size(dim) for dim in self.dims)

    def check(self, mesh: Mesh, rank: int, name: str = "the array") -> None:
        """Raise `QuestionError` unless every axis is in the mesh and there is one entry per dimension."""
        self.check_rank(rank, name)
        for axis in (*self.axes, *self.unreduced):
            mesh.axis_size(axis)
        self.check_devices(mesh)

    def check_devices(self, mesh: Mesh) -> None:
        """Raise `QuestionError` unless the devices are one of the mesh, or each of them once."""
        if self.only_device is not None and self.only_device >= mesh.size:
            problem = f"the mesh {mesh} has no device {self.only_device}"
            raise QuestionError(problem, f"its devices are 0 to {mesh.size - 1}")
        if len(self.devices) > 1:
            Mesh(mesh.axis_names, mesh.axis_sizes, self.devices)

    def check_rank(self, rank: int, name: str) -> None:
        if self.rank != rank:
            entries, dimensions = plural(self.rank, "entry", "entries"), plural(rank, "dimension")
            hint = "write one entry for each dimension; _ or None leaves it unsharded"
            raise QuestionError(f"the spec {self} has {entries} but {name} has {dimensions}", hint)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.dims)

    def __str__(self) -> str:
        """As JAX prints it: ``P('X', None)``, ``P(('X', 'Y'), unreduced={'Z'})``."""
        entries = []
        for dim in self.dims:
            names = ", ".join(map(repr, dim))
            entries.append("None" if not dim else names if len(dim) == 1 else f"({names})")
        if self.unreduced:
            entries.append(f"unreduced={{{', '.join(map(repr, self.unreduced))}}}")
        on = f" on device{'s' * (len(self.devices) > 1)} {','.join(map(str, self.devices))}"
        return f"P({', '.join(entries)}){on * bool(self.devices)}"


def _check_parts(spec: PartitionSpec, used: list[str]) -> None:
    parts = sorted(part for part in map(axis_part, used) if part is not None)
    for part in parts:
        if part.axis in used:
            problem = f"mesh axis {part.axis} and its part {part} are both used in {spec}"
            raise QuestionError(problem, "an axis can shard only one dimension of an array")
    for one, other in pairwise(map(str, parts)):
        if not are_apart(one, other):
            problem = f"the parts {one} and {other} of a mesh axis overlap in {spec}"
            raise QuestionError(problem, "behind X:(1)2 the next part is X:(2)…")
