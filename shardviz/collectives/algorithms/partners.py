"""Partners other than neighbours: every message straight to where it belongs, or in log2 n rounds.

Doubling, halving, pairwise and the binomial tree are those of Thakur, Rabenseifner and Gropp 2005,
"Optimization of collective communication operations in MPICH"; halving, then doubling is an all-reduce with
the fewest bytes (Rabenseifner 2004, "Optimization of collective reduction operations"). Bruck's take
⌈log2 n⌉ rounds for any n (Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all
communications in multiport message-passing systems"). The double binary tree is that of Sanders, Speck and
Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"; as an all-reduce whose two
directions overlap: Jeaugey 2019, "Massively scale your deep learning training with NCCL 2.4"."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shardviz.collectives.schedule import (
    Pattern,
    Phase,
    Rounds,
    Sends,
    check_entries,
    doublings,
    each_to,
    in_turn,
    pipeline,
)
from shardviz.collectives.values import Ints


def direct(pattern: Pattern, _pieces: int | None) -> Rounds:
    n, kind = pattern.group_size, pattern.kind
    if kind == "permute":
        pairs = np.array([pair for pair in pattern.perm if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)
        return n, [_at_once("permute", pairs[:, 0], pairs[:, 1], pairs[:, 0])]
    if kind == "broadcast":
        dst = np.delete(np.arange(n), pattern.source)
        return 1, [_at_once("broadcast", np.full(n - 1, pattern.source), dst, np.zeros_like(dst))]
    check_entries(n * (n - 1))
    src = np.repeat(np.arange(n), n - 1)
    dst = (src + np.tile(np.arange(1, n), n)) % n
    if kind == "all_to_all":
        return n * n, [_at_once("all-to-all", src, dst, src * n + dst)]
    reduce = _at_once("reduce-scatter", src, dst, dst, reduce=True)
    return n, in_turn(kind, [reduce], [_at_once("all-gather", src, dst, src)])


def _at_once(name: str, src: Ints, dst: Ints, chunk: Ints, reduce: bool = False) -> Phase:
    adds = np.full(len(src), reduce)
    return Phase(name, min(1, len(src)), lambda _: Sends(src, dst, chunk, adds), alike=True)


def pairwise(pattern: Pattern, _pieces: int | None) -> Rounds:
    # Between members whose numbers differ by the binary digits of the round where n is a power of two.
    n = pattern.group_size
    member, paired = np.arange(n), n & (n - 1) == 0

    def sends(number: int) -> Sends:
        dst = member ^ (number + 1) if paired else (member + number + 1) % n
        return each_to(dst, member * n + dst)

    return n * n, [Phase("all-to-all", n - 1, sends)]


def recursive_doubling(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    if pattern.kind == "all_gather":
        return n, [_doubling(n)]
    member, whole = np.arange(n), np.zeros(n, dtype=np.int64)
    return 1, [Phase("all-reduce", doublings(n), lambda r: each_to(member ^ (1 << r), whole, reduce=True))]


def halving(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size

    def sends(number: int) -> Sends:
        """Member i ends with total i: each keeps the half on its own side and sends the other."""
        half = n >> (number + 1)
        partner = np.arange(n) ^ half
        return each_to(partner, partner & -half, True, half)

    return n, in_turn(pattern.kind, [Phase("reduce-scatter", doublings(n), sends)], [_doubling(n)])


def _doubling(n: int) -> Phase:
    """An all-gather; member i starts with chunk i. Raises `Unsuited` where n is not a power of two."""
    member = np.arange(n)

    def sends(number: int) -> Sends:
        held = 1 << number
        return each_to(member ^ held, member & -held, span=held)

    return Phase("all-gather", doublings(n), sends)


def bruck(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    rounds, member = (n - 1).bit_length(), np.arange(n)

    def collecting(number: int) -> Sends:
        held = 1 << number
        return each_to((member - held) % n, member, span=min(held, n - held))

    def hopping(number: int) -> Sends:
        """Block s * n + d goes from member s to member d."""
        hop, distance = 1 << number, np.arange(1, n)
        distance = distance[distance & hop > 0]
        origin = (member[:, None] - distance % hop) % n
        chunk = (origin * n + (origin + distance) % n).reshape(-1)
        src = np.repeat(member, len(distance))
        return Sends(src, (src + hop) % n, chunk, np.zeros(len(chunk), dtype=bool))

    if pattern.kind == "all_to_all":
        check_entries(n * (n // 2))
        return n * n, [Phase("all-to-all", rounds, hopping)]
    return n, [Phase("all-gather", rounds, collecting)]


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
    """Two binary trees over n members, of height ⌊log2 n⌋, in which no member has children twice. Numbered
    from 1, the nodes of the first with children are the even ones. The second is its mirror image where n is
    even; else it is shifted by one."""
    up, depth = _in_order(n)
    node = np.flatnonzero(up)
    nodes = np.arange(n + 1)
    first, second = (
        Tree(member[up[node]], member[node], depth[node])
        for member in (nodes - 1, (n - nodes) % n if n % 2 == 0 else (nodes - 2) % n)
    )
    return first, second


def _in_order(n: int) -> tuple[Ints, Ints]:
    """The parent of each of the nodes 0 to n (0 for the root and for 0, which is not a node), and the
    depth."""
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
