"""Which mesh axes a collective runs along, found by comparing ids, never by the names in the text.

XLA numbers the devices of a program by their row-major position in the mesh, whatever their ids are: with
``Mesh(numpy.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(2, 4), ...)`` the groups over the second
axis still read ``{{0,1,2,3},{4,5,6,7}}``. So positions are matched with axes, and only what is shown to the
user is translated into device ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shardviz.errors import NotationError
from shardviz.hlo.groups.loops import pieces, row_major
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups, groups_over
from shardviz.hlo.mlir.tensor_sharding import AxisRef, AxisSizes
from shardviz.sharding import Mesh


def group_axes(groups: ReplicaGroups, mesh: Mesh) -> tuple[str, ...]:
    """The axes over which ids vary within a group, in the order in which they vary, major first.

    Groups of single devices, groups that leave out devices and groups that follow no axes give ().
    """
    if groups.size <= 1 or groups.total != mesh.size:
        return ()
    nest = groups.member_loops
    if nest is None:
        return ()
    parts = []
    for loop in nest:
        found = pieces(loop, mesh.axis_sizes)
        if found is None:
            return ()
        parts.extend(found)
    return tuple(sub_axis(mesh, index, above, size) for index, above, size in parts)


def pair_axes(pairs: Iterable[tuple[int, ...]], mesh: Mesh) -> tuple[str, ...]:
    """The axes along which the source and the target of some pair differ, in the mesh's order."""
    moved: set[int] = set()
    for source, target in pairs:
        if not (0 <= source < mesh.size and 0 <= target < mesh.size):
            return ()
        if source != target:
            moved.update(
                index
                for index, (a, b) in enumerate(zip(mesh.coords(source), mesh.coords(target), strict=True))
                if a != b
            )
    return tuple(name for index, name in enumerate(mesh.axis_names) if index in moved)


def sub_axis(mesh: Mesh, index: int, above: int, size: int) -> str:
    """An axis, or a part of it as Shardy writes one: ``Y:(above)size``."""
    name = mesh.axis_names[index]
    return name if size == mesh.axis_sizes[index] else f"{name}:({above}){size}"


def axis_groups(axes: Sequence[AxisRef], sizes: AxisSizes) -> ReplicaGroups:
    """The groups of a collective over `axes`, as positions in a mesh of those `sizes`."""
    loops = dict(zip(sizes, row_major(tuple(sizes.values())), strict=True))
    inner = []
    for axis in axes:
        whole, stride = loops[axis.name]
        inner.append((axis.size, stride * (whole // (axis.above * axis.size))))
    return groups_over(inner, math.prod(sizes.values()))


def device_ids(groups: Lists, mesh: Mesh | None) -> Lists:
    """Positions as the ids of the devices that stand there; as they are without a mesh.

    Raises `NotationError` for a position outside of the mesh.
    """
    if mesh is None:
        return groups
    for group in groups:
        for position in group:
            if not 0 <= position < mesh.size:
                raise NotationError(f"there is no device {position} in the mesh {mesh}", str(group), 0)
    return tuple(tuple(mesh.device_id(position) for position in group) for group in groups)
