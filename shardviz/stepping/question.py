"""A collective over an array on a mesh, carried out by one schedule, as people ask for it in texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shardviz.collectives.operation import Operation, UnfitShard
from shardviz.collectives.operations import check_operation, operation_for
from shardviz.collectives.schedule import Schedule
from shardviz.collectives.values import Values, array_from_numbers, float_limits, is_integer, numpy_dtype
from shardviz.errors import QuestionError, TargetError, plural
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_axes
from shardviz.notation.numbers import Numbers, parse_numbers, parse_shape
from shardviz.notation.reading import Context, Reading
from shardviz.sharding import Layout, Mesh, PartitionSpec
from shardviz.sharding.array import BITS

with LazyImports("ml_dtypes", "numpy"):
    import ml_dtypes
    import numpy as np

    from shardviz.notation import notations

MAX_BYTES = 2**62
"""Bytes that all devices send to all stay below it, so that sums of them fit 64 bits."""
MAX_DEVICES = 2**20
"""Every one of them has a place in the answer."""
MAX_COUNTED = 2**16
"""Elements of a larger array are not numbered when nobody gives them."""
MAX_HELD = 2**28
"""Bytes of the numbers that all devices may hold together, before or after."""
DTYPE_OF = {"bool": "pred", "int": "s32", "float": "f32", "complex": "c64"}

ALGORITHM_OF = {"all_to_all": "pairwise", "broadcast": "binomial-tree", "permute": "direct"}
"""The algorithm of a pattern when nobody chooses; a ring, or a torus over several axes, the others. An
all_reduce of too few elements for that has `whole` instead."""


@dataclass(frozen=True)
class CollectiveQuestion:
    """A collective over an array on a mesh, carried out by one schedule.

    `spec` is the array's sharding as it was asked for. `shards` has the shape (devices, *shard shape); None
    where only chunks are followed. `final_positions` are the mesh positions whose results, one behind the
    other on dimension 0, are what `shard_map` returns for the `out_specs` `final_spec`; empty where they
    cannot be. `counted`: the numbers are only examples, 0, 1, 2, … `is_smaller`: the array stands for one
    that is too large to be followed with numbers."""

    operation: Operation
    layout: Layout
    spec: str
    schedule: Schedule
    shards: Values | None
    final_spec: str = ""
    final_positions: tuple[int, ...] = ()
    counted: bool = False
    is_smaller: bool = False
    jax_call: ClassVar[str] = "run"
    """The worker's name of what runs it."""

    @property
    def mesh(self) -> Mesh:
        return self.layout.mesh

    def for_jax(self) -> tuple[Operation, Mesh, Values]:
        """The collective, its mesh and the shards. Raises `TargetError` where the shards have no values."""
        if self.shards is None:
            problem = f"the {self.layout.array.elements:,} elements are followed without numbers"
            raise TargetError(problem, f"take an array of up to {MAX_COUNTED:,}")
        return self.operation, self.layout.mesh, self.shards


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
    """The question, checked in full before anything large is made. Left out, `axis` are all axes of the mesh,
    `data` 0, 1, 2, …, `shape` one dimension or what the operation needs, `spec` dimension 0 over all axes.
    Raises `ShardvizError`."""
    check_operation(name, given)
    check_size(mesh)
    axes = mesh.axis_names if axis is None else parse_axes(axis, mesh)
    operation = operation_for(name, axes, given, mesh.group_size(axes))
    schedule = schedule_for_operation(operation, mesh, algorithm, pieces)
    smallest = operation.smallest_shard(schedule.pattern.group_size, schedule.pattern.pieces(schedule.chunks))
    numbers = None if data is None else parse_numbers(data)
    layout = _layout(mesh, numbers, shape, spec, dtype, smallest)
    check_layout(layout)
    _check_shards(operation, layout, numbers is not None)
    if algorithm is None and pieces is None:
        schedule = whole(schedule, layout.shard_shape)
    shown = str(layout.spec) if spec is None else spec
    if numbers is None:
        shards = counted_shards(layout, operation)
    elif _bytes_held(layout, operation) <= MAX_HELD:
        shards = shards_of(array_from_numbers(numbers.texts, layout.array.dtype), layout)
    else:
        together = f"{layout.mesh.size:,} devices would hold {held(layout, operation):,} numbers together"
        problem = f"{together}, more than {MAX_HELD // 2**20} MiB of them"
        raise QuestionError(problem, "leave out --data to follow chunks without numbers")
    final = final_result(operation, mesh)
    counted = numbers is None and shards is not None
    return CollectiveQuestion(operation, layout, shown, schedule, shards, *final, counted=counted)


