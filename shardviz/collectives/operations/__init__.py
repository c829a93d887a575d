"""The operations: what each collective of `jax.lax` means, one file an operation or a family."""

from __future__ import annotations

from shardviz.collectives.operation import Operation
from shardviz.collectives.operations.all_gather import AllGather
from shardviz.collectives.operations.all_to_all import AllToAll
from shardviz.collectives.operations.pbroadcast import PBroadcast
from shardviz.collectives.operations.ppermute import PPermute
from shardviz.collectives.operations.psum_scatter import PSumScatter
from shardviz.collectives.operations.ragged_all_to_all import RaggedAllToAll
from shardviz.collectives.operations.reductions import PMax, PMean, PMin, PSum

OPERATIONS: dict[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        AllGather,
        PSum,
        PMean,
        PMax,
        PMin,
        PSumScatter,
        AllToAll,
        PPermute,
        PBroadcast,
        RaggedAllToAll,
    )
}
"""Every operation by JAX's name."""

__all__ = [
    "OPERATIONS",
    "AllGather",
    "AllToAll",
    "PBroadcast",
    "PMax",
    "PMean",
    "PMin",
    "PPermute",
    "PSum",
    "PSumScatter",
    "RaggedAllToAll",
]
