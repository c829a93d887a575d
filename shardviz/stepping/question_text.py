"""The texts of `shardviz step` → a collective, the array that it works on, and every device's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shardviz.collectives.operations import check_operation, operation_for
from shardviz.errors import QuestionError, plural
from shardviz.stepping.device_numbers import shards_from
from shardviz.stepping.question import (
    CollectiveQuestion,
    check_layout,
    check_size,
    final_result,
    schedule_for_operation,
    whole,
)

if TYPE_CHECKING:
    from shardviz.collectives import Operation
    from shardviz.notation import Numbers
    from shardviz.sharding import Layout, Mesh

DTYPE_OF = {"bool": "pred", "int": "s32", "float": "f32", "complex": "c64"}
"""The dtype of numbers when nobody gives one."""


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
    pieces_of_block = schedule.pattern.pieces(schedule.chunks)
    smallest = operation.smallest_shard(schedule.pattern.group_size, pieces_of_block)
    numbers = None if data is None else parse_numbers(data)
    layout = _layout(mesh, numbers, shape, spec, dtype, smallest)
    check_layout(layout)
    _check_shards(operation, layout, numbers is not None)
    if algorithm is None and pieces is None:
        schedule = whole(schedule, layout.shard_shape)
    shown = str(layout.spec) if spec is None else spec
    shards = shards_from(layout, numbers, operation)
    final = final_result(operation, mesh)
    counted = numbers is None and shards is not None
    return CollectiveQuestion(operation, layout, shown, schedule, shards, *final, counted=counted)


def _check_shards(operation: Operation, layout: Layout, given: bool) -> None:
    """Raise `QuestionError` for shards on which the operation does not work, with a whole array that would
    give it others; `given`: its numbers were."""
    from shardviz.collectives.operations.dimension import UnfitShard

    group_size = layout.mesh.group_size(operation.axes)
    try:
        operation.check(layout.shard_shape, layout.array.dtype, group_size)
    except UnfitShard as error:
        shapes = []
        for size in error.sizes:
            shape = list(layout.array.shape)
            shape[error.dim] = size * layout.parts[error.dim]
            shapes.append(shape)
        if given:
            would = " or ".join(f"{math.prod(shape):,}" for shape in shapes) + " numbers"
            would += "" if len(shapes[0]) == 1 else f" in the shape {_joined(shapes)}"
        else:
            would = f"--shape {_joined(shapes)}"
        each = " or ".join(f"{size:,}" for size in error.sizes)
        raise QuestionError(
            error.message, f"{would} would work: {each} along that dimension on each device"
        ) from None


def _joined(shapes: list[list[int]]) -> str:
    return " or ".join("x".join(map(str, shape)) for shape in shapes)


def _layout(
    mesh: Mesh,
    numbers: Numbers | None,
    shape: str | None,
    spec: str | None,
    dtype: str | None,
    smallest: tuple[int, ...],
) -> Layout:
    from shardviz.notation import Context, Reading, layout_as_read, parse_shape, read_sharding
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
