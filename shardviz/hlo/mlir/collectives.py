"""The collectives of Shardy and of StableHLO, each from its operation alone.

Shardy's types are global: ``sdy.all_gather [{}, {"Y"}] %0 out_sharding=<@m, [{"X"}, {}]> : tensor<8x4xf32>``.
What one device holds follows from the sharding after the operation and from the axes that it says it moves;
only a permute, which names nothing else, needs its operand's sharding.

StableHLO's are per device: ``"stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups =
dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<8x4xf32>``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.collective import OPS, RAGGED, Collective
from shardviz.hlo.mlir.attributes import (
    Meshes,
    TensorSharding,
    axis_of,
    cuts,
    parse_axes,
    parse_dense_rows,
    parse_dims,
    parse_sharding,
    parse_tensor,
    parse_tensors,
)
from shardviz.hlo.mlir.operations import MlirModule, MlirOperation
from shardviz.hlo.mlir.shardings import each_sharding, one_sharding, sharding_of
from shardviz.hlo.records import CollectiveShapes, Members, members_of_groups, members_of_pairs
from shardviz.hlo.replica_groups import (
    MAX_LISTED_IDS,
    Lists,
    ReplicaGroups,
    axis_groups,
    device_ids,
    one_group,
)
from shardviz.hlo.text.shapes import ArrayShape
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import AxisSizes, part_digits

_SDY_OPS = {
    "sdy.all_gather": "all-gather",
    "sdy.all_reduce": "all-reduce",
    "sdy.reduce_scatter": "reduce-scatter",
    "sdy.all_to_all": "all-to-all",
    "sdy.collective_permute": "collective-permute",
    "sdy.all_slice": "slice",
}
"""Shardy's collectives. Its other operations between shardings (to_unreduced) are local and move nothing."""
_STABLEHLO_OPS = {f"stablehlo.{op.replace('-', '_')}": op for op in OPS if op not in (RAGGED, "slice")}
_RAGGED = "@ragged_all_to_all("
"""The one collective that is a custom call; its groups stand in the backend's configuration."""

_OUT = re.compile(r"\bout_sharding ?= ?(?=<)")
_EXCHANGE = re.compile(r"\{([^{}]*)\}\s*:\s*(\d{1,3})\s*->\s*(\d{1,3})")

_NUMBER = {
    key: re.compile(rf"\b{key} = (\d{{1,3}})")
    for key in ("all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension")
}
_GROUPS = re.compile(r"\b(?:replica_groups|source_target_pairs) = ")
_DENSE_TYPE = re.compile(r"> : tensor<(?:(\d{1,12})x(\d{1,12})x)?i64>")
_MESH_AXES = re.compile(r"#stablehlo\.replica_group_mesh_axes<mesh = @([\w.$-]+), axes = ")
_AXIS = re.compile(r'<name = "([^"]*)"(?:[^<>"]{0,60}<pre_size = (\d{1,9}), size = (\d{1,9})>)?')
_HOST = "is_host_transfer = true"
_TRANSPOSE = re.compile(r"\bdims = \[([\d, ]*)\]")


