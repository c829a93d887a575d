"""The collectives of Shardy and of StableHLO, each from its operation alone.

Shardy's types are global: ``sdy.all_gather [{}, {"Y"}] %0 out_sharding=<@m, [{"X"}, {}]> : tensor<8x4xf32>``.
What one device holds follows from the sharding after the operation and from the axes that it says it moves;
only a permute, which names nothing else, needs its operand's sharding.

StableHLO's are per device: ``"stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups =
dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<8x4xf32>``."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

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
from shardviz.sharding.digits import Digit, Nest, merged, pieces, row_major

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
    """A permute's axes in the mesh's order, its pairs of positions, which the text lacks (None where they are
    too many or unknown), and 2, or 1 when nothing moves after all."""
    # XLA lists the devices of both shardings block by block, those that hold the same block in the order of
    # the mesh, and sends from each to the one in its place (ReshardWithCollectivePermute).
    operand = next(iter(operation.operands), None)
    before = sharding_of(operand, meshes, len(after.dims)) if operand else None
    if before is None or len(before.dims) != len(after.dims) or before.sizes not in ((), after.sizes):
        return (), None, 2
    sizes = dict(after.sizes)
    if before.parts != after.parts:
        dims = zip(before.dims, after.dims, strict=True)
        changed = {axis.axis for old, new in dims if old != new for axis in (*old, *new)}
        return tuple(name for name in sizes if name in changed), None, 2
    listed = [axis_groups(chain.from_iterable(sharding.dims), sizes) for sharding in (before, after)]
    own, others = (_places(groups, tuple(sizes.values())) for groups in listed)
    axes = tuple(name for index, name in enumerate(sizes) if own[index] != others[index])
    if 2 * math.prod(sizes.values()) > MAX_LISTED_IDS:
        return axes, None, 2 if axes else 1
    sources, targets = (chain.from_iterable(groups.expand()) for groups in listed)
    pairs = sorted(zip(sources, targets, strict=True), key=lambda pair: pair[1])
    return axes, tuple(pairs), 2 if axes else 1


def _places(groups: ReplicaGroups, sizes: Sequence[int]) -> dict[int, Nest]:
    """For each axis of a mesh the digits that its coordinate is of the place of a device in the groups."""
    parts = [part for digit in (*groups.outer, *groups.inner) for part in pieces(digit, sizes) or ()]
    by_axis: dict[int, list[tuple[int, Digit]]] = defaultdict(list)
    for (index, above, size), place in zip(parts, row_major([size for *_, size in parts]), strict=True):
        by_axis[index] += [(above, place)] if size > 1 else []
    return {index: merged(place for _, place in sorted(by_axis[index])) for index in range(len(sizes))}


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
    is_host = op in ("send", "recv") and _HOST in text
    return record.having(is_host_transfer=True, wire_bytes=0) if is_host else record


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
