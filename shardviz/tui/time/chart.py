"""The lanes of one timeline, or of two on one scale, in a window of time that zooms and pans."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.message import Message

from shardviz.render.times.gantt import Gantt, first_column, path_lines
from shardviz.render.times.live_memory import memory_lines
from shardviz.render.times.timeline_rows import TimelineRows, TimeWindow
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.units import seconds as human_seconds

if TYPE_CHECKING:
    from shardviz.render.palette import Palette
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

        index = bisect_right(self._starts[lane], time)
        return min(self._lanes[lane][max(index - 2, 0) : index + 1], key=away, default=None)

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
        total = f"{human_seconds(self.timeline.seconds)} on {self.timeline.machine}"
        return total if self.timeline.machine.startswith(self.name) else f"{self.name}  {total}"


class StackedCharts:
    """A canvas: frames above one another, each with the lines that stand below it, several under titles."""

    def __init__(
        self,
        frames: Sequence[tuple[Gantt, Sequence[Text]]],
        titles: Sequence[str],
        width: int,
        is_old: bool,
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
        """The part and the operation under a cell."""
        if not 0 <= y < self.height:
            return None
        number, row = self._part_at(y)
        op = self._frames[number].op_at(x, row) if row >= 0 else None
        return None if op is None else (number, op)

    def line_of(self, place: tuple[int, int]) -> int | None:
        """The line with an operation of a part; None where the window does not show it."""
        number, op = place
        found = self._frames[number].place_of(op)
        return None if found is None else self._tops[number] + bool(self._titles) + found[0]

    def share_at(self, x: int) -> float:
        """The share of the window to the left of the middle of a column."""
        frame = self._frames[0]
        return min(max((x + 0.5 - frame.left) / frame.columns, 0.0), 1.0)

    def _part_at(self, y: int) -> tuple[int, int]:
        """The part that has a line, and the line within its frame: -1 for its title."""
        number = next(i for i in range(len(self._frames)) if y < self._tops[i + 1])
        return number, y - self._tops[number] - bool(self._titles)


ZOOM = 0.5
"""The share of the window that is left when zooming in by one step."""
PAN = 0.25


class TimeChart(LinesView, inherit_bindings=False):
    """One or two timelines above one another; the keys are the pane's.

    `place` is the number of the part and the operation that is selected in it, None where nothing is.
    """

    class Selected(Message):
        """Another operation is selected."""

    class Opened(Message):
        """The selected operation was clicked twice."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: Sequence[ChartPart] = ()
        self.window = TimeWindow.whole(0.0)
        self.place: tuple[int, int] | None = None
        self.with_memory = False
        self._is_old = False
        self._palette: Palette | None = None

    @property
    def part(self) -> ChartPart:
        """The part that has the selected operation."""
        return self.parts[self.place[0] if self.place else 0]

    @property
    def selected(self) -> int | None:
        """The number of the selected operation in its part."""
        return self.place[1] if self.place else None

    def show_parts(self, parts: Sequence[ChartPart], palette: Palette, is_old: bool) -> None:
        """Show one or two parts. The window stays where their length stays; else it is all of the time.

        The operation of the same name stays selected, where there is one.
        """
        if [part.timeline for part in parts] != [part.timeline for part in self.parts]:
            name = self.part.timeline.ops[self.place[1]].name if self.place else ""
            number = min(self.place[0], len(parts) - 1) if self.place else 0
            self.parts = parts
            limit = max((part.timeline.drawn_seconds for part in parts), default=0.0)
            if limit != self.window.limit:
                self.window = TimeWindow.whole(limit)
            self.place = None
            if parts:
                found = parts[number].index.named(name)
                op = first_choice(parts[number].timeline) if found is None else found
                self.place = None if op is None else (number, op)
            self.post_message(self.Selected())
        self.parts, self._palette, self._is_old = parts, palette, is_old
        self.draw()

    def show_notice(self, lines: Sequence[Text]) -> None:
        self.parts, self.place = (), None
        self.show(TextLines(lines))

    def select(self, op: int | None, part: int | None = None) -> None:
        """Select an operation, and move the window where nothing of it is seen, or not all that could be."""
        if op is None or not self.parts:
            return
        number = part if part is not None else self.place[0] if self.place else 0
        self.place = number, op
        timed, window = self.parts[number].timeline.ops[op], self.window
        is_longer = timed.end - timed.start > window.seconds
        if not is_longer or timed.end < window.start or timed.start > window.end:
            self.window = window.containing(timed.start, timed.end)
        self.draw()
        self._bring_in()
        self.post_message(self.Selected())

    def beside(self, step: int) -> None:
        if self.selected is not None:
            self.select(self.part.index.beside(self.selected, step))

    def at_end(self, side: int) -> None:
        if self.selected is not None:
            self.select(self.part.index.at_end(self.selected, side))

    def on_lane_beside(self, step: int) -> None:
        """Select what runs at the same time on the next lane, which may be that of the other timeline."""
        if self.place is None:
            return
        number, op = self.place
        found = self.part.index.on_lane_beside(op, step)
        if found is None and 0 <= number + step < len(self.parts):
            timed = self.part.timeline.ops[op]
            number += step
            found = self.parts[number].index.edge(step, (timed.start + timed.end) / 2)
        self.select(found, number)

    def zoom(self, steps: int, share: float | None = None) -> None:
        """Zoom in, or out for negative steps, around a share of the window or the selected operation."""
        self.window = self.window.zoom(ZOOM**steps, self._share if share is None else share)
        self.draw()

    def zoom_all(self) -> None:
        self.window = TimeWindow.whole(self.window.limit)
        self.draw()

    def pan(self, steps: float) -> None:
        self.window = self.window.pan(PAN * steps)
        self.draw()

    @property
    def _share(self) -> float:
        """Where in the window the selected operation is; the middle where it is not seen."""
        if self.selected is None:
            return 0.5
        op, window = self.part.timeline.ops[self.selected], self.window
        start, end = max(op.start, window.start), min(op.end, window.end)
        return ((start + end) / 2 - window.start) / window.seconds if start <= end else 0.5

    def draw(self) -> None:
        """Draw the window anew: only the lines that are seen cost anything."""
        width = self.size.width
        if not width or self._palette is None or not self.parts:
            return
        left = max((first_column(part.timeline, width) for part in self.parts), default=0)
        frames = []
        for number, part in enumerate(self.parts):
            chosen = self.place[1] if self.place is not None and self.place[0] == number else None
            related: Sequence[int] = part.timeline.ops[chosen].after if chosen is not None else ()
            frame = Gantt(part.rows, width, self._palette, self.window, chosen, related, left)
            below = [*path_lines(frame), *(memory_lines(frame) if self.with_memory else ())]
            frames.append((frame, below))
        titles = [part.title for part in self.parts]
        self.show(StackedCharts(frames, titles if len(frames) > 1 else [], width, self._is_old))

    def _bring_in(self) -> None:
        if not isinstance(self.canvas, StackedCharts):
            return
        line = self.canvas.line_of(self.place) if self.place else None
        if line is not None:
            top, height = round(self.scroll_y), self.size.height
            top = min(max(top, line + 1 - height), line if line >= height else 0)
            self.scroll_to(y=top, animate=False, immediate=True)

    def on_resize(self) -> None:
        self.draw()

    def _spot(self, event: events.MouseEvent) -> tuple[int, int]:
        return event.x + round(self.scroll_x), event.y + round(self.scroll_y)

    def on_click(self, event: events.Click) -> None:
        if isinstance(self.canvas, StackedCharts):
            found = self.canvas.op_at(*self._spot(event))
            if found is not None:
                self.select(found[1], found[0])
                if event.chain > 1:
                    self.post_message(self.Opened())

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        event.prevent_default()
        if self.parts and isinstance(self.canvas, StackedCharts):
            self.zoom(step, self.canvas.share_at(self._spot(event)[0]))


def first_choice(timeline: ProgramTimeline) -> int | None:
    """The operation with which to begin: what would save most, or the longest; None where there is none."""
    if timeline.savings:
        return timeline.savings[0].op
    ops = timeline.ops
    return max(range(len(ops)), key=lambda each: ops[each].end - ops[each].start, default=None)
