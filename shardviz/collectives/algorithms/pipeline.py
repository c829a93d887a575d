"""A pipeline: pieces that follow one another, one a round, over the same edges from member to member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.collectives.schedule import Phase, Sends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives.schedule import Ints


@dataclass(frozen=True)
class Edges:
    """Edge k leads from member `src[k]` to `dst[k]` and carries `first[k]`, `first[k]` + 1, … in turn.

    It carries its first chunk in round `start[k]`, and is idle before. Where `reduce[k]`, the receiver adds.
    """

    src: Ints
    dst: Ints
    start: Ints
    first: Ints
    reduce: NDArray[np.bool_]


def pipeline(name: str, edges: Edges, pieces: int) -> Phase:
    """The rounds in which every edge carries `pieces` chunks one after the other, as soon as it may."""

    def sends(number: int) -> Sends:
        piece = number - edges.start
        busy = (piece >= 0) & (piece < pieces)
        chunk = edges.first[busy] + piece[busy]
        return Sends(edges.src[busy], edges.dst[busy], chunk, edges.reduce[busy])

    rounds = int(edges.start.max()) + pieces if len(edges.start) else 0
    return Phase(name, rounds, sends)
