"""The meshes of a machine: the ways to give its devices to axes, and the orders of axes that differ on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice, permutations

from shardviz.errors import QuestionError
from shardviz.hardware.chip_torus import parts_by_slice
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.planner.search.rules import SearchAxis
from shardviz.planner.states.moves import Axes
from shardviz.sharding import Mesh

MAX_MESHES = 20_000


def mesh_shapes(axes: Sequence[SearchAxis], devices: int, named: Collection[str] = ()) -> tuple[Mesh, ...]:
    """Every mesh of so many devices with these axes; of meshes that differ in the names of axes of one kind,
    and in those of size 1, one, but for axes that are `named` elsewhere. Raises `QuestionError` where none
    has the sizes that are fixed, and where there are more than `MAX_MESHES`."""
    sizes = list(islice(_sizes([axis.size for axis in axes], devices), MAX_MESHES + 1))
    if len(sizes) > MAX_MESHES:
        problem = f"there are more than {MAX_MESHES:,} meshes of {devices:,} devices with {len(axes)} axes"
        raise QuestionError(problem, "name fewer axes, or fix the size of some: --axes data,tensor=8")
    if not sizes:
        said = ", ".join(f"{axis.name}={axis.size}" for axis in axes if axis.size is not None) or "no axes"
        problem = f"no mesh of {devices:,} devices has {said}"
        raise QuestionError(problem, f"choose sizes that divide {devices:,}, and leave one axis free")
    names = tuple(axis.name for axis in axes)
    kinds = [axis.name if axis.name in named else axis.kind for axis in axes]
    alike = {tuple(pair for pair in zip(kinds, own, strict=True) if pair[1] > 1): own for own in sizes}
    return tuple(Mesh(names, own) for own in alike.values())


def _sizes(fixed: Sequence[int | None], devices: int) -> Iterator[tuple[int, ...]]:
    if not fixed:
        if devices == 1:
            yield ()
        return
    first, *rest = fixed
    for size in [first] if first is not None else range(1, devices + 1):
        if devices % size == 0:
            yield from ((size, *others) for others in _sizes(rest, devices // size))


def with_order(machine: Machine, mesh: Mesh) -> Mesh:
    """The mesh, in the order of the devices' ids where `jax.make_mesh` does not place it."""
    if machine.assumed or machine.family.jax_order(mesh.axis_sizes) is not None:
        return mesh
    return replace(mesh, device_order=tuple(range(mesh.size)))


def without_ones(mesh: Mesh) -> Mesh:
    """The mesh without axes of size 1; its first axis where all are."""
    kept = [(name, size) for name, size in mesh.shape.items() if size > 1]
    names, sizes = zip(*kept or [*mesh.shape.items()][:1], strict=True)
    return replace(mesh, axis_names=names, axis_sizes=sizes)


def orders_across(machine: Machine, mesh: Mesh) -> list[Mesh]:
    """The mesh, and those with others of its axes first, as the leading ones cross the slices or nodes of a
    machine (`jax.experimental.mesh_utils.create_hybrid_device_mesh`): one for each way to divide these."""
    if machine.family.parts == 1:
        return [mesh]
    found: dict[frozenset[tuple[str, int]], Mesh] = {}
    for names in permutations(mesh.axis_names):
        sizes = tuple(map(mesh.axis_size, names))
        _, parts = parts_by_slice(sizes, machine.family.parts)
        across = {name: part for name, part in zip(names, parts, strict=True) if part > 1}
        order = (*across, *(name for name in mesh.axis_names if name not in across))
        own = replace(mesh, axis_names=order, axis_sizes=tuple(map(mesh.axis_size, order)))
        found.setdefault(frozenset(across.items()), mesh if names == mesh.axis_names else own)
    return [*found.values()]


def axes_across(placed: PlacedMesh) -> Axes:
    """The mesh axes that cross the slices or nodes of a machine, be it in part."""
    levels = ((axis, placed.published_levels((axis,))) for axis in placed.mesh.axis_names)
    return tuple(axis for axis, own in levels if any(level.kind == "network" for level in own))
