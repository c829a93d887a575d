"""Options of `shardviz step` → a collective, the array that it works on, and every device's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.cli.device_numbers import shards_from
from shardviz.cli.operation_options import check_operation, operation_for
from shardviz.errors import QuestionError
from shardviz.render.units import plural
from shardviz.sharding.layout import MAX_RANK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation, Schedule
    from shardviz.notation import Numbers
    from shardviz.sharding import Layout, Mesh

    Values = NDArray[Any]

MAX_BYTES = 2**62
"""What all devices send to all stays below it, so that sums of bytes fit 64 bits."""
MAX_DEVICES = 2**20
"""Every one of them has a place in the answer."""

REDUCTIONS = ("psum", "pmean", "pmax", "pmin")
"""After these all members of a group hold the same."""

ALGORITHM_OF = {
    "all_to_all": "pairwise",
    "ragged_all_to_all": "pairwise",
    "pbroadcast": "binomial-tree",
    "ppermute": "direct",
}
"""What carries out an operation when nobody chooses; a ring, or a torus over several axes, the others."""

DTYPE_OF = {"bool": "pred", "int": "s32", "float": "f32", "complex": "c64"}
"""The dtype of numbers when nobody gives one."""


@dataclass(frozen=True)
class CollectiveQuestion:
    """A collective over an array on a mesh, carried out by one schedule.

    `spec` is the array's sharding as it was asked for. `shards` has the shape (devices, *shard shape), by
    mesh position; None where only chunks are followed. `final_positions` are the mesh positions whose
    results, laid one behind the other on dimension 0, are what `shard_map` returns for the `out_specs`
    `final_spec`; empty where they cannot be.
    """

    operation: Operation
    layout: Layout
    spec: str
    schedule: Schedule
    shards: Values | None
    final_spec: str = ""
    final_positions: tuple[int, ...] = ()


def schedule_for_operation(
    operation: Operation, mesh: Mesh, algorithm: str | None, pieces: int | None
) -> Schedule:
    """The rounds by the named algorithm, or by the usual one. Raises `QuestionError`."""
    from shardviz.collectives import schedule_for

    dims = operation.dims(mesh)
    around = "torus" if sum(size > 1 for size in dims) > 1 else "ring"
    usual = ALGORITHM_OF.get(operation.name, around)
    return schedule_for(algorithm or usual, operation.pattern(dims), pieces)


def question_from_options(
    name: str,
    given: Mapping[str, Any],
    *,
    mesh: Mesh,
    axis: str | None,
    data: str | None,
    shape: str | None,
    spec: str | None,
    dtype: str | None,
    algorithm: str | None,
    pieces: int | None,
) -> CollectiveQuestion:
    """What was asked, checked in full before anything large is made. Raises `ShardvizError`.

    Left out, `axis` are all axes of the mesh, `data` 0, 1, 2, …, `shape` one dimension or what the operation
    needs, `spec` dimension 0 over all axes.
    """
    from shardviz.notation import parse_axes, parse_numbers

    check_operation(name, given)
    check_size(mesh)
    axes = mesh.axis_names if axis is None else parse_axes(axis, mesh)
    operation = operation_for(name, axes, given, mesh.group_size(axes))
    schedule = schedule_for_operation(operation, mesh, algorithm, pieces)
    numbers = None if data is None else parse_numbers(data)
    layout = _layout(mesh, numbers, shape, spec, dtype, smallest_shard(operation, schedule))
    check_layout(layout)
    operation.check(layout.shard_shape, layout.array.dtype, schedule.pattern.group_size)
    shown = str(layout.spec) if spec is None else spec
    shards = shards_from(layout, numbers, operation)
    return CollectiveQuestion(operation, layout, shown, schedule, shards, *final_result(operation, mesh))


def final_result(operation: Operation, mesh: Mesh) -> tuple[str, tuple[int, ...]]:
    """The `out_specs` for which `shard_map` returns all results, and the mesh positions in its order.

    A reduction leaves one copy for each group, anything else a result for each device, on dimension 0.
    """
    import numpy as np

    from shardviz.sharding import PartitionSpec

    reduced = operation.axes if operation.name in REDUCTIONS else ()
    axes = tuple(axis for axis in mesh.axis_names if axis not in reduced)
    positions = np.arange(mesh.size).reshape(mesh.axis_sizes)
    first = tuple(0 if axis in reduced else slice(None) for axis in mesh.axis_names)
    return str(PartitionSpec((axes,) if axes else ())), tuple(np.ravel(positions[first]).tolist())


def smallest_shard(operation: Operation, schedule: Schedule) -> tuple[int, ...]:
    """The shape of the smallest shard with which the operation works and no chunk is empty."""
    pattern = schedule.pattern
    pieces = pattern.pieces(schedule.chunks)
    parameters = vars(operation)
    tiled = parameters.get("tiled", True)
    if operation.name == "ragged_all_to_all":
        return (max(map(sum, parameters["send_sizes"])) * pieces,)
    dims = [value for name, value in parameters.items() if name.endswith(("axis", "_dimension"))]
    if pattern.kind == "all_gather":
        # An untiled gather makes a dimension of its own.
        dims = [dims[0] - (not tiled)]
        size = pieces
    elif pattern.kind in ("reduce_scatter", "all_to_all"):
        size = pattern.group_size * (pieces if tiled else 1)
    else:
        dims, size = [0], pieces
    rank = max(dim + 1 if dim >= 0 else -dim for dim in dims)
    if rank > MAX_RANK:
        # The operation will say that there is no such dimension.
        return (size,)
    shape = [1] * rank
    shape[dims[0]] = size
    return tuple(shape)


def _layout(
    mesh: Mesh,
    numbers: Numbers | None,
    shape: str | None,
    spec: str | None,
    dtype: str | None,
    smallest: tuple[int, ...],
) -> Layout:
    from shardviz.cli.questions import layout_as_read, parse_shape
    from shardviz.notation import Context, Reading, read_sharding
    from shardviz.sharding import PartitionSpec

    sizes: tuple[int, ...] | None = None if numbers is None else (len(numbers),)
    if shape is not None:
        sizes = parse_shape(shape)
    if spec is not None:
        reading = read_sharding(spec, Context(mesh, None if sizes is None else len(sizes)))
        if shape is None and reading.shape is not None:
            sizes = reading.shape
    else:
        rank = len(smallest) if sizes is None else len(sizes)
        reading = Reading(PartitionSpec(((mesh.axis_names,) + ((),) * rank)[:rank]))
        spec = str(reading.spec)
    if sizes is None:
        parts = reading.spec.parts(mesh)
        padded = (*smallest, *(1,) * len(parts))
        sizes = tuple(size * count for size, count in zip(padded, parts, strict=False))
    if numbers is not None and math.prod(sizes) != len(numbers):
        raise QuestionError(
            f"--data has {plural(len(numbers), 'number')}, but an array of the shape "
            f"{'x'.join(map(str, sizes)) or '()'} has {math.prod(sizes):,}",
            "give as many numbers as the shape has, or leave out --data for 0, 1, 2, …",
        )
    usual = "s32" if numbers is None else DTYPE_OF[numbers.kind]
    return layout_as_read(sizes, mesh, spec, reading, dtype, usual)


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
            f"{layout.mesh.size:,} shards of {layout.bytes_per_device:,} bytes are too large to count",
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
