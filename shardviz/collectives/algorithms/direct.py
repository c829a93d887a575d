"""Direct: every message straight to where it belongs, all of them in one round, or one a member in turn.

All at once is what a crossbar does best, and what fills the links of anything else. An all_reduce takes two
rounds: a direct reduce-scatter, in which each member adds up the addends of its chunk, then a direct
all-gather.

Pairwise, an all_to_all takes n - 1 rounds, in each of which every member sends one block. In round r of a
power of two, members whose numbers differ by the binary digits of r exchange blocks; of any other number,
each member sends to the one r further on and is sent one by the member r before it (Thakur, Rabenseifner and
Gropp 2005, "Optimization of collective communication operations in MPICH").
"""

from __future__ import annotations

import numpy as np

from shardviz.collectives.algorithms.algorithm import Rounds, check_entries
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Sends
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
    gather = _at_once("all-gather", src, dst, src)
    return n, {"all_gather": [gather], "reduce_scatter": [reduce], "all_reduce": [reduce, gather]}[kind]


def _at_once(name: str, src: Ints, dst: Ints, chunk: Ints, reduce: bool = False) -> Phase:
    adds = np.full(len(src), reduce)
    return Phase(name, min(1, len(src)), lambda _: Sends(src, dst, chunk, adds), alike=True)


def pairwise(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    member, takes = np.arange(n), np.zeros(n, dtype=bool)
    paired = n & (n - 1) == 0

    def sends(number: int) -> Sends:
        away = number + 1
        dst = member ^ away if paired else (member + away) % n
        return Sends(member, dst, member * n + dst, takes)

    return n * n, [Phase("all-to-all", n - 1, sends)]
