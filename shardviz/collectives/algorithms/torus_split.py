"""The torus on all axes at once: as many parts of the payload as there are axes, each on its own way.

Part k is scattered along axis k first, then k + 1, … round to k - 1, and gathered the same way back. All
parts turn to the next axis together, so that no two are ever on the same one. On axes of one size a round
sends the messages of `torus`, each 1 / (number of axes) as long, and every axis works in every round; where
axes differ in size, the parts on the shorter ones wait for the longest. Rings go one way round, so links
carry half of what both ways could (Jain and Sabharwal 2010, "Optimal
bucket algorithms for large MPI collectives on torus interconnects").
"""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import Algorithm, schedule_of
from shardviz.collectives.algorithms.torus import axes_of, side_by_side, stages_along
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n, axes = pattern.group_size, axes_of(pattern)
    orders = [axes[part:] + axes[:part] for part in range(len(axes))]
    phases: list[Phase] = []
    for name, reduce in (("reduce-scatter", True), ("all-gather", False)):
        parts = [stages_along(pattern.dims, order, part * n, reduce) for part, order in enumerate(orders)]
        phases += side_by_side(name, parts) if parts else ()
    return schedule_of("torus-split", pattern, max(1, len(axes)) * n, *phases)


TORUS_SPLIT = Algorithm(
    "torus-split",
    "the payload in parts, one starting along each axis of the torus",
    ("all_reduce",),
    build,
)