def sdy_collective(operation: MlirOperation, meshes: Meshes, mesh: Mesh | None) -> Collective | None:
    """The collective of Shardy's that an operation is; None when it is another operation. An operation over
    several dimensions is one collective, its axes in the order in which the text has them. Raises
    `NotationError` when it cannot be read."""
    op, text = _SDY_OPS.get(operation.name), operation.text
    if op is None:
        return None
    out = _OUT.search(text)
    if out is None:
        raise NotationError("an out_sharding was expected", text, 0, len(text))
    after, end = parse_sharding(text, out.end(), meshes)
    sizes = dict(after.sizes)
    tensor = parse_tensor(text, end)
    if len(tensor.sizes) != len(after.dims):
        raise NotationError(f"a tensor of {len(after.dims)} dimensions was expected", text, end, len(text))
    own = text.partition("%")[0].strip()
    parts, dim, split_dim = list(after.parts), None, None
    axes: tuple[SubAxis, ...] = ()
    if op == "all-reduce":
        axes = parse_axes(own[: own.find("}") + 1], sizes)
    elif op == "all-to-all":
        # ``[{"X"}: 0->2, {"Y"}: 1->3]``: axes that leave one dimension for another.
        moves = [*_EXCHANGE.finditer(own)]
        for move in moves:
            moved, source, target = parse_axes(move[1], sizes), int(move[2]), int(move[3])
            if max(source, target) >= len(parts):
                raise NotationError("the tensor has no such dimension", own, move.start(), move.end())
            parts[source] *= cuts(moved)
            parts[target] //= cuts(moved)
            axes += moved
        dim, split_dim = (int(moves[0][2]), int(moves[0][3])) if len(moves) == 1 else (None, None)
    elif op != "collective-permute":
        dims, _ = parse_dims(own, 0, sizes)
        if len(dims) != len(parts):
            raise NotationError(f"{len(parts)} lists of axes were expected", text, 0, out.start())
        # What is gathered was cut before, and what is cut now was whole.
        parts = [
            count * cuts(moved) if op == "all-gather" else count // cuts(moved)
            for count, moved in zip(parts, dims, strict=True)
        ]
        touched = [index for index, moved in enumerate(dims) if moved]
        dim, axes = touched[0] if len(touched) == 1 else None, tuple(axis for moved in dims for axis in moved)
    if op == "collective-permute":
        names, groups, group_size = _permuted(operation, after, meshes)
        count = math.prod(sizes.values()) if names else 0
    else:
        grouping = axis_groups(axes, sizes)
        names, group_size = after.names(axes), grouping.size
        groups, count = grouping.expand() if grouping.total <= MAX_LISTED_IDS else None, grouping.count
    is_own = mesh is not None and tuple(mesh.shape.items()) == after.sizes
    listed = None if groups is None else device_ids(groups, mesh if is_own else None)
    shapes = CollectiveShapes((tensor.part(parts),), (tensor.part(after.parts),), dim, split_dim)
    return Members(group_size, names, listed, count).record(op, operation.value, shapes)


def _permuted(
    operation: MlirOperation, after: TensorSharding, meshes: Meshes
) -> tuple[tuple[str, ...], Lists | None, int]:
    """A permute's axes in the mesh's order, its pairs of positions, which the text lacks (None where sizes of
    axes do not divide one another), and 2, or 1 when nothing moves after all."""
    operand = next(iter(operation.operands), None)
    before = sharding_of(operand, meshes, len(after.dims)) if operand else None
    if before is None or len(before.dims) != len(after.dims) or before.sizes not in ((), after.sizes):
        return (), None, 2
    sizes = dict(after.sizes)
    moves = moved_digits(before, after)
    if moves is None:
        dims = zip(before.dims, after.dims, strict=True)
        changed = {axis.axis for old, new in dims if old != new for axis in (*old, *new)}
    else:
        changed = {digit.axis for digit in moves}
    axes = tuple(name for name in sizes if name in changed)
    are_few = moves is not None and 2 * math.prod(sizes.values()) <= MAX_LISTED_IDS
    return axes, move_pairs(moves or {}, sizes) if are_few else None, 1 if moves == {} else 2


Moves = dict[SubAxis, SubAxis]
"""Source digit → the target's digit that it equals."""


