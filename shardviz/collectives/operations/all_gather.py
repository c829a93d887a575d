"""all_gather: every member ends with the shards of all, one behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.cutting import blocks, cut_evenly, indices, slices
from shardviz.collectives.operations.dimension import check_filled, dimension, shape_with
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype


@dataclass(frozen=True)
class AllGather(Operation):
    """`jax.lax.all_gather`: tiled, dimension `axis` of the shards grows; untiled, a new one is put there."""

    name: ClassVar[str] = "all_gather"
    axes: tuple[str, ...]
    axis: int = 0
    tiled: bool = True

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        return Pattern("all_gather", dims)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        del group_size
        check_dtype(dtype)
        dim = self._dimension(shape)
        if self.tiled:
            check_filled(shape, dim)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        import numpy as np

        self.check(shape, dtype, group_size)
        dim = self._dimension(shape)
        if self.tiled:
            result = (*shape[:dim], shape[dim] * group_size, *shape[dim + 1 :])
            end = blocks(indices(result), dim, group_size)
        else:
            result = (*shape[:dim], group_size, *shape[dim:])
            end = slices(indices(result), dim)
        start = np.broadcast_to(indices(shape).reshape(-1), end.shape)
        return cut_evenly(start, end, self.pattern((group_size,)).pieces(chunks), result, dtype)

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        return (group_size, *shape)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        del group_size
        # An untiled gather makes a dimension of its own.
        return shape_with(pieces, self.axis if self.tiled else self.axis - 1)

    def _dimension(self, shape: tuple[int, ...]) -> int:
        if self.tiled:
            return dimension(self.axis, len(shape), "a shard")
        return dimension(self.axis, len(shape) + 1, "the result")
