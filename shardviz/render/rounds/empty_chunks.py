"""Chunks without any element: a shard that is smaller than the number of its chunks leaves some empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.collectives import Sends
from shardviz.stepping.collective_run import CollectiveRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def empty_chunks(walk: CollectiveRun) -> NDArray[np.bool_] | None:
    """Whether each chunk is empty; None where none is, and where all are."""
    if isinstance(walk.chunk_bytes, int):
        return None
    empty = walk.chunk_bytes == 0
    return empty if empty.any() and not empty.all() else None


def carried(walk: CollectiveRun, sends: Sends) -> Sends:
    """The sends of a round without those of empty chunks."""
    empty = empty_chunks(walk)
    if empty is None:
        return sends
    sends = sends.expanded(walk.schedule.chunks)
    kept = ~empty[sends.chunk]
    return Sends(sends.src[kept], sends.dst[kept], sends.chunk[kept], sends.reduce[kept])


def empty_note(walk: CollectiveRun) -> str:
    """How many chunks are empty, and why; empty where none is."""
    empty = empty_chunks(walk)
    if empty is None or walk.schedule.pattern.kind == "all_to_all":
        return ""
    chunks = walk.schedule.chunks
    count = int(empty.sum())
    are = "is" if count == 1 else "are"
    return f"{count:,} of the {chunks:,} chunks {are} empty: a shard has fewer numbers than chunks"
