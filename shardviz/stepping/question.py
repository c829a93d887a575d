"""A collective over an array on a mesh, carried out by one schedule: what is to be stepped through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation, Schedule
    from shardviz.sharding import Layout, Mesh

    Values = NDArray[Any]

MAX_BYTES = 2**62
"""What all devices send to all stays below it, so that sums of bytes fit 64 bits."""
MAX_DEVICES = 2**20
"""Every one of them has a place in the answer."""

ALGORITHM_OF = {"all_to_all": "pairwise", "broadcast": "binomial-tree", "permute": "direct"}
"""What carries out a pattern when nobody chooses; a ring, or a torus over several axes, the others. An
all_reduce of too few elements for that has `whole` instead."""


@dataclass(frozen=True)
class CollectiveQuestion:
    """A collective over an array on a mesh, carried out by one schedule.

    `spec` is the array's sharding as it was asked for. `shards` has the shape (devices, *shard shape), by
    mesh position; None where only chunks are followed. `final_positions` are the mesh positions whose
    results, laid one behind the other on dimension 0, are what `shard_map` returns for the `out_specs`
    `final_spec`; empty where they cannot be. `counted`: the numbers are only examples, 0, 1, 2, …
    """

    operation: Operation
    layout: Layout
    spec: str
    schedule: Schedule
    shards: Values | None
    final_spec: str = ""
    final_positions: tuple[int, ...] = ()
    counted: bool = False


def schedule_for_operation(
    operation: Operation, mesh: Mesh, algorithm: str | None, pieces: int | None
) -> Schedule:
    """The rounds by the named algorithm, or by the usual one (None). Raises `QuestionError`."""
    from shardviz.collectives import schedule_for

    dims = operation.dims(mesh)
    around = "torus" if sum(size > 1 for size in dims) > 1 else "ring"
    pattern = operation.pattern(dims)
    if algorithm is None:
        algorithm = ALGORITHM_OF.get(pattern.kind, around)
    return schedule_for(algorithm, pattern, pieces, operation.name)


def whole(schedule: Schedule, shard_shape: tuple[int, ...]) -> Schedule:
    """The schedule, unless it cuts shards of an all_reduce into more chunks than they have elements.

    Then one that moves them whole: no chunk is empty, and no round sends nothing.
    """
    from shardviz.collectives import schedule_for

    pattern = schedule.pattern
    if pattern.kind != "all_reduce" or math.prod(shard_shape) >= schedule.chunks:
        return schedule
    power_of_two = not pattern.group_size & (pattern.group_size - 1)
    return schedule_for("recursive-doubling" if power_of_two else "binomial-tree", pattern)


def final_result(operation: Operation, mesh: Mesh) -> tuple[str, tuple[int, ...]]:
    """The `out_specs` for which `shard_map` returns all results, and the mesh positions in its order.

    A reduction leaves one copy for each group, anything else a result for each device, on dimension 0.
    """
    import numpy as np

    from shardviz.sharding import PartitionSpec

    reduced = operation.axes if operation.leaves_copies else ()
    axes = tuple(axis for axis in mesh.axis_names if axis not in reduced)
    positions = np.arange(mesh.size).reshape(mesh.axis_sizes)
    first = tuple(0 if axis in reduced else slice(None) for axis in mesh.axis_names)
    return str(PartitionSpec((axes,) if axes else ())), tuple(np.ravel(positions[first]).tolist())


def check_layout(layout: Layout) -> None:
    """Raise `QuestionError` for a dimension that its parts do not divide, pending sums, and sizes beyond any
    count of bytes."""
    if layout.spec.unreduced:
        raise QuestionError(
            f"the array is a pending sum over {', '.join(layout.spec.unreduced)}",
            "split a dimension over the axis instead: each device's part is its addend",
        )
    if layout.bytes_per_device * layout.mesh.size**2 > MAX_BYTES:
        raise QuestionError(
            f"{plural(layout.mesh.size, 'shard')} of {layout.bytes_per_device:,} bytes are too large to "
            f"count",
            "use smaller sizes",
        )
    for uneven in layout.uneven:
        axes = ", ".join(f"{axis}={layout.mesh.axis_size(axis)}" for axis in layout.spec.dims[uneven.dim])
        raise QuestionError(
            f"dimension {uneven.dim} has {plural(uneven.size, 'element')}, which {axes} does not divide",
            f"give it a multiple of {uneven.parts:,}, or split it otherwise with --spec",
        )


def check_size(mesh: Mesh) -> None:
    """Raise `QuestionError` for a mesh of more devices than can be followed."""
    if mesh.size > MAX_DEVICES:
        raise QuestionError(
            f"the mesh {mesh} has {mesh.size:,} devices", f"shardviz steps through up to {MAX_DEVICES:,}"
        )
