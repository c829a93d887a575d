"""Cutting: from the blocks that an operation moves to the chunks of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.collectives.operation import Cuts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def indices(shape: tuple[int, ...]) -> Ints:
    """The flat index of every element of an array, in the array's shape."""
    import numpy as np

    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)


def blocks(array: Ints, dim: int, count: int) -> Ints:
    """An array cut into `count` equal blocks along a dimension: one row of elements a block."""
    import numpy as np

    shape = (*array.shape[:dim], count, array.shape[dim] // count, *array.shape[dim + 1 :])
    # Not -1: it is ambiguous where there are no elements.
    return np.moveaxis(array.reshape(shape), dim, 0).reshape(count, array.size // count)


def slices(array: Ints, dim: int) -> Ints:
    """Every slice of an array along a dimension, which is gone from them: one row of elements a slice."""
    import numpy as np

    count = array.shape[dim]
    return np.moveaxis(array, dim, 0).reshape(count, array.size // max(1, count))


def cut(start: Ints, end: Ints, sizes: Ints, pieces: int, shape: tuple[int, ...], dtype: str) -> Cuts:
    """Cut every block into `pieces` chunks whose sizes differ by one at most, the larger first.

    `start` and `end` have the shape (blocks, elements of the largest block), `sizes` are the elements of
    each block; what stands behind them does not matter. `shape` and `dtype` are the result's.
    """
    import numpy as np

    least, more = np.divmod(sizes[:, None], pieces)
    piece = np.arange(pieces)
    first = piece * least + np.minimum(piece, more)
    chunk_sizes = least + (piece < more)
    offset = np.arange(chunk_sizes.max(initial=0))
    there = offset < chunk_sizes[..., None]
    where = np.where(there, first[..., None] + offset, 0).reshape(len(sizes), pieces * len(offset))

    def chosen(index: Ints) -> Ints:
        taken = np.take_along_axis(index, where, axis=1).reshape(there.shape)
        return np.where(there, taken, -1).reshape(len(sizes) * pieces, len(offset))

    return Cuts(chosen(start), chosen(end), chunk_sizes.reshape(-1), shape, dtype)


def cut_evenly(start: Ints, end: Ints, pieces: int, shape: tuple[int, ...], dtype: str) -> Cuts:
    """`cut` for blocks of one size."""
    import numpy as np

    return cut(start, end, np.full(len(start), start.shape[1]), pieces, shape, dtype)
