"""Direct: every message straight to where it belongs, all of them in one round.

What a crossbar does best, and what fills the links of anything else. An all_reduce takes two rounds: a
direct reduce-scatter, in which each member adds up the addends of its chunk, then a direct all-gather.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.collectives.algorithms.algorithm import Algorithm, check_entries, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends

if TYPE_CHECKING:
    from shardviz.collectives.schedule import Ints


def _at_once(name: str, src: Ints, dst: Ints, chunk: Ints, reduce: bool = False) -> Phase:
    import numpy as np

    adds = np.full(len(src), reduce)
    return Phase(name, min(1, len(src)), lambda _: Sends(src, dst, chunk, adds), alike=True)


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    import numpy as np

    n, kind = pattern.group_size, pattern.kind
    if kind == "permute":
        pairs = np.array([pair for pair in pattern.perm if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)
        return schedule_of("direct", pattern, n, _at_once("permute", pairs[:, 0], pairs[:, 1], pairs[:, 0]))
    if kind == "broadcast":
        dst = np.delete(np.arange(n), pattern.source)
        src = np.full(n - 1, pattern.source)
        return schedule_of("direct", pattern, 1, _at_once("broadcast", src, dst, np.zeros_like(dst)))
    check_entries(n * (n - 1))
    src = np.repeat(np.arange(n), n - 1)
    dst = (src + np.tile(np.arange(1, n), n)) % n
    if kind == "all_to_all":
        return schedule_of("direct", pattern, n * n, _at_once("all-to-all", src, dst, src * n + dst))
    scattered = _at_once("reduce-scatter", src, dst, dst, reduce=True)
    gathered = _at_once("all-gather", src, dst, src)
    phases = {
        "all_gather": (gathered,),
        "reduce_scatter": (scattered,),
        "all_reduce": (scattered, gathered),
    }[kind]
    return schedule_of("direct", pattern, n, *phases)


DIRECT = Algorithm(
    "direct",
    "every message straight to where it belongs, all at once",
    ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "broadcast"),
    build,
)
