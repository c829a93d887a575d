"""Meshes and arrays on them: devices, coordinates, shards, bytes, and shardings in any notation; hosts,
experts and pipelines: groups that use the network between hosts, tokens without a place, stages that wait.

A job has processes, one on each host, with so many devices each in the order of the devices' numbers. An
expert has so many places; a token that chooses a full one is dropped. Of a pipeline the devices along a mesh
axis are stages, and micro-batches go through them one after the other: in every tick a stage works on one
micro-batch and hands it to the next stage, so stage s works on micro-batch t − s in tick t (Huang et al.,
"GPipe", 2019). The backward pass goes the same way back, with the same share of time idle.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from shardviz.devices.job import Job, group_span
from shardviz.errors import QuestionError, plural, quote
from shardviz.lessons.measures.answers import (
    BYTES,
    COORDINATES,
    DEVICES,
    NAMES,
    NUMBER,
    PERCENT,
    SHAPE,
    SLICES,
    AnswerKind,
    ComputedAnswer,
    check,
    coordinates,
    whole_number,
)
from shardviz.lessons.measures.subject import array_named, layout_named, position_of
from shardviz.notation.notations import find_notation, read_sharding
from shardviz.notation.reading import Context, Reading

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray


MAX_DEVICES = 2**20
"""More are not compared one by one."""
KEYS = {
    "book": "book",
    "pspec": "jax",
    "typeof": "typeof",
    "einshard": "einshard",
    "shardlib": "shardlib",
    "string": "shardviz",
}
"""The notations as lessons call them, with the keys of `NOTATIONS`."""

Bounds = tuple[int, int]


def devices(resolved: ResolvedProblem) -> ComputedAnswer:
    """The number of devices of the mesh."""
    return NUMBER.answer(resolved.problem.mesh.size)


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
    check(notation, KEYS, "there is no notation {}")
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


def size(resolved: ResolvedProblem, dim: str) -> ComputedAnswer:
    """The size of a dimension, given or derived, such as that of an expert's places."""
    return NUMBER.answer(_size_of(resolved, dim))


def dropped(resolved: ResolvedProblem, dim: str, loads: str) -> ComputedAnswer:
    """The choices that find no place, where `loads` says how many tokens of a sequence choose each expert and
    each expert has as many places as `dim` is long."""
    places = _size_of(resolved, dim)
    chosen = [whole_number(each) for each in loads.split(",")]
    if len(chosen) < 2:
        raise QuestionError(f"{quote(loads, 30)} is one load", "write one for each expert: 9,3,2,2")
    return NUMBER.answer(sum(max(0, each - places) for each in chosen))


def ticks(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The ticks until the last micro-batch has left the last stage."""
    return NUMBER.answer(_size_of(resolved, dim) + resolved.problem.mesh.axis_size(axis) - 1)


def bubble(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The share of its time for which a stage has nothing to do."""
    waits = resolved.problem.mesh.axis_size(axis) - 1
    return PERCENT.answer(Fraction(waits, _size_of(resolved, dim) + waits))


def kept(resolved: ResolvedProblem, axis: str, dim: str, stage: str) -> ComputedAnswer:
    """The micro-batches whose activations a stage holds at most with 1F1B: those that it sends forward before
    the first comes back (Narayanan et al., "PipeDream", 2019)."""
    ahead = resolved.problem.mesh.axis_size(axis) - whole_number(stage)
    return NUMBER.answer(min(_size_of(resolved, dim), ahead))


def _size_of(resolved: ResolvedProblem, dim: str) -> int:
    known = {
        name: extent
        for part in resolved.problem.forward
        for array in (*part.operands, part.result)
        for name, extent in zip(array.dims, array.shape, strict=True)
    }
    check(dim, known, "there is no dimension {}")
    return known[dim]


def loads(resolved: ResolvedProblem, array: str, holder: str, each: str) -> ComputedAnswer:
    """The part of an array that a process gives to its devices, start and stop of each dimension."""
    layout = layout_named(resolved, array)
    job, number = _job(layout.mesh, each), whole_number(holder)
    if number >= job.processes:
        problem = f"there is no process {number:,}"
        raise QuestionError(problem, f"there are {plural(job.processes, 'process', 'processes')}")
    places = range(layout.mesh.size)
    own = {layout[index].slices for index in places if job.holder(layout.mesh, index) == number}
    sides = zip(*own, strict=True)
    bounds = tuple((min(start for start, _ in side), max(stop for _, stop in side)) for side in sides)
    if sum(map(_elements, own)) != _elements(bounds):
        problem = f"the parts of {array} on the devices of process {number} are apart"
        raise QuestionError(problem, "take another mesh, or another spec")
    return SLICES.answer(bounds)


def crossing(resolved: ResolvedProblem, axis: str, each: str) -> ComputedAnswer:
    """The number of groups along an axis whose devices are not all of one process."""
    mesh = resolved.problem.mesh
    mesh.axis_size(axis)
    return NUMBER.answer(group_span(_job(mesh, each), mesh, (axis,)).across_hosts)


def links(resolved: ResolvedProblem, axis: str) -> ComputedAnswer:
    """The links that join the devices along an axis: DCN, NVLink, or axes of a torus (``x and y``)."""
    mesh, placed = resolved.problem.mesh, resolved.placed
    mesh.axis_size(axis)
    return NAMES.answer(frozenset(word for level in placed.group_levels((axis,)) for word in level.words))


def _elements(bounds: tuple[tuple[int, int], ...]) -> int:
    return math.prod(stop - start for start, stop in bounds)


def _job(mesh: Mesh, each: str) -> Job:
    """The job whose processes have `each` devices, every one on a host of its own."""
    devices = whole_number(each)
    if not devices or mesh.size % devices:
        problem = f"{plural(mesh.size, 'device')} are not a whole number of processes with {devices:,} each"
        raise QuestionError(problem, "write a number that divides the devices of the mesh")
    count = mesh.size // devices
    hosts = tuple(f"host {number}" for number in range(count))
    return Job(0, count, hosts, tuple(number // devices for number in range(mesh.size)))
