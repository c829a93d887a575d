"""One collective: ``sdy.all_gather [{}, {"Y"}] %0 out_sharding=<@mesh, [{"X"}, {}]> : tensor<8x64xf32>``.

Shardy's types are global. What one device holds follows from the sharding after the operation and from the
axes that it says it moves, so operands need not be looked up; only a permute needs its operand's sharding.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.groups.axes import axis_groups, device_ids
from shardviz.hlo.groups.members import Members
from shardviz.hlo.groups.replica_groups import MAX_LISTED_IDS, Lists
from shardviz.hlo.mlir.device_moves import move_pairs, moved_digits
from shardviz.hlo.mlir.mlir_regions import BLOCK_ARGUMENT, Function, Operation
from shardviz.hlo.mlir.operations import parse_tensor
from shardviz.hlo.mlir.tensor_sharding import (
    AxisRef,
    AxisSizes,
    Meshes,
    TensorSharding,
    parse_axes,
    parse_dims,
    parse_sharding,
    parse_sharding_list,
    parts,
)
from shardviz.hlo.text.shape import ArrayShape
from shardviz.hlo.text.transfer import Transfer
from shardviz.sharding import Mesh

OPS = {
    "all_gather": "all-gather",
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "collective_permute": "collective-permute",
    "all_slice": "slice",
}
"""Shardy's collectives. Its other operations between shardings (to_unreduced) are local and move nothing."""

_OP = re.compile(r"sdy\.(\w+)\s*")
_PART = re.compile(r"\{([^{}]*)\}\s*:\s*(\d{1,3})\s*->\s*(\d{1,3})")
_VALUE = re.compile(r"%[\w$.#-]+")
_MANUAL_AXES = re.compile(r"manual_axes=\{([^{}]*)\}")
_QUOTED = re.compile(r'"([^"]*)"')
_OUT = "out_sharding="


@dataclass(frozen=True)
class _Moved:
    """What an operation's own attributes say: its axes, the parts of each dimension before it, and where."""

    axes: tuple[AxisRef, ...]
    parts_before: tuple[int, ...]
    dim: int | None = None
    split_dim: int | None = None


def sdy_collective(operation: Operation, meshes: Meshes, mesh: Mesh | None) -> Collective | None:
    """The collective that an operation is; None when it is another operation.

    An operation over several dimensions is one collective, its axes in the order in which the text has
    them. Raises `NotationError` when it cannot be read.
    """
    text = operation.text
    match = _OP.match(text)
    op = OPS.get(match[1]) if match else None
    if match is None or op is None:
        return None
    out = text.find(_OUT)
    if out < 0:
        raise NotationError("an out_sharding was expected", text, match.end(), len(text))
    after, sizes, end = parse_sharding(text, out + len(_OUT), meshes)
    tensor = parse_tensor(text, end)
    if len(tensor.sizes) != len(after.dims):
        raise NotationError(f"a tensor of {len(after.dims)} dimensions was expected", text, end, len(text))
    moved = _moved(op, text, match.end(), out, after, sizes)
    own = mesh if mesh is not None and tuple(mesh.shape.items()) == tuple(sizes.items()) else None
    if op == "collective-permute":
        axes, groups, group_size = _permuted(operation, after, sizes, meshes, out)
        count = math.prod(sizes.values()) if axes else 0
    else:
        found = axis_groups(moved.axes, sizes)
        axes, group_size = tuple(str(axis) for axis in moved.axes if axis.size > 1), found.size
        groups, count = found.expand() if found.total <= MAX_LISTED_IDS else None, found.count
    transfer = Transfer(
        (ArrayShape(tensor.dtype, _local(tensor.sizes, moved.parts_before)),),
        (ArrayShape(tensor.dtype, _local(tensor.sizes, tuple(map(parts, after.dims)))),),
        moved.dim,
        moved.split_dim,
    )
    listed = None if groups is None else device_ids(groups, own)
    return Members(group_size, axes, listed, count).record(op, operation.value, transfer)


