"""One of the timelines of a chart, prepared for pictures of any window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.render.times.timeline_rows import TimelineRows
from shardviz.units import estimated_seconds

if TYPE_CHECKING:
    from shardviz.render.times.timeline_rows import TimeWindow
    from shardviz.timeline.program_timeline import ProgramTimeline


class LaneIndex:
    """Finds the neighbours of operations, which are numbered as in the timeline."""

    def __init__(self, timeline: ProgramTimeline) -> None:
        self._ops = timeline.ops
        self._lanes: list[list[int]] = [[] for _ in timeline.lanes]
        for number, op in enumerate(timeline.ops):
            self._lanes[op.lane].append(number)
        self._starts = [[timeline.ops[number].start for number in lane] for lane in self._lanes]
        self._names: dict[str, int] = {}
        for number, op in enumerate(timeline.ops):
            self._names.setdefault(op.name, number)

    def named(self, name: str) -> int | None:
        """The operation of that name; None where none has it."""
        return self._names.get(name)

    def beside(self, number: int, step: int) -> int:
        """So many operations on, on the same lane; at its end the last one."""
        lane = self._lanes[self._ops[number].lane]
        return lane[min(max(bisect_left(lane, number) + step, 0), len(lane) - 1)]

    def at_end(self, number: int, side: int) -> int:
        """The first operation of the same lane, or, where `side` is 1, its last."""
        return self._lanes[self._ops[number].lane][0 if side < 0 else -1]

    def on_lane_beside(self, number: int, step: int) -> int | None:
        """The operation of the next lane that has any, at the same time; None where there is none."""
        op = self._ops[number]
        lane = op.lane + step
        while 0 <= lane < len(self._lanes):
            found = self.nearest(lane, (op.start + op.end) / 2)
            if found is not None:
                return found
            lane += step
        return None

    def nearest(self, lane: int, time: float) -> int | None:
        """The operation of a lane that runs at a time, or the nearest to it; None where the lane is empty."""

        def away(number: int) -> float:
            op = self._ops[number]
            return max(op.start - time, time - op.end, 0.0)

        place = bisect_right(self._starts[lane], time)
        return min(self._lanes[lane][max(place - 2, 0) : place + 1], key=away, default=None)

    def edge(self, step: int, time: float) -> int | None:
        """The operation at a time on the first lane that has any, or, where `step` is -1, on the last."""
        found = (self.nearest(lane, time) for lane in range(len(self._lanes))[::step])
        return next((number for number in found if number is not None), None)

    def waited_for(self, number: int) -> int | None:
        """The operation whose end it waited for last; None where it waited for none."""
        return max(self._ops[number].after, key=lambda each: self._ops[each].end, default=None)


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

    @property
    def title(self) -> str:
        """``1.24 ms on v5e:2x4``; with its name, ``plan  9.8 ms on …``, unless the machine is called so."""
        total = f"{estimated_seconds(self.timeline.seconds)} on {self.timeline.machine}"
        return total if self.timeline.machine.startswith(self.name) else f"{self.name}  {total}"

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
