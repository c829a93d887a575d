"""Meshes and arrays on them: devices, coordinates, shards, bytes, and shardings in any notation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural, quote
from shardviz.lessons.measures.answers import (
    BYTES,
    COORDINATES,
    DEVICES,
    NUMBER,
    SHAPE,
    SLICES,
    AnswerKind,
    ComputedAnswer,
    coordinates,
)
from shardviz.lessons.measures.subject import array_named, layout_named, position_of
from shardviz.notation.notations import find_notation, read_sharding
from shardviz.notation.reading import Context, Reading
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray


MAX_DEVICES = 2**20
"""More are not compared one by one."""
KEYS = {"book": "book", "pspec": "jax", "einshard": "einshard", "shardlib": "shardlib", "string": "shardviz"}
"""The notations as lessons call them, with the keys of `NOTATIONS`."""

Bounds = tuple[int, int]


def devices(resolved: ResolvedProblem) -> ComputedAnswer:
    """The number of devices of the mesh."""
    return NUMBER.answer(resolved.problem.mesh.size)


def axis_size(resolved: ResolvedProblem, axis: str) -> ComputedAnswer:
    """The number of devices along an axis."""
    return NUMBER.answer(resolved.problem.mesh.axis_size(axis))


def device(resolved: ResolvedProblem, *places: str) -> ComputedAnswer:
    """The number of the device at some coordinates."""
    mesh = resolved.problem.mesh
    at = dict(coordinates(" ".join(places)))
    for axis in at:
        if at[axis] >= mesh.axis_size(axis):
            problem = f"there is no {axis}={at[axis]}"
            raise QuestionError(problem, f"{axis} has {plural(mesh.axis_size(axis), 'place')}")
    if len(at) != len(mesh.axis_names):
        raise QuestionError("a device has a place on every axis", f"name {', '.join(mesh.axis_names)}")
    position = 0
    for axis, size in mesh.shape.items():
        position = position * size + at[axis]
    return NUMBER.answer(mesh.device_id(position))


def coordinates_of(resolved: ResolvedProblem, device: str) -> ComputedAnswer:
    """The coordinates of a device."""
    mesh = resolved.problem.mesh
    places = mesh.coords(position_of(mesh, device))
    return COORDINATES.answer(tuple(sorted(zip(mesh.axis_names, places, strict=True))))


def shard_shape(resolved: ResolvedProblem, array: str) -> ComputedAnswer:
    """The shape of the part of an array that each device holds."""
    return SHAPE.answer(layout_named(resolved, array).shard_shape)


def slices(resolved: ResolvedProblem, array: str, device: str) -> ComputedAnswer:
    """The elements of an array that a device holds, start and stop of each dimension."""
    layout = layout_named(resolved, array)
    return SLICES.answer(layout[position_of(layout.mesh, device)].slices)


def holders(resolved: ResolvedProblem, array: str, device: str) -> ComputedAnswer:
    """The devices that hold the same data of an array as a device, that one among them."""
    layout = layout_named(resolved, array)
    mine = layout.mesh.device_id(position_of(layout.mesh, device))
    bounds = (bounds_by_device(layout, dim) for dim in range(layout.array.rank))
    held = list(zip(sums_by_device(layout), *bounds, strict=True))
    return DEVICES.answer(tuple(number for number, each in enumerate(held) if each == held[mine]))


def replicas(resolved: ResolvedProblem, array: str) -> ComputedAnswer:
    """The number of devices that hold each part of an array."""
    return NUMBER.answer(layout_named(resolved, array).replicas)


def whole_bytes(resolved: ResolvedProblem, array: str) -> ComputedAnswer:
    """Bytes of one whole copy of an array."""
    return BYTES.answer(array_named(resolved, array).nbytes)


def shard_bytes(resolved: ResolvedProblem, array: str = "") -> ComputedAnswer:
    """Bytes of an array on each device; of all operands together where none is named."""
    mesh = resolved.problem.mesh
    arrays = [array_named(resolved, array)] if array else resolved.problem.arguments
    return BYTES.answer(sum(array.bytes_per_device(mesh) for array in arrays))


def spelled(resolved: ResolvedProblem, array: str, notation: str) -> ComputedAnswer:
    """The sharding of an array in a notation."""
    return _spec_answer(array_named(resolved, array), resolved.problem.mesh, notation)


def result_spec(resolved: ResolvedProblem, notation: str = "string") -> ComputedAnswer:
    """The sharding of the plan's result."""
    result = resolved.problem.result.with_spec(resolved.plan.result_spec)
    return _spec_answer(result, resolved.problem.mesh, notation)


def bounds_by_device(layout: Layout, dim: int) -> list[Bounds]:
    """(start, stop) along a dimension of what each device holds. Raises `QuestionError` for too many."""
    size, step = layout.array.shape[dim], layout.shard_shape[dim]
    parts = range(layout.parts[dim])
    bounds = [(min(part * step, size), min((part + 1) * step, size)) for part in parts]
    return [bounds[part] for part in _by_device(layout.mesh, layout.spec.dims[dim])]


def sums_by_device(layout: Layout) -> list[int]:
    """The number of the partial sum that each device holds, from 1; 0 where the array is not a pending
    sum. Raises `QuestionError` for too many."""
    pending = layout.mesh.group_size(layout.spec.unreduced) > 1
    return [number + pending for number in _by_device(layout.mesh, layout.spec.unreduced)]


def _by_device(mesh: Mesh, axes: tuple[str, ...]) -> list[int]:
    """Each device's place along `axes`, of which the first is the major one."""
    if mesh.size > MAX_DEVICES:
        problem = f"{mesh.size:,} devices are too many to compare one by one"
        raise QuestionError(problem, f"take up to {MAX_DEVICES:,}")
    weights, weight = dict.fromkeys(mesh.axis_names, 0), 1
    for axis in reversed(axes):
        weights[axis] = weight
        weight *= mesh.axis_size(axis)
    places = [0]
    for axis, size in mesh.shape.items():
        steps = [weights[axis] * index for index in range(size)]
        places = [before + step for before in places for step in steps]
    if mesh.device_order is None:
        return places
    found = [0] * mesh.size
    for device, index in zip(mesh.device_order, places, strict=True):
        found[device] = index
    return found


def _spec_answer(array: ShardedArray, mesh: Mesh, notation: str) -> ComputedAnswer:
    if notation not in KEYS:
        raise QuestionError(f"there is no notation {quote(notation, 30)}", closest(notation, tuple(KEYS)))
    kind = AnswerKind(partial(_read, array, mesh), partial(_write, array, mesh, KEYS[notation]))
    return kind.answer(array.decided_spec)


def _read(array: ShardedArray, mesh: Mesh, text: str) -> PartitionSpec:
    return read_sharding(text, _context(array, mesh)).spec


def _write(array: ShardedArray, mesh: Mesh, key: str, spec: PartitionSpec) -> str:
    name = array.name if key == "book" else None
    reading = Reading(spec, dims=array.dims, shape=array.shape, dtype=array.dtype, name=name)
    return find_notation(key).write(reading, _context(array, mesh))


def _context(array: ShardedArray, mesh: Mesh) -> Context:
    return Context(mesh, array.rank, dict(zip(array.dims, array.shape, strict=True)))
