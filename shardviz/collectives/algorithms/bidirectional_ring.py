"""The ring both ways at once: every chunk takes the shorter way, in half the rounds of a ring.

Right-hand neighbours are reached over n // 2 hops, left-hand ones over (n - 1) // 2: where n is even, the
member opposite is reached to the right alone, so that the last round has one message a device, not two.
That a wrapped axis of a TPU torus does so is why its all-gather takes V / (2 · bandwidth of a link one way)
and its all-to-all a quarter of that (Austin et al. 2025, "How to scale your model", part 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from shardviz.collectives.algorithms.algorithm import Algorithm, check_entries, schedule_of
from shardviz.collectives.algorithms.ring import passing
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends

if TYPE_CHECKING:
    from shardviz.collectives.schedule import Ints

    Chosen = Callable[[int], Ints]


def gathering(n: int) -> Iterator[Phase]:
    """n // 2 rounds that pass every chunk on both ways; member i starts with chunk i."""
    import numpy as np

    member = np.arange(n)
    return _both(n, "all-gather", lambda r: (member - r) % n, lambda r: (member + r) % n, reduce=False)


def reducing(n: int) -> Iterator[Phase]:
    """n // 2 rounds: partial sums of chunk i come to member i from both sides, which adds them to its own."""
    import numpy as np

    member = np.arange(n)
    far, near = n // 2, (n - 1) // 2
    return _both(
        n,
        "reduce-scatter",
        lambda r: (member + far - r) % n,
        lambda r: (member - near + r) % n,
        reduce=True,
    )


def _both(n: int, name: str, right: Chosen, left: Chosen, reduce: bool) -> Iterator[Phase]:
    """Rounds to both sides, then, where n is even, one to the right; `right` and `left` give the chunks."""
    import numpy as np

    member = np.arange(n)
    adds = np.full(2 * n, reduce)
    src = np.concatenate([member, member])
    dst = np.concatenate([member + 1, member - 1]) % n
    near = (n - 1) // 2
    yield Phase(name, near, lambda r: Sends(src, dst, np.concatenate([right(r), left(r)]), adds), alike=True)
    yield Phase(name, n // 2 - near, lambda _: Sends(member, dst[:n], right(near), adds[:n]), alike=True)


def exchanging(n: int) -> Phase:
    """An all_to_all hop by hop in n // 2 rounds, every block by the shorter way."""
    import numpy as np

    def sends(number: int) -> Sends:
        right, left = passing(n, 1, n // 2, number), passing(n, -1, (n - 1) // 2, number)
        return Sends(
            np.concatenate([right.src, left.src]),
            np.concatenate([right.dst, left.dst]),
            np.concatenate([right.chunk, left.chunk]),
            np.concatenate([right.reduce, left.reduce]),
        )

    return Phase("all-to-all", n // 2, sends)


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n = pattern.group_size
    if pattern.kind == "all_to_all":
        check_entries(n * (n - 1))
        return schedule_of("bidirectional-ring", pattern, n * n, exchanging(n))
    phases = {
        "all_gather": (gathering,),
        "reduce_scatter": (reducing,),
        "all_reduce": (reducing, gathering),
    }[pattern.kind]
    return schedule_of("bidirectional-ring", pattern, n, *(phase for both in phases for phase in both(n)))


BIDIRECTIONAL_RING = Algorithm(
    "bidirectional-ring",
    "to both neighbours at once, by the shorter way",
    ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"),
    build,
)
