"""Chunking: from the blocks that an operation moves to the chunks of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.collectives.values import Ints


@dataclass(frozen=True)
class Cuts:
    """The place of every chunk at the start and at the end, for shards of one shape.

    `start` and `end` have the shape (chunks, elements of the largest chunk): flat indices into the shard on
    which a chunk starts, and into the result on which it ends, in the same order; -1 where a smaller chunk
    has no element. `shape` and `dtype` (HLO's name) are those of a member's result; elements of the result
    that no chunk fills are 0. `sizes` are the chunks' elements.
    """

    start: Ints
    end: Ints
    sizes: Ints
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Blocks:
    """The blocks that an operation moves: `start` and `end` have the shape (blocks, elements of the largest),
    flat indices into the shard on which a block starts and into the result, of `shape`, on which it ends.

    `sizes` are the elements of each block, None where all are alike; what stands behind them does not matter.
    Where one of `start` and `end` has a single row, it is that of every block.
    """

    start: Ints
    end: Ints
    shape: tuple[int, ...]
    sizes: Ints | None = None

    def cut(self, pieces: int, dtype: str) -> Cuts:
        """Cut every block into `pieces` chunks whose sizes differ by one at most, the larger first."""
        import numpy as np

        start, end = np.broadcast_arrays(self.start, self.end)
        sizes = np.full(len(start), start.shape[1]) if self.sizes is None else self.sizes
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

        return Cuts(chosen(start), chosen(end), chunk_sizes.reshape(-1), self.shape, dtype)


def whole(shape: tuple[int, ...], count: int = 1) -> Ints:
    """The flat index of every element of an array, in `count` rows that are alike."""
    import numpy as np

    return np.tile(np.arange(np.prod(shape, dtype=np.int64)), (count, 1))


def split(shape: tuple[int, ...], dim: int, count: int) -> Ints:
    """The same, in a row for each of `count` equal blocks along a dimension."""
    import numpy as np

    array = np.arange(np.prod(shape, dtype=np.int64))
    cut = array.reshape(*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :])
    # Not -1: it is ambiguous where there are no elements.
    return np.moveaxis(cut, dim, 0).reshape(count, array.size // count)


def pieces_of(blocks: int | Ints, count: int, pieces: int) -> int | Ints:
    """Elements of every piece where each of `count` blocks is cut into `pieces`, the larger first.

    `blocks` are the elements of a block, or of each; sizes within one differ by one at most.
    """
    import numpy as np

    if isinstance(blocks, int) and blocks % pieces == 0:
        return blocks // pieces
    least, more = np.divmod(np.broadcast_to(blocks, count)[:, None], pieces)
    sizes: Ints = (least + (np.arange(pieces) < more)).reshape(-1)
    return sizes
