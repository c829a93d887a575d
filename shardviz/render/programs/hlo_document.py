"""A program's collectives as one JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz import schemas
from shardviz.hlo import HloModule, ShardyModule
from shardviz.hlo.totals import Total, totals
from shardviz.render.documents import mesh_document
from shardviz.render.programs.target_document import Document, collective_document, matmul_document

if TYPE_CHECKING:
    from shardviz.sharding import Mesh


def hlo_document(module: HloModule | ShardyModule, given: Mesh | None = None) -> Document:
    """The module's facts, its `mesh`, `totals` and `collectives`; `given` is the mesh that the user named.

    `mesh` is null where nobody knows it; `is_mesh_inferred` where only the groups tell that there is one.

    `totals` are by op, those between TPU slices under `totals_between_slices`, and `send` and `recv` of hosts
    under `totals_of_host_transfers`. In each, `count`, `bytes` and
    `wire_bytes` are sums over all runs on one device, without the collectives in loops of unknown length,
    which `unknown` counts, and without the `unread_collectives`. What only HLO says is null for StableHLO and
    Shardy text.
    """
    moving = [each for each in module.collectives if each.op != "slice"]
    sums = totals(moving)
    return schemas.document(
        "hlo",
        {
            "module": module.name,
            **_facts(module),
            "mesh": None if module.mesh is None else mesh_document(module.mesh),
            "is_mesh_inferred": isinstance(module, HloModule) and given is None and module.mesh is not None,
            "totals": {
                each.op: _total(each)
                for each in sums
                if not each.between_slices and not each.is_host_transfer
            },
            "totals_between_slices": {each.op: _total(each) for each in sums if each.between_slices},
            "totals_of_host_transfers": {each.op: _total(each) for each in sums if each.is_host_transfer},
            "collectives": [collective_document(each) for each in moving],
            "slices": [collective_document(each) for each in module.collectives if each.op == "slice"],
            "unread": list(module.unread),
            "unread_collectives": module.unread_collectives,
            "awaits_partitioner": module.awaits_partitioner,
        },
    )


def _facts(module: HloModule | ShardyModule) -> Document:
    """What HLO says of a program and of its schedule."""
    if isinstance(module, ShardyModule):
        facts = dict.fromkeys(("num_partitions", "replica_count", "num_slices"))
        return {"dialect": "mlir", **facts, "is_scheduled": False, "collective_matmuls": []}
    return {
        "dialect": "hlo",
        "num_partitions": module.num_partitions,
        "replica_count": module.replica_count,
        "num_slices": module.num_slices,
        "is_scheduled": module.is_scheduled,
        "collective_matmuls": [matmul_document(each) for each in module.collective_matmuls],
    }


def _total(each: Total) -> Document:
    return {
        "count": each.count,
        "bytes": each.bytes,
        "wire_bytes": each.wire_bytes,
        "unknown": each.unknown,
    }