def _local(shape: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[int, ...]:
    """One device's part, rounded up where the parts are not equal."""
    return tuple(-(-size // max(1, cut)) for size, cut in zip(shape, cuts, strict=True))


def _moved(op: str, text: str, start: int, stop: int, after: TensorSharding, sizes: AxisSizes) -> _Moved:
    before = list(map(parts, after.dims))
    if op == "collective-permute":
        return _Moved((), tuple(before))
    if op == "all-reduce":
        return _Moved(parse_axes(text[start : text.find("}", start) + 1], sizes), tuple(before))
    if op == "all-to-all":
        return _exchanged(text, start, stop, before, sizes)
    dims, _ = parse_dims(text, start, sizes)
    if len(dims) != len(before):
        raise NotationError(f"{len(before)} lists of axes were expected", text, start, stop)
    for index, axes in enumerate(dims):
        if op == "all-gather":
            before[index] *= parts(axes)
        elif op in ("slice", "reduce-scatter"):
            before[index] //= parts(axes)
    touched = [index for index, axes in enumerate(dims) if axes]
    return _Moved(
        tuple(axis for axes in dims for axis in axes),
        tuple(before),
        touched[0] if len(touched) == 1 else None,
    )


def _exchanged(text: str, start: int, stop: int, before: list[int], sizes: AxisSizes) -> _Moved:
    """``[{"X"}: 0->2, {"Y"}: 1->3]``: axes that leave one dimension for another."""
    axes: tuple[AxisRef, ...] = ()
    moves = list(_PART.finditer(text, start, stop))
    for move in moves:
        moved, source, target = parse_axes(move[1], sizes), int(move[2]), int(move[3])
        if max(source, target) >= len(before):
            raise NotationError("there is no such dimension", text, move.start(), move.end())
        before[source] *= parts(moved)
        before[target] //= parts(moved)
        axes += moved
    if len(moves) != 1:
        return _Moved(axes, tuple(before))
    return _Moved(axes, tuple(before), int(moves[0][2]), int(moves[0][3]))


def _permuted(
    operation: Operation, after: TensorSharding, sizes: AxisSizes, meshes: Meshes, stop: int
) -> tuple[tuple[str, ...], Lists | None, int]:
    """A permute's axes in the mesh's order, its pairs of positions, and 2, or 1 when nothing moves after all.

    The text has no pairs; `device_moves` finds them. Where the sizes of axes do not divide one another
    there are only the axes that take part.
    """
    operand = _VALUE.search(operation.text, 0, stop)
    before = _sharding_of(operation.function, operand[0], sizes, meshes, len(after.dims)) if operand else None
    if before is None or len(before.dims) != len(after.dims):
        return (), None, 2
    moves = moved_digits(before, after)
    if moves is None:
        dims = zip(before.dims, after.dims, strict=True)
        changed = {axis.name for old, new in dims if old != new for axis in (*old, *new)}
        return tuple(name for name in sizes if name in changed), None, 2
    changed = {digit[0] for digit in moves}
    few = 2 * math.prod(sizes.values()) <= MAX_LISTED_IDS
    axes = tuple(name for name in sizes if name in changed)
    return axes, move_pairs(moves, sizes) if few else None, 2 if moves else 1


def _sharding_of(
    function: Function, value: str, sizes: AxisSizes, meshes: Meshes, rank: int
) -> TensorSharding | None:
    """A value's sharding over a mesh of `sizes`, as its definition says; None when that is not to be found.

    A definition that says nothing leaves the value whole on every device.
    """
    found = function.definition(value)
    if found is None:
        return None
    text, index = found
    if text == function.header:
        text, index = function.arguments[index] if index < len(function.arguments) else "", 0
    elif text.startswith(BLOCK_ARGUMENT):
        manual = _MANUAL_AXES.search(text)
        inside = _listed(text, "in_shardings=", index, sizes, meshes)
        return inside.without(_QUOTED.findall(manual[1])) if inside and manual else inside
    for key in ("out_shardings=", "sdy.sharding_per_value<"):
        if key in text:
            return _listed(text, key, index, sizes, meshes)
    for key in (_OUT, "#sdy.sharding"):
        if (at := text.rfind(key)) >= 0:
            sharding, own, _ = parse_sharding(text, at + len(key), meshes)
            return sharding if own == sizes else None
    return TensorSharding(((),) * rank)


def _listed(text: str, key: str, index: int, sizes: AxisSizes, meshes: Meshes) -> TensorSharding | None:
    listed = parse_sharding_list(text, text.rfind(key) + len(key), meshes)
    for place, (sharding, own) in enumerate(listed):
        if place == index:
            return sharding if own == sizes else None
    return None
