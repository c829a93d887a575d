"""Recursive halving: partners n/2, n/4, …, 1 away split what is left between them, log2 n rounds.

Each keeps the half on its own side, sends the other half and adds what it is sent: V/2, V/4, … of the
payload V (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in
MPICH").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, doublings, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends


def reducing(n: int) -> Phase:
    """log2 n rounds; member i ends with total i. Raises `Unsuited` where n is no power of two."""
    import numpy as np

    member = np.arange(n)
    adds = np.ones(n, dtype=bool)

    def sends(number: int) -> Sends:
        half = n >> (number + 1)
        partner = member ^ half
        return Sends(member, partner, partner & -half, adds, half)

    return Phase("reduce-scatter", doublings(n), sends)


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    return schedule_of("recursive-halving", pattern, n, reducing(n))


RECURSIVE_HALVING = Algorithm(
    "recursive-halving",
    "partners n/2, n/4, … away each keep one half and send the other",
    ("reduce_scatter",),
    build,
)
