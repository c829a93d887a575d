"""Recursive doubling: members exchange all they have with partners 1, 2, 4, … away, log2 n rounds.

all_gather doubles what a member holds every round: 1, 2, 4, … chunks. all_reduce exchanges and adds the
whole payload every round: few rounds, many bytes (Thakur, Rabenseifner and Gropp 2005, "Optimization of
collective communication operations in MPICH").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, doublings, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends


def gathering(n: int) -> Phase:
    """log2 n rounds; member i starts with chunk i. Raises `Unsuited` where n is no power of two."""
    import numpy as np

    member = np.arange(n)
    takes = np.zeros(n, dtype=bool)

    def sends(number: int) -> Sends:
        held = 1 << number
        return Sends(member, member ^ held, member & -held, takes, held)

    return Phase("all-gather", doublings(n), sends)


def adding(n: int) -> Phase:
    """log2 n rounds that add up the whole payload, which is one chunk."""
    import numpy as np

    member = np.arange(n)
    whole = np.zeros(n, dtype=np.int64)
    adds = np.ones(n, dtype=bool)
    return Phase("all-reduce", doublings(n), lambda r: Sends(member, member ^ (1 << r), whole, adds))


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    if pattern.kind == "all_reduce":
        return schedule_of("recursive-doubling", pattern, 1, adding(n))
    return schedule_of("recursive-doubling", pattern, n, gathering(n))


RECURSIVE_DOUBLING = Algorithm(
    "recursive-doubling",
    "partners 1, 2, 4, … away exchange all they have",
    ("all_gather", "all_reduce"),
    build,
)
