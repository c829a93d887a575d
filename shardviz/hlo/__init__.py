"""Reads collectives out of HLO and Shardy text. Standard library only."""

from shardviz.hlo.collective import Collective, wire_bytes
from shardviz.hlo.dialect import read
from shardviz.hlo.module import HloModule, read_hlo
from shardviz.hlo.origin import Origin
from shardviz.hlo.shardy import ShardyModule, read_shardy

__all__ = [
    "Collective",
    "HloModule",
    "Origin",
    "ShardyModule",
    "read",
    "read_hlo",
    "read_shardy",
    "wire_bytes",
]
