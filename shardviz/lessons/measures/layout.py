"""Meshes and arrays on them, and shardings in any notation; hosts, experts and pipelines.

A job has processes, one on each host, with so many devices each in the order of the devices' numbers. An
expert has so many places; a token that chooses a full one is dropped. In tick t, stage s of a pipeline works
on micro-batch t − s, and back in the same way (Huang et al., "GPipe", 2019)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from shardviz.devices.job import Job, group_span
from shardviz.errors import QuestionError, plural, quote
from shardviz.lessons.measures.answers import AnswerKind, ComputedAnswer, check, coordinates, whole_number
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


def device(resolved: ResolvedProblem, *places: str) -> int:
    """The number of the device at some coordinates."""
    mesh = resolved.problem.mesh
    at = dict(coordinates(" ".join(places)))
    for axis in at:
        if at[axis] >= mesh.axis_size(axis):
            problem = f"there is no {axis}={at[axis]}"
            raise QuestionError(problem, f"{axis} has {plural(mesh.axis_size(axis), 'place')}")
    if len(at) != len(mesh.axis_names):
        raise QuestionError("a device has a place on every axis", f"name {', '.join(mesh.axis_names)}")
    return mesh.device_id(sum(at[axis] * mesh.stride(axis) for axis in at))


def coordinates_of(resolved: ResolvedProblem, device: str) -> tuple[tuple[str, int], ...]:
    mesh = resolved.problem.mesh
    places = mesh.coords(position_of(mesh, device))
    return tuple(sorted(zip(mesh.axis_names, places, strict=True)))


def slices(resolved: ResolvedProblem, array: str, device: str) -> tuple[Bounds, ...]:
    """The elements of an array that a device holds, start and stop of each dimension."""
    layout = layout_named(resolved, array)
    return layout[position_of(layout.mesh, device)].slices


def holders(resolved: ResolvedProblem, array: str, device: str) -> tuple[int, ...]:
    """The devices that hold the same data of an array as a device, that one among them."""
    layout = layout_named(resolved, array)
    mine = layout.mesh.device_id(position_of(layout.mesh, device))
    bounds = (bounds_by_device(layout, dim) for dim in range(layout.array.rank))
    held = list(zip(sums_by_device(layout), *bounds, strict=True))
    return tuple(number for number, data in enumerate(held) if data == held[mine])


def shard_bytes(resolved: ResolvedProblem, array: str = "") -> int:
    """Bytes of an array on each device; of all operands together where none is named."""
    mesh = resolved.problem.mesh
    arrays = [array_named(resolved, array)] if array else resolved.problem.arguments
    return sum(array.bytes_per_device(mesh) for array in arrays)


def spelled(resolved: ResolvedProblem, array: str, notation: str) -> ComputedAnswer:
    """The sharding of an array in a notation."""
    return _spec_answer(array_named(resolved, array), resolved.problem.mesh, notation)


def result_spec(resolved: ResolvedProblem, notation: str = "string") -> ComputedAnswer:
    result = resolved.problem.result.with_spec(resolved.plan.result_spec)
    return _spec_answer(result, resolved.problem.mesh, notation)


def bounds_by_device(layout: Layout, dim: int) -> list[Bounds]:
    """(start, stop) along a dimension of what each device holds. Raises `QuestionError` for too many."""
    size, step = layout.array.shape[dim], layout.shard_shape[dim]
    parts = range(layout.parts[dim])
    bounds = [(min(part * step, size), min((part + 1) * step, size)) for part in parts]
    return [bounds[part] for part in _by_device(layout.mesh, layout.spec.dims[dim])]


def sums_by_device(layout: Layout) -> list[int]:
    """Each device's partial sum, from 1; 0 without a pending sum. Raises `QuestionError` for too many."""
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
    by_device = [0] * mesh.size
    for device, index in zip(mesh.device_order, places, strict=True):
        by_device[device] = index
    return by_device


