"""The messages of one round of a schedule: one for each pair of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.collectives.schedule import Ints, Sends


MAX_BYTES = 2**62
"""Sums of a round's bytes stay within 64 bits."""


@dataclass(frozen=True)
class Messages:
    """Message k goes from device `src[k]` to `dst[k]` and carries `bytes[k]`."""

    src: Ints
    dst: Ints
    bytes: Ints

    def __len__(self) -> int:
        return len(self.src)

    def same(self, other: Messages) -> bool:
        """These are the same messages in the same order."""
        pairs = ((self.src, other.src), (self.dst, other.dst), (self.bytes, other.bytes))
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def merged(self) -> Messages:
        """One message for each pair of devices, in the order in which the pairs first occur."""
        pair = self.src * (int(self.dst.max(initial=0)) + 1) + self.dst
        follows = pair[1:] == pair[:-1]
        if follows.any():
            # What stands side by side is merged without sorting: often that is all of it.
            first = np.concatenate(([0], np.flatnonzero(~follows) + 1))
            total = np.add.reduceat(self.bytes, first)
            return Messages(self.src[first], self.dst[first], total).merged()
        in_order = np.sort(pair)
        if not (in_order[1:] == in_order[:-1]).any():
            return self
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first = first[order]
        return Messages(self.src[first], self.dst[first], sums(rank[place], self.bytes, len(first)))


def messages(sends: Sends, chunks: int, chunk_bytes: int | Ints) -> Messages:
    """The message of each entry of a round, data being cut into `chunks` of `chunk_bytes` (one or each).

    What a member sends to itself travels over no link and is left out. Raises `QuestionError` for more bytes
    than 64 bits can count.
    """
    largest = int(np.max(chunk_bytes))
    if largest * sends.span * max(len(sends), 1) >= MAX_BYTES:
        raise QuestionError(
            f"{len(sends):,} sends of chunks of {largest:,} bytes in one round are too many to count",
            "use smaller arrays",
        )
    abroad = sends.src != sends.dst
    src, dst, chunk = sends.src, sends.dst, sends.chunk
    if not abroad.all():
        src, dst, chunk = src[abroad], dst[abroad], chunk[abroad]
    if not isinstance(chunk_bytes, np.ndarray):
        return Messages(src, dst, np.full(len(src), chunk_bytes * sends.span, dtype=np.int64))
    # The sum of the sizes of all chunks before each, for two turns, as the chunks go round.
    before = np.concatenate(([0], np.cumsum(np.tile(chunk_bytes, 2))))
    chunk = chunk % chunks
    return Messages(src, dst, before[chunk + sends.span] - before[chunk])


def sums(place: Ints, weights: Ints, size: int) -> Ints:
    """The sum of the weights at each of the places 0 … `size` - 1."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, place, weights)
    return total
