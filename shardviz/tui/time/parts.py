"""A timeline prepared for its chart: the neighbours of its operations, and its lanes as lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from rich.text import Text

from shardviz.render.times.gantt import Gantt
from shardviz.render.times.timeline_rows import TimelineRows
from shardviz.timeline.program_timeline import ProgramTimeline
from shardviz.units import seconds as human_seconds


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
            beside = self.nearest(lane, (op.start + op.end) / 2)
            if beside is not None:
                return beside
            lane += step
        return None

    def nearest(self, lane: int, time: float) -> int | None:
        """The operation of a lane that runs at a time, or the nearest to it; None where the lane is empty."""

        def away(number: int) -> float:
            op = self._ops[number]
            return max(op.start - time, time - op.end, 0.0)

        index = bisect_right(self._starts[lane], time)
        return min(self._lanes[lane][max(index - 2, 0) : index + 1], key=away, default=None)

    def edge(self, step: int, time: float) -> int | None:
        """The operation at a time on the first lane that has any, or, where `step` is -1, on the last."""
        nearest = (self.nearest(lane, time) for lane in range(len(self._lanes))[::step])
        return next((number for number in nearest if number is not None), None)

    def waited_for(self, number: int) -> int | None:
        """The operation whose end it waited for last; None where it waited for none."""
        return max(self._ops[number].after, key=lambda other: self._ops[other].end, default=None)


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
        total = f"{human_seconds(self.timeline.seconds)} on {self.timeline.machine}"
        return total if self.timeline.machine.startswith(self.name) else f"{self.name}  {total}"


class StackedCharts:
    """A canvas: frames above one another, each with the lines that stand below it, several under titles."""

    def __init__(
        self, frames: Sequence[tuple[Gantt, Sequence[Text]]], titles: Sequence[str], width: int, is_old: bool
    ) -> None:
        self._frames = [frame for frame, _ in frames]
        self._below = [below for _, below in frames]
        self._titles, self.width, self._is_old = titles, width, is_old
        heights = (frame.height + len(below) + bool(titles) for frame, below in frames)
        self._tops = [*accumulate(heights, initial=0)]
        self.height = self._tops[-1]

    def line(self, y: int, left: int, right: int) -> Text:
        number, row = self._part_at(y)
        if row < 0:
            line = Text.assemble((self._titles[number], "bold"))[left:right]
        else:
            frame = self._frames[number]
            if row < frame.height:
                line = frame.line(row, left, right)
            else:
                line = self._below[number][row - frame.height][left:right]
        if self._is_old:
            line.stylize("dim")
        return line

    def op_at(self, x: int, y: int) -> tuple[int, int] | None:
        if not 0 <= y < self.height:
            return None
        number, row = self._part_at(y)
        op = self._frames[number].op_at(x, row) if row >= 0 else None
        return None if op is None else (number, op)

    def line_of(self, place: tuple[int, int]) -> int | None:
        """The line with an operation of a part; None where the window does not show it."""
        number, op = place
        position = self._frames[number].place_of(op)
        return None if position is None else self._tops[number] + bool(self._titles) + position[0]

    def share_at(self, x: int) -> float:
        """The share of the window to the left of the middle of a column."""
        frame = self._frames[0]
        return min(max((x + 0.5 - frame.left) / frame.columns, 0.0), 1.0)

    def _part_at(self, y: int) -> tuple[int, int]:
        """The part that has a line, and the line within its frame: -1 for its title."""
        number = next(i for i in range(len(self._frames)) if y < self._tops[i + 1])
        return number, y - self._tops[number] - bool(self._titles)