def _spec_answer(array: ShardedArray, mesh: Mesh, notation: str) -> ComputedAnswer:
    check(notation, KEYS, "there is no notation {}")
    context = Context(mesh, array.rank, dict(zip(array.dims, array.shape, strict=True)))
    name = array.name if notation == "book" else None

    def write(spec: PartitionSpec) -> str:
        reading = Reading(spec, dims=array.dims, shape=array.shape, dtype=array.dtype, name=name)
        return find_notation(KEYS[notation]).write(reading, context)

    return AnswerKind(lambda text: read_sharding(text, context).spec, write).answer(array.decided_spec)


def dropped(resolved: ResolvedProblem, dim: str, loads: str) -> int:
    """The choices that find no place, where `loads` says how many tokens of a sequence choose each expert and
    each expert has as many places as `dim` is long."""
    places = size_of(resolved, dim)
    chosen = [whole_number(load) for load in loads.split(",")]
    if len(chosen) < 2:
        raise QuestionError(f"{quote(loads, 30)} is one load", "write one for each expert: 9,3,2,2")
    return sum(max(0, load - places) for load in chosen)


def ticks(resolved: ResolvedProblem, axis: str, dim: str) -> int:
    """The ticks until the last micro-batch has left the last stage."""
    return size_of(resolved, dim) + resolved.problem.mesh.axis_size(axis) - 1


def bubble(resolved: ResolvedProblem, axis: str, dim: str) -> Fraction:
    """The share of its time for which a stage has nothing to do."""
    waits = resolved.problem.mesh.axis_size(axis) - 1
    return Fraction(waits, size_of(resolved, dim) + waits)


def kept(resolved: ResolvedProblem, axis: str, dim: str, stage: str) -> int:
    """The micro-batches whose activations a stage holds at most with 1F1B: those that it sends forward before
    the first comes back (Narayanan et al., "PipeDream", 2019)."""
    ahead = resolved.problem.mesh.axis_size(axis) - whole_number(stage)
    return min(size_of(resolved, dim), ahead)


def size_of(resolved: ResolvedProblem, dim: str) -> int:
    """The size of a dimension, given or derived, such as that of an expert's places."""
    known = {
        name: extent
        for part in resolved.problem.forward
        for array in (*part.operands, part.result)
        for name, extent in zip(array.dims, array.shape, strict=True)
    }
    check(dim, known, "there is no dimension {}")
    return known[dim]


def loads(resolved: ResolvedProblem, array: str, holder: str, each: str) -> tuple[Bounds, ...]:
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
    elements = [math.prod(stop - start for start, stop in part) for part in (*own, bounds)]
    if sum(elements[:-1]) != elements[-1]:
        problem = f"the parts of {array} on the devices of process {number} are apart"
        raise QuestionError(problem, "take another mesh, or another spec")
    return bounds


def crossing(resolved: ResolvedProblem, axis: str, each: str) -> int:
    """The number of groups along an axis whose devices are not all of one process."""
    mesh = resolved.problem.mesh
    mesh.axis_size(axis)
    return group_span(_job(mesh, each), mesh, (axis,)).across_hosts


def links(resolved: ResolvedProblem, axis: str) -> frozenset[str]:
    """The links that join the devices along an axis: DCN, NVLink, or axes of a torus (``x and y``)."""
    mesh, placed = resolved.problem.mesh, resolved.placed
    mesh.axis_size(axis)
    return frozenset(word for level in placed.group_levels((axis,)) for word in level.words)


def _job(mesh: Mesh, each: str) -> Job:
    """The job whose processes have `each` devices, every one on a host of its own."""
    devices = whole_number(each)
    if not devices or mesh.size % devices:
        problem = f"{plural(mesh.size, 'device')} are not a whole number of processes with {devices:,} each"
        raise QuestionError(problem, "write a number that divides the devices of the mesh")
    count = mesh.size // devices
    hosts = tuple(f"host {number}" for number in range(count))
    return Job(0, count, hosts, tuple(number // devices for number in range(mesh.size)))
