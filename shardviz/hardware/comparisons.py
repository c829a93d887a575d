"""Every algorithm for one pattern side by side: rounds, bytes, busiest link, time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shardviz.collectives.algorithms import ALGORITHMS, Unsuited
from shardviz.errors import QuestionError
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import Timeline, timeline
from shardviz.hardware.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardviz.collectives.pattern import Pattern
    from shardviz.collectives.schedule import Ints, Schedule

    ChunkBytes = Callable[[Schedule], int | Ints]


MAX_UNEVEN = 4096
"""Chunks of different sizes that are compared; more of them all count as the largest."""
SAME = 1e-6
"""Times that differ relatively by less count as equal: queues are followed on clocks of whole ticks."""


@dataclass(frozen=True)
class AlgorithmRow:
    """One algorithm. `reason` is empty, or why it cannot be compared: then all its numbers are 0.

    Numbers are worked out when they are first asked for: time and links may need the queues.
    `device_bytes` is the most that one device sends and `busiest_bytes` what the busiest link carries, both
    over all rounds. `seconds` is a lower bound, and `waiting` None, where not `exact`.
    """

    algorithm: str
    timeline: Timeline | None
    reason: str = ""

    @property
    def rounds(self) -> int:
        return len(self.timeline) if self.timeline else 0

    @property
    def device_bytes(self) -> int:
        return self.timeline.device_bytes if self.timeline else 0

    @property
    def busiest_bytes(self) -> int:
        return self.timeline.busiest_bytes if self.timeline else 0

    @property
    def waiting(self) -> int | None:
        return self.timeline.waiting if self.timeline else 0

    @property
    def seconds(self) -> float:
        return self.timeline.seconds if self.timeline else 0.0

    @property
    def exact(self) -> bool:
        return self.timeline is None or self.timeline.exact


def comparison(
    pattern: Pattern, bytes_: int | ChunkBytes, topology: Topology, wire: LinkSpec
) -> tuple[AlgorithmRow, ...]:
    """A row for every algorithm that knows the pattern's kind, in the order of `ALGORITHMS`.

    `bytes_` is the larger of a member's operand and result, cut into chunks as equal as whole bytes can be;
    or a function that gives the bytes of a schedule's chunks. Raises `QuestionError` as `timeline` does.
    """
    if isinstance(bytes_, int) and bytes_ < 0:
        raise QuestionError(f"{bytes_} bytes cannot be sent", "sizes are 0 or more")
    rows = []
    for name, schedule in candidates(pattern).items():
        if isinstance(schedule, str):
            rows.append(AlgorithmRow(name, None, schedule))
            continue
        sizes = _even(schedule, bytes_) if isinstance(bytes_, int) else bytes_(schedule)
        if not isinstance(sizes, int) and len(sizes) > MAX_UNEVEN:
            sizes = int(sizes.max())
        line = timeline(schedule, sizes, topology, wire)
        rows.append(AlgorithmRow(name, None, line.too_long) if line.too_long else AlgorithmRow(name, line))
    return tuple(rows)


def fastest(rows: Sequence[AlgorithmRow]) -> tuple[str, ...]:
    """The algorithms that take the least time, several where they tie.

    None where nobody can tell: where another's lower bound is below the least time.
    """
    able = [row for row in rows if not row.reason]
    least = min((row.seconds for row in able if row.exact), default=math.inf)
    if any(row.seconds < least * (1 - SAME) for row in able):
        return ()
    return tuple(row.algorithm for row in able if row.exact and row.seconds <= least * (1 + SAME))


def candidates(pattern: Pattern) -> dict[str, Schedule | str]:
    """The schedule of every algorithm that knows the pattern's kind, or why it cannot carry it out."""
    found: dict[str, Schedule | str] = {}
    for name, algorithm in ALGORITHMS.items():
        if pattern.kind in algorithm.kinds:
            try:
                found[name] = algorithm.schedule(pattern)
            except Unsuited as reason:
                found[name] = str(reason)
    return found


def chunks_of_member(schedule: Schedule) -> int:
    """The number of chunks into which the larger of a member's operand and result is cut."""
    each = schedule.pattern.kind in ("all_to_all", "permute")
    return schedule.chunks // schedule.pattern.group_size if each else schedule.chunks


def _even(schedule: Schedule, bytes_: int) -> int | Ints:
    count = chunks_of_member(schedule)
    least, more = divmod(bytes_, count)
    if not more:
        return least
    if schedule.chunks > MAX_UNEVEN:
        return least + 1
    sizes: Ints = least + (np.arange(schedule.chunks) % count < more)
    return sizes