def schedule_for_operation(
    operation: Operation, mesh: Mesh, algorithm: str | None, pieces: int | None
) -> Schedule:
    """The rounds by the named algorithm, or by the usual one (None). Raises `QuestionError`."""
    from shardviz.collectives.algorithms import schedule_for

    dims = operation.dims(mesh)
    around = "torus" if sum(size > 1 for size in dims) > 1 else "ring"
    pattern = operation.pattern(dims)
    if algorithm is None:
        algorithm = ALGORITHM_OF.get(pattern.kind, around)
    return schedule_for(algorithm, pattern, pieces, operation.name)


def whole(schedule: Schedule, shard_shape: tuple[int, ...]) -> Schedule:
    """The schedule, or where it cuts shards of an all_reduce into more chunks than they have elements one
    that moves them whole: no chunk is empty, and no round sends nothing."""
    from shardviz.collectives.algorithms import schedule_for

    pattern = schedule.pattern
    if pattern.kind != "all_reduce" or math.prod(shard_shape) >= schedule.chunks:
        return schedule
    power_of_two = not pattern.group_size & (pattern.group_size - 1)
    return schedule_for("recursive-doubling" if power_of_two else "binomial-tree", pattern)


def final_result(operation: Operation, mesh: Mesh) -> tuple[str, tuple[int, ...]]:
    """The `out_specs` for which `shard_map` returns all results, and the mesh positions in its order."""
    reduced = operation.axes if operation.leaves_copies else ()
    axes = tuple(axis for axis in mesh.axis_names if axis not in reduced)
    positions = np.arange(mesh.size).reshape(mesh.axis_sizes)
    first = tuple(0 if axis in reduced else slice(None) for axis in mesh.axis_names)
    return str(PartitionSpec((axes,) if axes else ())), tuple(np.ravel(positions[first]).tolist())


def check_layout(layout: Layout) -> None:
    """Raise `QuestionError` for uneven parts, pending sums, and sizes beyond any count of bytes."""
    if layout.spec.unreduced:
        hint = "split a dimension over the axis instead: each device's part is its addend"
        raise QuestionError(f"the array is a pending sum over {', '.join(layout.spec.unreduced)}", hint)
    if layout.bytes_per_device * layout.mesh.size**2 > MAX_BYTES:
        shards = f"{plural(layout.mesh.size, 'shard')} of {layout.bytes_per_device:,} bytes"
        raise QuestionError(f"{shards} are too large to count", "use smaller sizes")
    for uneven in layout.uneven:
        axes = ", ".join(f"{axis}={layout.mesh.axis_size(axis)}" for axis in layout.spec.dims[uneven.dim])
        problem = f"dimension {uneven.dim} has {plural(uneven.size, 'element')}, which {axes} does not divide"
        raise QuestionError(problem, f"give it a multiple of {uneven.parts:,}, or change its --spec")


def check_size(mesh: Mesh) -> None:
    if mesh.size > MAX_DEVICES:
        problem = f"the mesh {mesh} has {mesh.size:,} devices"
        raise QuestionError(problem, f"shardviz steps through up to {MAX_DEVICES:,}")