def moved_digits(before: TensorSharding, after: TensorSharding) -> Moves | None:
    """Source digit → the target's digit that it equals, for those that differ. None when the sizes of the
    axes do not divide one another, so that there are no common digits."""
    # A sharding assigns to every block of the tensor digits of the device's coordinates: on X=2, Y=4 the
    # dimension [{"X", "Y"}] is cut first by the digit of X, then by that of Y. Cut fine enough, the digits of
    # both shardings match one to one, so that a target's digit q says where its source stands in digit p:
    # from [{"X", "Y"}] to [{"Y", "X"}] Y is cut into halves, and X ← major half of Y, major half ← minor
    # half, minor half ← X. Digits that no longer, or not yet, choose a block are closed into cycles, which
    # makes the move a permutation.
    if len(before.dims) != len(after.dims):
        return None
    moves: Moves = {}
    edges: dict[str, set[int]] = {}
    pairs = list(zip(before.dims, after.dims, strict=True))
    for _ in range(64):
        known = {name: set(places) for name, places in edges.items()}
        moves = {}
        for old, new in pairs:
            matched = _matched(_refined(old, edges), _refined(new, edges))
            if matched is None:
                return None
            for p, q in matched:
                for name, above, size in (p, q):
                    edges.setdefault(name, set()).update((above, above * size))
                moves[p] = q
        if known == edges:
            return _closed(moves)
    return None


