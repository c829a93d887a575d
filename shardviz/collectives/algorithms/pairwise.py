"""Pairwise exchange: n - 1 rounds, in each of which every member sends one block to where it belongs.

In round r of a power of two, members whose numbers differ by the binary digits of r exchange blocks; of
any other number, each member sends to the one r further on and is sent one by the member r before it
(Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    import numpy as np

    n = pattern.group_size
    member = np.arange(n)
    takes = np.zeros(n, dtype=bool)
    paired = n & (n - 1) == 0

    def sends(number: int) -> Sends:
        away = number + 1
        dst = member ^ away if paired else (member + away) % n
        return Sends(member, dst, member * n + dst, takes)

    return schedule_of("pairwise", pattern, n * n, Phase("all-to-all", n - 1, sends))


PAIRWISE = Algorithm("pairwise", "one partner a round, one block each way", ("all_to_all",), build)
