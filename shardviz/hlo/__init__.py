"""Reads collectives out of HLO and Shardy text. Standard library only."""

from shardviz.hlo.collective import Collective, Work, wire_bytes
from shardviz.hlo.collective_matmul import CollectiveMatmul
from shardviz.hlo.dialect import read
from shardviz.hlo.mlir.shardy import ShardyModule, read_shardy
from shardviz.hlo.module import HloModule, read_hlo
from shardviz.hlo.origin import Origin

__all__ = [
    "Collective",
    "CollectiveMatmul",
    "HloModule",
    "Origin",
    "ShardyModule",
    "Work",
    "read",
    "read_hlo",
    "read_shardy",
    "wire_bytes",
]
