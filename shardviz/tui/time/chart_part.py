"""One of the timelines of a chart, prepared for pictures of any window."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.render.times.live_memory import MemoryCurve
from shardviz.render.times.timeline_rows import TimelineRows
from shardviz.tui.time.lane_index import LaneIndex
from shardviz.units import estimated_seconds

if TYPE_CHECKING:
    from shardviz.render.times.timeline_rows import TimeWindow
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class ChartPart:
    """A timeline prepared for pictures of any window and for moving in it."""

    timeline: ProgramTimeline
    name: str = ""

    @cached_property
    def rows(self) -> TimelineRows:
        return TimelineRows(self.timeline)

    @cached_property
    def index(self) -> LaneIndex:
        return LaneIndex(self.timeline)

    @cached_property
    def memory(self) -> MemoryCurve | None:
        """The curve of live memory; None where nobody has told it."""
        memory = self.timeline.memory
        return MemoryCurve(memory) if memory is not None and memory.curve else None

    @property
    def title(self) -> str:
        """``1.24 ms on v5e:2x4``; with its name, ``plan  9.8 ms on …``, unless the machine is called so."""
        total = f"{estimated_seconds(self.timeline.seconds)} on {self.timeline.machine}"
        return total if self.timeline.machine.startswith(self.name) else f"{self.name}  {total}"

    @cached_property
    def critical(self) -> frozenset[int]:
        """The operations of the critical path."""
        return frozenset(self.timeline.critical_path)

    @cached_property
    def _critical_lanes(self) -> list[tuple[list[float], list[int]]]:
        """The critical path lane by lane: the starts of its operations, and their numbers."""
        lanes: dict[int, tuple[list[float], list[int]]] = {}
        for number in self.timeline.critical_path:
            op = self.timeline.ops[number]
            starts, numbers = lanes.setdefault(op.lane, ([], []))
            starts.append(op.start)
            numbers.append(number)
        return list(lanes.values())

    def critical_in(self, window: TimeWindow, columns: int) -> list[int]:
        """Operations of the critical path in a window: of each lane the last that starts in a column, as no
        other of them goes on beyond it."""
        cell = window.seconds / columns
        found: list[int] = []
        for starts, numbers in self._critical_lanes:
            place = max(bisect_left(starts, window.start) - 1, 0)
            while place < len(starts) and starts[place] < window.end:
                after = bisect_left(starts, starts[place] + cell, place + 1)
                found.append(numbers[after - 1])
                place = after
        return found


def first_choice(timeline: ProgramTimeline) -> int | None:
    """The operation with which to begin: what would save most, or the longest; None where there is none."""
    if timeline.savings:
        return timeline.savings[0].op
    ops = timeline.ops
    return max(range(len(ops)), key=lambda each: ops[each].end - ops[each].start, default=None)
