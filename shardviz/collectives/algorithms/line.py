"""The line: members send to their neighbours only, and never from the last to the first.

In every round each passes on, both ways, what came from the other side the round before, its own chunk first:
n - 1 rounds, in which every link between neighbours carries at most one chunk each way. A reduce_scatter is
the same backwards, the farthest addends first, and an all_reduce both in turn. So an axis of a TPU torus that
does not close takes (n - 1) / n · V / (bandwidth of a link one way), twice as long as one that does (Austin
et al. 2025, "How to scale your model", part 3).
"""

from __future__ import annotations

import numpy as np

from shardviz.collectives.algorithms.algorithm import Algorithm, Rounds
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Sends


def _line(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    gather = Phase("all-gather", n - 1, lambda r: _outwards(n, r))
    reduce = Phase("reduce-scatter", n - 1, lambda r: _inwards(n, n - 2 - r))
    phases = {"all_gather": [gather], "reduce_scatter": [reduce], "all_reduce": [reduce, gather]}
    return n, phases[pattern.kind]


def _outwards(n: int, number: int) -> Sends:
    """Round `number`, from 0: chunks that are so many members away from their own move on by one."""
    member = np.arange(n)
    right, left = member[number : n - 1], member[1 : n - number]
    src = np.concatenate([right, left])
    dst = np.concatenate([right + 1, left - 1])
    chunk = np.concatenate([right - number, left + number])
    return Sends(src, dst, chunk, np.zeros(len(src), dtype=bool))


def _inwards(n: int, number: int) -> Sends:
    """The same backwards: sums that are so many members away come nearer to their own by one."""
    out = _outwards(n, number)
    return Sends(out.dst, out.src, out.chunk, ~out.reduce)


LINE = Algorithm(
    "line",
    "to both neighbours at once, never from the last to the first",
    ("all_gather", "reduce_scatter", "all_reduce"),
    _line,
)
