"""Which part of an array every device holds, by the devices' numbers, in lists that compare quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.sharding import Layout, Mesh

MAX_DEVICES = 2**20
"""More are not listed one by one."""

Bounds = tuple[int, int]


def bounds_by_device(layout: Layout, dim: int) -> list[Bounds]:
    """(start, stop) along a dimension of what each device holds. Raises `QuestionError` for too many."""
    size, step = layout.array.shape[dim], layout.shard_shape[dim]
    parts = range(layout.parts[dim])
    bounds = [(min(part * step, size), min((part + 1) * step, size)) for part in parts]
    return [bounds[part] for part in _by_device(layout.mesh, layout.spec.dims[dim])]


def sums_by_device(layout: Layout) -> list[int]:
    """Which partial sum each device holds, from 1; 0 where the array is no pending sum. Raises
    `QuestionError` for too many."""
    pending = layout.mesh.group_size(layout.spec.unreduced) > 1
    return [number + pending for number in _by_device(layout.mesh, layout.spec.unreduced)]


def _by_device(mesh: Mesh, axes: tuple[str, ...]) -> list[int]:
    """Each device's place along `axes`, of which the first is the major one."""
    if mesh.size > MAX_DEVICES:
        raise QuestionError(
            f"{mesh.size:,} devices are too many to compare one by one", f"take up to {MAX_DEVICES:,}"
        )
    weights, weight = dict.fromkeys(mesh.axis_names, 0), 1
    for axis in reversed(axes):
        weights[axis] = weight
        weight *= mesh.axis_size(axis)
    places = [0]
    for axis, size in mesh.shape.items():
        steps = [weights[axis] * place for place in range(size)]
        places = [before + step for before in places for step in steps]
    if mesh.device_order is None:
        return places
    found = [0] * mesh.size
    for device, place in zip(mesh.device_order, places, strict=True):
        found[device] = place
    return found
