"""Halving and doubling: an all-reduce with the fewest bytes in 2 · log2 n rounds.

A reduce-scatter by recursive halving, then an all-gather by recursive doubling (Rabenseifner 2004,
"Optimization of collective reduction operations").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, schedule_of
from shardviz.collectives.algorithms.recursive_doubling import gathering
from shardviz.collectives.algorithms.recursive_halving import reducing
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Schedule


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    return schedule_of("halving-doubling", pattern, n, reducing(n), gathering(n))


HALVING_DOUBLING = Algorithm(
    "halving-doubling",
    "reduce-scatter by halving, then all-gather by doubling",
    ("all_reduce",),
    build,
)
