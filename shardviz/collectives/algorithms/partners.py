"""Partners other than neighbours: every message straight to where it belongs, or in log2 n rounds.

Direct: all messages in one round. That is what a crossbar does best, and what fills the links of anything
else. An all_reduce takes two rounds: a direct reduce-scatter, in which each member adds up the addends of its
chunk, then a direct all-gather. Pairwise, an all_to_all takes n - 1 rounds, in each of which every member
sends one block. In round r of a power of two, members whose numbers differ by the binary digits of r exchange
blocks; of any other number, each member sends to the one r further on and is sent one by the member r before
it (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH").

Doubling and halving have partners 1, 2, 4, … away. Recursive doubling: an all_gather doubles what a member
holds every round; an all_reduce exchanges and adds the whole payload every round: few rounds, many bytes.
Recursive halving: partners n/2, n/4, …, 1 away split what is left between them; each keeps the half on its
own side, sends the other half and adds what it is sent: V/2, V/4, … of the payload V (Thakur and others).
Halving, then doubling, is an all-reduce with the fewest bytes in 2 · log2 n rounds (Rabenseifner 2004,
"Optimization of collective reduction operations").

Bruck's algorithms take ⌈log2 n⌉ rounds for any number of members. all_gather: member i collects the chunks i,
i + 1, … and sends all of them, or as many as are missing there, to the member 1, 2, 4, … before it.
all_to_all: a block that has d members to go travels one hop of 1, 2, 4, … for each binary digit of d, so that
half of the blocks move in a round, or fewer (Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient
algorithms for all-to-all communications in multiport message-passing systems").
"""

from __future__ import annotations

import numpy as np

from shardviz.collectives.algorithms.algorithm import Rounds, check_entries, doublings, in_turn
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
    return n, in_turn(kind, [reduce], [_at_once("all-gather", src, dst, src)])


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


def recursive_doubling(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    if pattern.kind == "all_gather":
        return n, [_doubling(n)]
    member, whole, adds = np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    return 1, [Phase("all-reduce", doublings(n), lambda r: Sends(member, member ^ (1 << r), whole, adds))]


def halving(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    return n, in_turn(pattern.kind, [_halving(n)], [_doubling(n)])


def _doubling(n: int) -> Phase:
    """An all-gather; member i starts with chunk i. Raises `Unsuited` where n is not a power of two."""
    member, takes = np.arange(n), np.zeros(n, dtype=bool)

    def sends(number: int) -> Sends:
        held = 1 << number
        return Sends(member, member ^ held, member & -held, takes, held)

    return Phase("all-gather", doublings(n), sends)


def _halving(n: int) -> Phase:
    """A reduce-scatter; member i ends with total i. Raises `Unsuited` where n is not a power of two."""
    member, adds = np.arange(n), np.ones(n, dtype=bool)

    def sends(number: int) -> Sends:
        half = n >> (number + 1)
        partner = member ^ half
        return Sends(member, partner, partner & -half, adds, half)

    return Phase("reduce-scatter", doublings(n), sends)


def bruck(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    rounds, member, takes = (n - 1).bit_length(), np.arange(n), np.zeros(n, dtype=bool)

    def collecting(number: int) -> Sends:
        held = 1 << number
        return Sends(member, (member - held) % n, member, takes, min(held, n - held))

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
