"""StableHLO's collectives, in the generic form in which MLIR prints them: shapes are per device.

"stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
"""

from __future__ import annotations

import re
from itertools import zip_longest

from shardviz.errors import NotationError
from shardviz.hlo.collective import RAGGED, Collective
from shardviz.hlo.groups.replica_groups import ReplicaGroups, one_group
from shardviz.hlo.mlir.attributes import (
    Meshes,
    TensorSharding,
    axis_groups,
    axis_ref,
    parse_dense_rows,
    parse_sharding_list,
    parse_tensors,
    parts,
)
from shardviz.hlo.mlir.regions import MlirOperation
from shardviz.hlo.records import CollectiveShapes, Members, members_of_groups, members_of_pairs
from shardviz.hlo.text.shapes import ArrayShape
from shardviz.sharding import Mesh

STABLEHLO_OPS = {
    "all_gather": "all-gather",
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "collective_permute": "collective-permute",
    "collective_broadcast": "collective-broadcast",
    "send": "send",
    "recv": "recv",
}
_NAME = re.compile(r'"stablehlo\.(\w+)"')
_RAGGED = re.compile(
    r"stablehlo\.custom_call @ragged_all_to_all\("
    r'|"stablehlo\.custom_call".*\bcall_target_name = "ragged_all_to_all"'
)
"""The one collective that is a custom call; its groups stand in the backend's configuration."""
_NUMBER = {
    key: re.compile(rf"\b{key} = (\d{{1,3}})")
    for key in ("all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension")
}
_GROUPS = re.compile(r"\b(?:replica_groups|source_target_pairs) = ")
_DENSE_TYPE = re.compile(r"> : tensor<(?:(\d{1,12})x(\d{1,12})x)?i64>")
_MESH_AXES = re.compile(r"#stablehlo\.replica_group_mesh_axes<mesh = @([\w.$-]+), axes = ")
_AXIS = re.compile(r'<name = "([^"]*)"(?:[^<>"]{0,60}<pre_size = (\d{1,9}), size = (\d{1,9})>)?')
_HOST = "is_host_transfer = true"
_PER_VALUE = "sdy.sharding_per_value<"


def stablehlo_collective(
    operation: MlirOperation, meshes: Meshes, mesh: Mesh | None, replicas: int, partitions: int
) -> Collective | None:
    """The collective that an operation is; None when it is another operation.

    Raises `NotationError` when it cannot be read.
    """
    text = operation.text
    match = _NAME.match(text)
    op = STABLEHLO_OPS.get(match[1]) if match else None
    if _RAGGED.match(text):
        op = RAGGED
    if op is None:
        return None
    if op in ("send", "recv"):
        members = Members(2)
    elif op == "collective-permute":
        members = members_of_pairs(_rows(text), mesh)
    else:
        members = members_of_groups(_groups(text, op, meshes, replicas, partitions), mesh)
    record = members.record(op, operation.value, _transfer(text, op, meshes))
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
        found = _AXIS.finditer(text, named.end(), len(text) if stop < 0 else stop)
        return axis_groups([axis_ref(axis, sizes) for axis in found], sizes)
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


def _transfer(text: str, op: str, meshes: Meshes) -> CollectiveShapes:
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
    at = text.rfind(_PER_VALUE, 0, signature)
    if at >= 0:
        shardings = [found for found, _ in parse_sharding_list(text, at + len(_PER_VALUE), meshes)]
        operands, results = _local(operands, shardings), _local(results, shardings)
    number = {key: int(match[1]) if (match := find.search(text)) else None for key, find in _NUMBER.items()}
    if op == "all-to-all":
        return CollectiveShapes(operands, results, number["concat_dimension"], number["split_dimension"])
    dim = {"all-gather": number["all_gather_dim"], "reduce-scatter": number["scatter_dimension"]}.get(op)
    return CollectiveShapes(operands, results, dim)


def _local(arrays: tuple[ArrayShape, ...], shardings: list[TensorSharding]) -> tuple[ArrayShape, ...]:
    """One device's parts where axes outside of the manual computation split the arrays further."""
    pairs = zip_longest(arrays, shardings[: len(arrays)])
    return tuple(
        array.part(map(parts, sharding.dims))
        if sharding is not None and len(sharding.dims) == len(array.sizes)
        else array
        for array, sharding in pairs
    )
