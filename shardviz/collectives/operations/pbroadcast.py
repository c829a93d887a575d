"""pbroadcast: every member ends with the shard of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.cutting import cut_evenly, indices
from shardviz.collectives.operations.member import check_member
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype


@dataclass(frozen=True)
class PBroadcast(Operation):
    """`jax.lax.pbroadcast`: the shard of member `source`."""

    name: ClassVar[str] = "pbroadcast"
    axes: tuple[str, ...]
    source: int = 0

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        pattern = Pattern("broadcast", dims, source=self.source)
        check_member(self.source, pattern.group_size)
        return pattern

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        del shape
        check_dtype(dtype)
        check_member(self.source, group_size)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        self.check(shape, dtype, group_size)
        place = indices(shape).reshape(1, -1)
        return cut_evenly(place, place, self.pattern((group_size,)).pieces(chunks), shape, dtype)
