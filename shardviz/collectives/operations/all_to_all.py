"""all_to_all: every member sends each member a block of its shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.cutting import blocks, cut_evenly, indices, slices
from shardviz.collectives.operations.dimension import check_divides, check_is_group, dimension, shape_with
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype


@dataclass(frozen=True)
class AllToAll(Operation):
    """`jax.lax.all_to_all`: dimension `split_axis` is cut into a block for each member; what arrives is laid
    along `concat_axis`, in the order of the senders.

    Untiled, a block is one slice: its dimension is gone, and a new one is put at `concat_axis`.
    """

    name: ClassVar[str] = "all_to_all"
    axes: tuple[str, ...]
    split_axis: int = 0
    concat_axis: int = 0
    tiled: bool = True

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        return Pattern("all_to_all", dims)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        split = dimension(self.split_axis, len(shape), "a shard")
        dimension(self.concat_axis, len(shape), "the result")
        (check_divides if self.tiled else check_is_group)(shape, split, group_size)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        import numpy as np

        self.check(shape, dtype, group_size)
        split = dimension(self.split_axis, len(shape), "a shard")
        concat = dimension(self.concat_axis, len(shape), "the result")
        sizes = list(shape)
        if self.tiled:
            sizes[split] //= group_size
            sizes[concat] *= group_size
            result = tuple(sizes)
            start, end = (
                blocks(indices(shape), split, group_size),
                blocks(indices(result), concat, group_size),
            )
        else:
            del sizes[split]
            sizes.insert(concat, group_size)
            result = tuple(sizes)
            start, end = slices(indices(shape), split), slices(indices(result), concat)
        # Chunk s * n + d: block d of the sender, block s of the receiver.
        pieces = self.pattern((group_size,)).pieces(chunks)
        start, end = np.tile(start, (group_size, 1)), np.repeat(end, group_size, axis=0)
        return cut_evenly(start, end, pieces, result, dtype)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return shape_with(group_size * (pieces if self.tiled else 1), self.split_axis, self.concat_axis)
