"""psum_scatter: every member ends with its part of the sum of all shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.arithmetic import added, check_reduces
from shardviz.collectives.operations.cutting import blocks, cut_evenly, indices, slices
from shardviz.collectives.operations.dimension import check_divides, check_is_group, dimension, shape_with
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]


@dataclass(frozen=True)
class PSumScatter(Operation):
    """`jax.lax.psum_scatter`: the sum, `scatter_dimension` of which is cut into a part for each member.

    Untiled, a part is one slice, and the dimension is gone from the result.
    """

    name: ClassVar[str] = "psum_scatter"
    axes: tuple[str, ...]
    scatter_dimension: int = 0
    tiled: bool = True

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        return Pattern("reduce_scatter", dims)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        check_reduces(self.name, dtype)
        if dtype == "pred":
            raise QuestionError("JAX's psum_scatter adds no booleans", "use s32, as psum does of itself")
        dim = dimension(self.scatter_dimension, len(shape), "a shard")
        (check_divides if self.tiled else check_is_group)(shape, dim, group_size)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        import numpy as np

        self.check(shape, dtype, group_size)
        dim = dimension(self.scatter_dimension, len(shape), "a shard")
        if self.tiled:
            result = (*shape[:dim], shape[dim] // group_size, *shape[dim + 1 :])
            start = blocks(indices(shape), dim, group_size)
        else:
            result = (*shape[:dim], *shape[dim + 1 :])
            start = slices(indices(shape), dim)
        end = np.broadcast_to(indices(result).reshape(-1), start.shape)
        return cut_evenly(start, end, self.pattern((group_size,)).pieces(chunks), result, dtype)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return shape_with(group_size * (pieces if self.tiled else 1), self.scatter_dimension)

    def combined(self, mine: Values, received: Values) -> Values:
        return added(mine, received)
