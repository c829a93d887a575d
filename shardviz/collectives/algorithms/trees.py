"""Trees: the payload spreads from a root in log2 n rounds, or is added up on the way to it.

The binomial tree: in every round, all that have the payload send it to one more member each. ⌈log2 n⌉ rounds
from any source; an all_reduce adds up the same tree to member 0 and comes back down, 2 · ⌈log2 n⌉ rounds. The
farthest members are served first: then the messages of a round take stretches of a ring or line that do not
overlap (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH").

The double binary tree: an all-reduce in few rounds on full bandwidth. Each of two binary trees adds up one
half of the payload from the leaves to its root and brings the totals back, in pieces that follow one another:
2 · ⌊log2 n⌋ + pieces - 1 rounds of pieces of V / (2 · pieces). In a round, an edge of a tree carries at most
one piece up and one down. A member that has children in one tree has none in the other; so it sends at most
four pieces a round and receives at most four, and sends no more than 2 V over all rounds, while the ring's
2 (n - 1) / n · V are the least that is possible (Sanders, Speck and Träff 2009, "Two-tree algorithms for full
bandwidth broadcast, reduction and scan"; as an all-reduce whose two directions overlap: Jeaugey 2019,
"Massively scale your deep learning training with NCCL 2.4"). Of itself it uses 2 · ⌊log2 n⌋ pieces, as many
as rounds are needed to fill the trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shardviz.collectives.algorithms.algorithm import Rounds, pipeline
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Sends
from shardviz.collectives.values import Ints


def binomial_tree(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    rounds = (n - 1).bit_length()
    root = pattern.source if pattern.kind == "broadcast" else 0
    spread = Phase("broadcast", rounds, lambda r: _edges(n, root, 1 << (rounds - 1 - r), up=False))
    collect = Phase("reduce", rounds, lambda r: _edges(n, root, 1 << r, up=True))
    return 1, [spread] if pattern.kind == "broadcast" else [collect, spread]


def _edges(n: int, root: int, apart: int, up: bool) -> Sends:
    """The edges of the tree between members that are so far apart, counted from the root."""
    near = np.arange(0, n - apart, 2 * apart)
    parent, child = (near + root) % n, (near + apart + root) % n
    src, dst = (child, parent) if up else (parent, child)
    return Sends(src, dst, np.zeros_like(src), np.full(len(src), up))


def double_binary_tree(pattern: Pattern, pieces: int | None) -> Rounds:
    n = pattern.group_size
    height = n.bit_length() - 1
    pieces = pieces or max(1, 2 * height)
    edges = []
    for number, tree in enumerate(trees(n)):
        first = np.full(len(tree.child), number * pieces)
        up = np.ones_like(first, dtype=bool)
        edges.append((tree.child, tree.parent, height - tree.depth, first, up))
        edges.append((tree.parent, tree.child, height + tree.depth - 1, first, ~up))
    both = (np.concatenate(arrays) for arrays in zip(*edges, strict=True))
    return 2 * pieces, [pipeline("reduce and broadcast", pieces, *both)]


class Tree(NamedTuple):
    """The edges of a tree: `child[k]` hangs on `parent[k]`, `depth[k]` edges below the root."""

    parent: Ints
    child: Ints
    depth: Ints


def trees(n: int) -> tuple[Tree, Tree]:
    """Two binary trees over n members, of height ⌊log2 n⌋, in which no member has children twice.

    Numbered from 1, the nodes of the first with children are the even ones. The second is its mirror image
    where n is even; else it is shifted by one.
    """
    up, depth = _in_order(n)
    node = np.flatnonzero(up)
    nodes = np.arange(n + 1)
    first, second = (
        Tree(member[up[node]], member[node], depth[node])
        for member in (nodes - 1, (n - nodes) % n if n % 2 == 0 else (nodes - 2) % n)
    )
    return first, second


def _in_order(n: int) -> tuple[Ints, Ints]:
    """The parent of each of the nodes 0 to n (0 for the root and for 0, which is not a node), and the depth.

    The tree's in-order is 1, 2, …, n: a node's lowest binary digit, 2 ** height, moves up by one, and is
    dropped where that leads beyond n.
    """
    node = np.arange(n + 1)
    lowest = node & -node
    up = (node ^ lowest) | (lowest << 1)
    up = np.where(up > n, node ^ lowest, up)
    depth = np.zeros_like(node)
    above = up
    while above.any():
        depth += above > 0
        above = up[above]
    return up, depth
