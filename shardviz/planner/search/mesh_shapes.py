"""The meshes that a search looks at: every way to give a machine's devices to the axes, and where each lies.

A mesh lies as `jax.make_mesh` places it; where that places none, since it splits no axis of a torus between
two axes of a mesh (v5e excepted), it lies by the ids of the devices, as with ``--device-order row-major``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.hardware.mesh_placement import is_placed, place_mesh
from shardviz.planner.search.axes import SearchAxis
from shardviz.sharding import Mesh

MAX_MESHES = 20_000
"""Meshes of one search."""


def mesh_shapes(axes: Sequence[SearchAxis], devices: int) -> tuple[Mesh, ...]:
    """Every mesh of so many devices with these axes, each of 1 or more.

    Raises `QuestionError` where none has the sizes that are fixed, and where there are more than
    `MAX_MESHES`.
    """
    found: list[Mesh] = []
    for sizes in _sizes([axis.size for axis in axes], devices):
        found.append(Mesh(tuple(axis.name for axis in axes), sizes))
        if len(found) > MAX_MESHES:
            raise QuestionError(
                f"there are more than {MAX_MESHES:,} meshes of {devices:,} devices with {len(axes)} axes",
                "name fewer axes, or fix the size of some: --axes data,tensor=8",
            )
    if not found:
        said = ", ".join(f"{axis.name}={axis.size}" for axis in axes if axis.size is not None) or "no axes"
        raise QuestionError(
            f"no mesh of {devices:,} devices has {said}",
            f"choose sizes that divide {devices:,}, and leave one axis free",
        )
    return tuple(found)


def _sizes(fixed: Sequence[int | None], devices: int) -> Iterator[tuple[int, ...]]:
    if not fixed:
        if devices == 1:
            yield ()
        return
    first, *rest = fixed
    for size in [first] if first is not None else _divisors(devices):
        if devices % size == 0:
            for others in _sizes(rest, devices // size):
                yield (size, *others)


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def on_machine(machine: Machine, mesh: Mesh) -> PlacedMesh:
    """The mesh on the machine."""
    return place_mesh(machine, with_order(machine, mesh))


def with_order(machine: Machine, mesh: Mesh) -> Mesh:
    """The mesh, in the order of the devices' ids where `jax.make_mesh` does not place it."""
    if machine.assumed or is_placed(machine, mesh.axis_sizes):
        return mesh
    return replace(mesh, device_order=tuple(range(mesh.size)))


def without_ones(mesh: Mesh) -> Mesh:
    """The mesh without axes of size 1; its first axis where all are."""
    kept = [(name, size) for name, size in mesh.shape.items() if size > 1]
    names, sizes = zip(*kept or [*mesh.shape.items()][:1], strict=True)
    return replace(mesh, axis_names=names, axis_sizes=sizes)
