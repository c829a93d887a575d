"""The binomial tree: in every round, all that have the payload send it to one more member each.

⌈log2 n⌉ rounds from any source; an all_reduce adds up the same tree to member 0 and comes back down,
2 · ⌈log2 n⌉ rounds. The farthest members are served first: then the messages of a round take stretches
of a ring or line that do not overlap (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective
communication operations in MPICH").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends


def spreading(n: int, source: int) -> Phase:
    """The whole payload, one chunk, from `source` to all."""
    rounds = (n - 1).bit_length()
    return Phase("broadcast", rounds, lambda r: _edges(n, source, 1 << (rounds - 1 - r), up=False))


def collecting(n: int, root: int) -> Phase:
    """The addends of all, which are one chunk, added up on `root`."""
    return Phase("reduce", (n - 1).bit_length(), lambda r: _edges(n, root, 1 << r, up=True))


def _edges(n: int, root: int, apart: int, up: bool) -> Sends:
    """The edges of the tree between members that are so far apart, counted from the root."""
    import numpy as np

    near = np.arange(0, n - apart, 2 * apart)
    parent, child = (near + root) % n, (near + apart + root) % n
    src, dst = (child, parent) if up else (parent, child)
    return Sends(src, dst, np.zeros_like(src), np.full(len(src), up))


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    if pattern.kind == "broadcast":
        return schedule_of("binomial-tree", pattern, 1, spreading(n, pattern.source))
    return schedule_of("binomial-tree", pattern, 1, collecting(n, 0), spreading(n, 0))


BINOMIAL_TREE = Algorithm(
    "binomial-tree",
    "all that have the payload pass it on, so that their number doubles",
    ("broadcast", "all_reduce"),
    build,
)
