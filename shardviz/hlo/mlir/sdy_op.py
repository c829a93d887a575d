"""Shardy's collectives, such as ``sdy.all_gather [{}, {"Y"}] %0 out_sharding=<@mesh, [{"X"}, {}]>``.

Shardy's types are global. What one device holds follows from the sharding after the operation and from the
axes that it says it moves, so operands need not be looked up; only a permute needs its operand's sharding.

A permute names only the shardings before and after. Each of the two assigns to every block of the tensor
digits of the device's coordinates. Cut fine enough, the digits match one to one, so that a target's digit
``q`` says where its source stands in digit ``p``. Digits that no longer, or not yet, choose a block are
closed into cycles, which makes the move a permutation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.groups.replica_groups import MAX_LISTED_IDS, Lists, device_ids
from shardviz.hlo.mlir.attributes import (
    AxisRef,
    AxisSizes,
    Meshes,
    TensorSharding,
    axis_groups,
    parse_axes,
    parse_dims,
    parse_sharding,
    parse_sharding_list,
    parse_tensor,
    parts,
)
from shardviz.hlo.mlir.regions import BLOCK_ARGUMENT, Function, MlirOperation
from shardviz.hlo.records import CollectiveShapes, Members
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
_RESHARD = re.compile(r"sdy\.(?:reshard|sharding_constraint) %[\w$.#-]+ ")
_MANUAL_AXES = re.compile(r"manual_axes=\{([^{}]*)\}")
_QUOTED = re.compile(r'"([^"]*)"')
_OUT = "out_sharding="
Digit = tuple[str, int, int]
"""Part of a coordinate: axis, how many parts lie above, size."""


@dataclass(frozen=True)
class _Moved:
    """An operation's own attributes: its axes, the parts of each dimension before it, and where."""

    axes: tuple[AxisRef, ...]
    parts_before: tuple[int, ...]
    dim: int | None = None
    split_dim: int | None = None


def sdy_collective(operation: MlirOperation, meshes: Meshes, mesh: Mesh | None) -> Collective | None:
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
    transfer = CollectiveShapes(
        (tensor.part(moved.parts_before),),
        (tensor.part(map(parts, after.dims)),),
        moved.dim,
        moved.split_dim,
    )
    listed = None if groups is None else device_ids(groups, own)
    return Members(group_size, axes, listed, count).record(op, operation.value, transfer)


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
            raise NotationError("the tensor has no such dimension", text, move.start(), move.end())
        before[source] *= parts(moved)
        before[target] //= parts(moved)
        axes += moved
    if len(moves) != 1:
        return _Moved(axes, tuple(before))
    return _Moved(axes, tuple(before), int(moves[0][2]), int(moves[0][3]))


def _permuted(
    operation: MlirOperation, after: TensorSharding, sizes: AxisSizes, meshes: Meshes, stop: int
) -> tuple[tuple[str, ...], Lists | None, int]:
    """A permute's axes in the mesh's order, its pairs of positions, and 2, or 1 when nothing moves after all.

    The text has no pairs; `device_moves` finds them. Where the sizes of axes do not divide one another
    there are only the axes that take part.
    """
    operand = _VALUE.search(operation.text, 0, stop)
    before = sharding_of(operation.function, operand[0], sizes, meshes, len(after.dims)) if operand else None
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


def sharding_of(
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
    if text.startswith("stablehlo.while("):
        # The shardings of what it carries stand on a later line.
        return None
    if reshard := _RESHARD.match(text):
        sharding, own, _ = parse_sharding(text, reshard.end(), meshes)
        return sharding if own == sizes else None
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


def moved_digits(before: TensorSharding, after: TensorSharding) -> dict[Digit, Digit] | None:
    """Source digit → the target's digit that it equals, for those that differ.

    None when the sizes of the axes do not divide one another, so that there are no common digits.
    """
    if len(before.dims) != len(after.dims):
        return None
    moves: dict[Digit, Digit] = {}
    cuts: dict[str, set[int]] = {}
    dims = zip(before.dims, after.dims, strict=True)
    pairs = [(list(map(_digit, old)), list(map(_digit, new))) for old, new in dims]
    for _ in range(64):
        known = {name: set(places) for name, places in cuts.items()}
        moves = {}
        for old, new in pairs:
            matched = _matched(_refined(old, cuts), _refined(new, cuts))
            if matched is None:
                return None
            for p, q in matched:
                for name, above, size in (p, q):
                    cuts.setdefault(name, set()).update((above, above * size))
                moves[p] = q
        if known == cuts:
            return _closed(moves)
    return None


def _digit(axis: AxisRef) -> Digit:
    return axis.name, axis.above, axis.size


def _refined(digits: Sequence[Digit], cuts: dict[str, set[int]]) -> list[Digit]:
    """The digits cut at all the places known so far."""
    found: list[Digit] = []
    for name, above, size in digits:
        places = sorted(p for p in cuts.get(name, ()) if above < p < above * size)
        for low, high in zip([above, *places], [*places, above * size], strict=True):
            if high % low:
                return list(digits)
            found.append((name, low, high // low))
    return found


def _matched(old: list[Digit], new: list[Digit]) -> list[tuple[Digit, Digit]] | None:
    """Two lists of digits cut into pairs of equal size, major first; None when they do not match."""
    old, new, found = old[::-1], new[::-1], []
    while old and new:
        (a, above_a, m), (b, above_b, n) = old.pop(), new.pop()
        size = min(m, n)
        if max(m, n) % size:
            return None
        if m > size:
            old.append((a, above_a * size, m // size))
        if n > size:
            new.append((b, above_b * size, n // size))
        found.append(((a, above_a, size), (b, above_b, size)))
    return None if old or new else found


def _closed(moves: dict[Digit, Digit]) -> dict[Digit, Digit]:
    """The same moves with every open chain of digits joined at its ends, and without those that stay."""
    sources = {q: p for p, q in moves.items()}
    closed = dict(moves)
    for free in moves.values():
        if free not in moves:
            end = free
            while end in sources:
                end = sources[end]
            closed[free] = end
    return {p: q for p, q in closed.items() if p != q}


def source_of(target: dict[str, int], moves: dict[Digit, Digit], sizes: AxisSizes) -> dict[str, int]:
    """The coordinates of the device that sends to the one at `target`."""
    source = dict(target)
    for p, q in moves.items():
        value = target[q[0]] // (sizes[q[0]] // (q[1] * q[2])) % q[2]
        below = sizes[p[0]] // (p[1] * p[2])
        source[p[0]] += (value - target[p[0]] // below % p[2]) * below
    return source


def move_pairs(moves: dict[Digit, Digit], sizes: AxisSizes) -> tuple[tuple[int, ...], ...]:
    """(source, target) of every device of a mesh of those sizes, as positions, by target."""
    pairs = []
    for target, coordinates in enumerate(product(*map(range, sizes.values()))):
        source = 0
        place = source_of(dict(zip(sizes, coordinates, strict=True)), moves, sizes)
        for name, size in sizes.items():
            source = source * size + place[name]
        pairs.append((source, target))
    return tuple(pairs)
