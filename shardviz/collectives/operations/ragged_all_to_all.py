"""ragged_all_to_all: every member sends each member as many rows as a table says."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from shardviz.collectives.operation import Cuts, Operation, pieces_of
from shardviz.collectives.operations.cutting import cut
from shardviz.collectives.operations.dimension import UnfitShard
from shardviz.collectives.optimum import LowerBound
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype, check_zero
from shardviz.errors import QuestionError, plural
from shardviz.sharding import array_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RaggedAllToAll(Operation):
    """`jax.lax.ragged_all_to_all`: member i sends `send_sizes[i][j]` rows (dimension 0) to member j.

    What a member sends lies in its shard one behind the other from row 0, in the order of the receivers.
    What arrives is laid in the order of the senders. The result has as many rows as the member that
    receives most; the rest is 0.
    """

    name: ClassVar[str] = "ragged_all_to_all"
    even: ClassVar[bool] = False
    axes: tuple[str, ...]
    send_sizes: tuple[tuple[int, ...], ...]

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        pattern = Pattern("all_to_all", dims)
        self._check_table(pattern.group_size)
        return pattern

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        self._check_table(group_size)
        if not shape:
            raise QuestionError("a scalar has no rows to send", "use shards of one dimension or more")
        for sender, row in enumerate(self.send_sizes):
            if sum(row) > shape[0]:
                most = max(map(sum, self.send_sizes))
                raise UnfitShard(
                    f"device {sender} of the group sends {plural(sum(row), 'row')}, but dimension 0 of a "
                    f"shard has "
                    f"{plural(shape[0], 'element')}",
                    f"send {plural(shape[0], 'row')} at most, or use shards of {most:,}",
                    0,
                    (most,),
                )
        if len({sum(column) for column in zip(*self.send_sizes, strict=True)}) > 1:
            check_zero(dtype, "a device that receives fewer rows than another")

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        import numpy as np

        self.check(shape, dtype, group_size)
        sizes = np.array(self.send_sizes, dtype=np.int64)
        result = (int(sizes.sum(axis=0).max()), *shape[1:])
        width = np.prod(shape[1:], dtype=np.int64)
        elements = np.arange(sizes.max() * width)
        first, last = (np.cumsum(sizes, axis=axis) - sizes for axis in (1, 0))
        start, end = ((rows * width).reshape(-1, 1) + elements for rows in (first, last))
        pieces = self.pattern((group_size,)).pieces(chunks)
        return cut(start, end, sizes.reshape(-1) * width, pieces, result, dtype)

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        del group_size
        rows = max(*map(sum, self.send_sizes), *map(sum, zip(*self.send_sizes, strict=True)))
        return (rows, *shape[1:])

    def least(self, shape: tuple[int, ...], dtype: str, group_size: int) -> LowerBound:
        """What the busiest member sends; in r rounds nobody can reach, or hear of, 2 ** r others."""
        import numpy as np

        del group_size
        table = np.array(self.send_sizes, dtype=np.int64)
        np.fill_diagonal(table, 0)
        partners = int(max((table > 0).sum(axis=axis).max() for axis in (0, 1)))
        rows = int(table.sum(axis=1).max())
        return LowerBound(partners.bit_length(), array_bytes((rows, *shape[1:]), dtype))

    def chunk_sizes(self, shape: tuple[int, ...], group_size: int, chunks: int) -> int | Ints:
        import numpy as np

        blocks = np.array(self.send_sizes, dtype=np.int64).reshape(-1) * prod(shape[1:])
        return pieces_of(blocks, len(blocks), self.pattern((group_size,)).pieces(chunks))

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        del group_size
        return (max(map(sum, self.send_sizes)) * pieces,)

    def _check_table(self, group_size: int) -> None:
        rows = self.send_sizes
        if len(rows) != group_size or any(len(row) != group_size for row in rows):
            lengths = " and ".join(map(str, sorted({len(row) for row in rows}))) or "no"
            raise QuestionError(
                f"the send sizes are {plural(len(rows), 'row')}, of {lengths} numbers, for a group of "
                f"{group_size:,}",
                f"give {plural(group_size, 'row')} of {plural(group_size, 'number')}: row i has what "
                f"device i sends to each",
            )
        for sender, row in enumerate(rows):
            for receiver, size in enumerate(row):
                if size < 0:
                    raise QuestionError(
                        f"device {sender} of the group cannot send {size} rows to device {receiver}",
                        "send 0 rows or more",
                    )