def _refined(digits: Sequence[SubAxis], edges: dict[str, set[int]]) -> list[SubAxis]:
    """The digits cut at all the places known so far."""
    refined: list[SubAxis] = []
    for name, above, size in digits:
        places = sorted(index for index in edges.get(name, ()) if above < index < above * size)
        for low, high in pairwise([above, *places, above * size]):
            if high % low:
                return list(digits)
            refined.append(SubAxis(name, low, high // low))
    return refined


def _matched(old: list[SubAxis], new: list[SubAxis]) -> list[tuple[SubAxis, SubAxis]] | None:
    """Two lists of digits cut into pairs of equal size, major first; None when they do not match."""
    old, new, pairs = old[::-1], new[::-1], []
    while old and new:
        (a, above_a, m), (b, above_b, n) = old.pop(), new.pop()
        size = min(m, n)
        if max(m, n) % size:
            return None
        if m > size:
            old.append(SubAxis(a, above_a * size, m // size))
        if n > size:
            new.append(SubAxis(b, above_b * size, n // size))
        pairs.append((SubAxis(a, above_a, size), SubAxis(b, above_b, size)))
    return None if old or new else pairs


def _closed(moves: Moves) -> Moves:
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


def move_pairs(moves: Moves, sizes: AxisSizes) -> tuple[tuple[int, ...], ...]:
    """(source, target) of every device of a mesh of those sizes, as positions, by target."""
    digits = [*zip(part_digits(moves, sizes), part_digits(moves.values(), sizes), strict=True)]
    pairs = []
    for target in range(math.prod(sizes.values())):
        source = target
        for (size, stride), (_, stride_in_target) in digits:
            source += (target // stride_in_target % size - target // stride % size) * stride
        pairs.append((source, target))
    return tuple(pairs)


def stablehlo_collective(
    operation: MlirOperation, meshes: Meshes, mesh: Mesh | None, replicas: int, partitions: int
) -> Collective | None:
    """The collective of StableHLO's that an operation is; None when it is another operation. Raises
    `NotationError` when it cannot be read."""
    op, text = _STABLEHLO_OPS.get(operation.name), operation.text
    if operation.name == "stablehlo.custom_call" and text.startswith(_RAGGED):
        op = RAGGED
    if op is None:
        return None
    if op in ("send", "recv"):
        members = Members(2)
    elif op == "collective-permute":
        members = members_of_pairs(_rows(text), mesh)
    else:
        members = members_of_groups(_groups(text, op, meshes, replicas, partitions), mesh)
    record = members.record(op, operation.value, _shapes(text, op, meshes))
    return record.with_host() if op in ("send", "recv") and _HOST in text else record


def _rows(text: str) -> tuple[tuple[int, ...], ...]:
    start = _GROUPS.search(text)
    if start is None:
        raise NotationError("this collective names no groups", text, 0, len(text))
    kind = _DENSE_TYPE.search(text, start.end())
    rows = parse_dense_rows(text, start.end(), int(kind[2] or 1) if kind else 1)
    if "source_target_pairs" in start[0] and any(len(row) != 2 for row in rows):
        raise NotationError("a permute has pairs of a source and a target", text, start.start(), start.end())
    return rows


def _groups(text: str, op: str, meshes: Meshes, replicas: int, partitions: int) -> ReplicaGroups:
    named = _MESH_AXES.search(text)
    if named is not None:
        sizes = meshes.sizes.get(named[1])
        if sizes is None:
            raise NotationError(f"the mesh {named[1]} is not declared", text, named.start(1), named.end(1))
        stop = text.find("]", named.end())
        matches = _AXIS.finditer(text, named.end(), len(text) if stop < 0 else stop)
        return axis_groups([axis_of(axis, sizes) for axis in matches], sizes)
    rows = _rows(text)
    if not any(rows):
        return one_group(replicas * partitions)
    groups = ReplicaGroups(lists=rows)
    channel = "channel_handle" in text or (op == RAGGED and "channel_id" in text)
    use_global = (
        "use_global_device_ids" in text if op in ("all-gather", "all-reduce", "reduce-scatter") else None
    )
    if groups.total > (replicas if not channel or use_global is False else replicas * partitions):
        return groups
    return groups.on_devices(replicas, partitions, channel=channel, use_global=use_global)


def _shapes(text: str, op: str, meshes: Meshes) -> CollectiveShapes:
    arrow = text.rfind(") -> ")
    signature = text.rfind(" : (", 0, arrow + 1)
    operands = tuple(parse_tensors(text[signature:arrow])) if arrow > 0 and signature >= 0 else ()
    results = tuple(parse_tensors(text[arrow:])) if arrow > 0 else ()
    if op in ("send", "recv"):
        operands = results = operands or results
    if op == RAGGED:
        operands = operands[:1]
    if not operands or not results:
        raise NotationError("this collective has no type", text, 0, len(text))
    shardings = each_sharding(text[: max(signature, 0)], meshes)
    operands, results = _local(operands, shardings), _local(results, shardings)
    number = {key: int(match[1]) if (match := find.search(text)) else None for key, find in _NUMBER.items()}
    if op == "all-to-all":
        return CollectiveShapes(operands, results, number["concat_dimension"], number["split_dimension"])
    dim = {"all-gather": number["all_gather_dim"], "reduce-scatter": number["scatter_dimension"]}.get(op)
    return CollectiveShapes(operands, results, dim)


def _local(arrays: tuple[ArrayShape, ...], shardings: Sequence[TensorSharding]) -> tuple[ArrayShape, ...]:
    """One device's parts where axes outside of the manual computation split the arrays further."""
    return tuple(
        array.part(sharding.parts) if sharding and len(sharding.dims) == len(array.sizes) else array
        for array, sharding in zip_longest(arrays, shardings[: len(arrays)])
    )


@dataclass(frozen=True)
class ShardyMove:
    """A collective, or a local slice, by HLO's name of it, and how it leaves the array; `spec` has the
    dimensions in the order in which the program returns them."""

    op: str
    axes: tuple[str, ...]
    spec: PartitionSpec


def reshard_moves(module: MlirModule) -> tuple[ShardyMove, ...]:
    """The moves of a program that only moves and transposes an array; none where one is unreadable."""
    moves: list[ShardyMove] = []
    try:
        for operation in module.operations:
            if operation.name == "stablehlo.transpose" and (match := _TRANSPOSE.search(operation.text)):
                order = [int(dim) for dim in match[1].split(",") if dim.strip()]
                moves = [
                    replace(
                        move,
                        spec=PartitionSpec(tuple(move.spec.dims[dim] for dim in order), move.spec.unreduced),
                    )
                    for move in moves
                ]
            elif operation.name.startswith("sdy.") and operation.name != "sdy.mesh":
                moved = sdy_collective(operation, module.meshes, None)
                after = one_sharding(operation.text, module.meshes)
                if moved is None or after is None:
                    return ()
                moves.append(ShardyMove(moved.op, moved.axes, after.spec()))
    except (NotationError, QuestionError):
        return ()
    return tuple(moves)
