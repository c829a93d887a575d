"""Meshes and arrays on them: how many, who, which part, how many bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural
from shardviz.lessons.measures.answer import Answer
from shardviz.lessons.measures.holding import bounds_by_device, sums_by_device
from shardviz.lessons.measures.kinds import (
    BYTES,
    COORDINATES,
    DEVICES,
    NUMBER,
    SHAPE,
    SLICES,
    coordinates,
)
from shardviz.lessons.measures.subject import array_named, layout_named, position_of

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem


def devices(scene: ResolvedProblem) -> Answer:
    """How many devices the mesh has."""
    return NUMBER.answer(scene.problem.mesh.size)


def axis_size(scene: ResolvedProblem, axis: str) -> Answer:
    """How many devices lie along an axis."""
    return NUMBER.answer(scene.problem.mesh.axis_size(axis))


def device(scene: ResolvedProblem, *places: str) -> Answer:
    """The number of the device at some coordinates."""
    mesh = scene.problem.mesh
    at = dict(coordinates(" ".join(places)))
    for axis in at:
        if at[axis] >= mesh.axis_size(axis):
            raise QuestionError(
                f"there is no {axis}={at[axis]}", f"{axis} has {plural(mesh.axis_size(axis), 'place')}"
            )
    if len(at) != len(mesh.axis_names):
        raise QuestionError("a device has a place on every axis", f"name {', '.join(mesh.axis_names)}")
    position = 0
    for axis, size in mesh.shape.items():
        position = position * size + at[axis]
    return NUMBER.answer(mesh.device_id(position))


def coordinates_of(scene: ResolvedProblem, number: str) -> Answer:
    """The coordinates of a device."""
    mesh = scene.problem.mesh
    places = mesh.coords(position_of(mesh, number))
    return COORDINATES.answer(tuple(sorted(zip(mesh.axis_names, places, strict=True))))


def shard_shape(scene: ResolvedProblem, array: str) -> Answer:
    """The shape of the part of an array that each device holds."""
    return SHAPE.answer(layout_named(scene, array).shard_shape)


def slices(scene: ResolvedProblem, array: str, number: str) -> Answer:
    """Which elements of an array a device holds, start and stop of each dimension."""
    layout = layout_named(scene, array)
    return SLICES.answer(layout[position_of(layout.mesh, number)].slices)


def holders(scene: ResolvedProblem, array: str, number: str) -> Answer:
    """The devices that hold the same data of an array as a device, that one among them."""
    layout = layout_named(scene, array)
    mine = layout.mesh.device_id(position_of(layout.mesh, number))
    bounds = (bounds_by_device(layout, dim) for dim in range(layout.array.rank))
    held = list(zip(sums_by_device(layout), *bounds, strict=True))
    return DEVICES.answer(tuple(device for device, each in enumerate(held) if each == held[mine]))


def replicas(scene: ResolvedProblem, array: str) -> Answer:
    """How many devices hold each part of an array."""
    return NUMBER.answer(layout_named(scene, array).replicas)


def whole_bytes(scene: ResolvedProblem, array: str) -> Answer:
    """Bytes of one whole copy of an array."""
    return BYTES.answer(array_named(scene, array).nbytes)


def shard_bytes(scene: ResolvedProblem, array: str = "") -> Answer:
    """Bytes of an array on each device; of all operands together where none is named."""
    mesh = scene.problem.mesh
    arrays = [array_named(scene, array)] if array else scene.problem.arguments
    return BYTES.answer(sum(each.bytes_per_device(mesh) for each in arrays))
