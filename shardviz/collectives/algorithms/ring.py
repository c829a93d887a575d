"""The ring: every member sends to the next one only, and every link carries the same.

all_gather, reduce_scatter, all_reduce: one chunk a round, n - 1 rounds, for an all_reduce both in turn
(Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations").

all_to_all: hop by hop, one way round. In its first round a member sends off its n - 1 blocks; after every
round each keeps the one that has arrived and passes the others on: n - 1, n - 2, …, 1 blocks a round.

broadcast: a chain from the source once around, the payload in pieces that follow one another: n - 2 + pieces
rounds. Without a wish it uses n pieces, so that filling the chain takes no longer than the payload itself.
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, Unsuited, check_entries, schedule_of
from shardviz.collectives.algorithms.pipeline import Edges, pipeline
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends
from shardviz.errors import plural


def gathering(n: int) -> Phase:
    """n - 1 rounds that pass every chunk on to the next member; member i starts with chunk i."""
    return _around(n, "all-gather", 0, reduce=False)


def reducing(n: int) -> Phase:
    """n - 1 rounds that pass partial sums on, each member adding its own; member i ends with total i."""
    return _around(n, "reduce-scatter", -1, reduce=True)


def _around(n: int, name: str, first: int, reduce: bool) -> Phase:
    import numpy as np

    src = np.arange(n)
    dst = (src + 1) % n
    adds = np.full(n, reduce)
    return Phase(name, n - 1, lambda r: Sends(src, dst, (src + first - r) % n, adds), alike=True)


def passing(n: int, step: int, reach: int, number: int) -> Sends:
    """Round `number` (from 0) of an all_to_all hop by hop, for the blocks that go 1 to `reach` hops.

    Every member sends to the one `step` (1 or -1) further all that it was sent the round before and that
    has further to go. Ordered by member, then by the hops of a block in all.
    """
    import numpy as np

    hops = np.arange(number + 1, reach + 1)
    member = np.arange(n)
    origin = (member - step * number) % n
    chunk = (origin * n)[:, None] + (origin[:, None] + step * hops) % n
    src = np.repeat(member, len(hops))
    return Sends(src, (src + step) % n, chunk.reshape(-1), np.zeros(chunk.size, dtype=bool))


def chain(n: int, source: int, pieces: int) -> Phase:
    """The broadcast: piece after piece from the source to the member before it."""
    import numpy as np

    start = np.arange(n - 1)
    src = (source + start) % n
    nothing = np.zeros_like(start)
    return pipeline("broadcast", Edges(src, (src + 1) % n, start, nothing, nothing > 0), pieces)


def build(pattern: Pattern, pieces: int | None) -> Schedule:
    n = pattern.group_size
    if pattern.kind == "broadcast":
        return schedule_of("ring", pattern, pieces or n, chain(n, pattern.source, pieces or n))
    if pieces is not None:
        raise Unsuited(f"only its broadcast has a pipeline that could use {plural(pieces, 'piece')}")
    if pattern.kind == "all_to_all":
        check_entries(n * (n - 1))
        passed = Phase("all-to-all", n - 1, lambda r: passing(n, 1, n - 1, r))
        return schedule_of("ring", pattern, n * n, passed)
    phases = {
        "all_gather": (gathering,),
        "reduce_scatter": (reducing,),
        "all_reduce": (reducing, gathering),
    }[pattern.kind]
    return schedule_of("ring", pattern, n, *(phase(n) for phase in phases))


RING = Algorithm(
    "ring",
    "always to the next neighbour",
    ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast"),
    build,
    pipelined=True,
)