def _check_shards(operation: Operation, layout: Layout, given: bool) -> None:
    """Raise `QuestionError` for shards on which the operation does not work, with an array that would do."""
    try:
        operation.check(layout.shard_shape, layout.array.dtype, layout.mesh.group_size(operation.axes))
    except UnfitShard as error:
        before, after = layout.array.shape[: error.dim], layout.array.shape[error.dim + 1 :]
        shapes = [(*before, size * layout.parts[error.dim], *after) for size in error.sizes]
        shown = " or ".join("x".join(map(str, shape)) for shape in shapes)
        would = f"--shape {shown}"
        if given:
            would = " or ".join(f"{math.prod(shape):,}" for shape in shapes) + " numbers"
            would += "" if len(shapes[0]) == 1 else f" in the shape {shown}"
        sizes = " or ".join(f"{size:,}" for size in error.sizes)
        hint = f"{would} would work: {sizes} along that dimension on each device"
        raise QuestionError(error.message, hint) from None


def _layout(
    mesh: Mesh,
    numbers: Numbers | None,
    shape: str | None,
    spec: str | None,
    dtype: str | None,
    smallest: tuple[int, ...],
) -> Layout:
    sizes: tuple[int, ...] | None = None if numbers is None else (len(numbers),)
    if shape is not None:
        sizes = parse_shape(shape)
    if spec is not None:
        reading = notations.read_sharding(spec, Context(mesh, None if sizes is None else len(sizes)))
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
        array = f"an array of the shape {'x'.join(map(str, sizes)) or '()'} has {math.prod(sizes):,}"
        hint = "give as many numbers as the shape has, or leave out --data for 0, 1, 2, …"
        raise QuestionError(f"--data has {plural(len(numbers), 'number')}, but {array}", hint)
    usual = "s32" if numbers is None else DTYPE_OF[numbers.kind]
    return notations.layout_as_read(sizes, mesh, spec, reading, dtype, usual)


def counted_shards(layout: Layout, operation: Operation) -> Values | None:
    """Shards of 0, 1, 2, …, each addend of a pending sum with its own; None where they would be too many."""
    elements = layout.array.elements * layout.mesh.group_size(layout.spec.unreduced)
    if elements > MAX_COUNTED or _bytes_held(layout, operation) > MAX_HELD:
        return None
    return shards_of(counted(elements, layout.array.dtype), layout)


def held(layout: Layout, operation: Operation) -> int:
    """Elements that all devices hold together, before or after."""
    larger = operation.larger(layout.shard_shape, layout.mesh.group_size(operation.axes))
    return layout.mesh.size * max(1, math.prod(layout.shard_shape), math.prod(larger))


def _bytes_held(layout: Layout, operation: Operation) -> int:
    return held(layout, operation) * max(8, BITS[layout.array.dtype]) // 8


def distinct(dtype: str) -> int:
    """The count of whole numbers from 0 on that a dtype tells apart."""
    if dtype == "pred":
        return 2
    element = numpy_dtype(dtype)
    if is_integer(dtype):
        return int(ml_dtypes.iinfo(element).max) + 1  # type: ignore[no-untyped-call]
    return 1 << (int(float_limits(element).nmant) + 1)


def counted(count: int, dtype: str) -> Values:
    """0, 1, 2, …, starting over where the dtype cannot tell the next number from others."""
    return (np.arange(count) % min(distinct(dtype), max(1, count))).astype(numpy_dtype(dtype))


def shards_of(values: Values, layout: Layout) -> Values:
    """The parts of an array by mesh position; `values` is flat, and has an array for each addend of a sum."""
    parts = (*layout.parts, layout.mesh.group_size(layout.spec.unreduced))
    sizes = layout.shard_shape
    interleaved = [size for pair in zip(parts, sizes, strict=False) for size in pair]
    rank = len(sizes)
    blocks = values.reshape(parts[-1], *interleaved)
    order = (*range(1, 2 * rank, 2), 0, *range(2, 2 * rank + 1, 2))
    shards: Values = blocks.transpose(order).reshape(math.prod(parts), *sizes)[layout.shards()]
    return shards


def joined(shards: Values, layout: Layout) -> Values:
    """The array of its parts by mesh position; the addends of a pending sum are added."""
    whole = np.zeros(layout.array.shape, dtype=shards.dtype)
    for device, shard in {
        device.shard: (device, own) for device, own in zip(layout, shards, strict=True)
    }.values():
        place = tuple(slice(*bounds) for bounds in device.slices)
        whole[place] = whole[place] + shard if layout.spec.unreduced else shard
    return whole
