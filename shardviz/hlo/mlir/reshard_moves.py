"""The moves by which Shardy's text changes the sharding of one array, which it copies or transposes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.mlir.attributes import Meshes, parse_sharding
from shardviz.hlo.mlir.regions import Walk
from shardviz.hlo.mlir.sdy_op import sdy_collective
from shardviz.sharding import PartitionSpec

_TRANSPOSE = re.compile(r"stablehlo\.transpose %[\w$.#-]+, dims = \[([\d, ]*)\]")
_OUT = "out_sharding="


@dataclass(frozen=True)
class ShardyMove:
    """A collective, or a local slice, by HLO's name of it, and how it leaves the array; `spec` has the
    dimensions in the order in which the program returns them."""

    op: str
    axes: tuple[str, ...]
    spec: PartitionSpec


def reshard_moves(text: str) -> tuple[ShardyMove, ...]:
    """The moves of a program that does nothing but move and transpose an array, in order; none where one of
    them cannot be read."""
    meshes = Meshes(text)
    transposes = [
        (line, [int(dim) for dim in match[1].split(",") if dim.strip()])
        for line, match in enumerate(map(_TRANSPOSE.search, text.splitlines()), 1)
        if match
    ]
    found: list[ShardyMove] = []
    try:
        for operation in Walk(text).operations():
            if operation.text.startswith("sdy.mesh"):
                continue
            moved = sdy_collective(operation, meshes, None)
            if moved is None:
                return ()
            after, _, _ = parse_sharding(operation.text, operation.text.find(_OUT) + len(_OUT), meshes)
            spec = after.spec()
            for line, order in transposes:
                if line > operation.order:
                    spec = PartitionSpec(tuple(spec.dims[dim] for dim in order), spec.unreduced)
            found.append(ShardyMove(moved.op, moved.axes, spec))
    except (NotationError, QuestionError):
        return ()
    return tuple(found)
