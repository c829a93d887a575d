"""Bruck's algorithms: ⌈log2 n⌉ rounds for any number of members, to members 1, 2, 4, … away.

all_gather: member i collects the chunks i, i + 1, … and sends all of them, or as many as are missing there,
to the member 1, 2, 4, … before it. all_to_all: a block that has d members to go travels one hop of 1, 2,
4, … for each binary digit of d, so that half of the blocks move in a round, or fewer.

Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all communications in
multiport message-passing systems".
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, check_entries, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends


def gathering(n: int) -> Phase:
    """Member i starts with chunk i."""
    import numpy as np

    member = np.arange(n)
    takes = np.zeros(n, dtype=bool)

    def sends(number: int) -> Sends:
        held = 1 << number
        return Sends(member, (member - held) % n, member, takes, min(held, n - held))

    return Phase("all-gather", (n - 1).bit_length(), sends)


def exchanging(n: int) -> Phase:
    """Block s * n + d goes from member s to member d."""
    import numpy as np

    def sends(number: int) -> Sends:
        hop = 1 << number
        distance = np.arange(1, n)
        distance = distance[distance & hop > 0]
        member = np.arange(n)[:, None]
        origin = (member - distance % hop) % n
        chunk = (origin * n + (origin + distance) % n).reshape(-1)
        src = np.repeat(np.arange(n), len(distance))
        return Sends(src, (src + hop) % n, chunk, np.zeros(len(chunk), dtype=bool))

    return Phase("all-to-all", (n - 1).bit_length(), sends)


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    if pattern.kind == "all_to_all":
        check_entries(n * (n // 2))
        return schedule_of("bruck", pattern, n * n, exchanging(n))
    return schedule_of("bruck", pattern, n, gathering(n))


BRUCK = Algorithm(
    "bruck",
    "members 1, 2, 4, … away, for any number of devices",
    ("all_gather", "all_to_all"),
    build,
)
