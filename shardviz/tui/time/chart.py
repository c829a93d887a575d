"""The lanes of one timeline, or of two on one scale, in a window of time that zooms and pans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from rich.text import Text
from textual import events, on
from textual.message import Message

from shardviz.render.palette import Palette
from shardviz.render.times.gantt import Gantt, first_column, memory_lines, path_lines
from shardviz.render.times.timeline_rows import TimelineRows, TimeWindow
from shardviz.timeline.program_timeline import LaneIndex, ProgramTimeline
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.units import seconds as human_seconds

ZOOM = 0.5
"""The share of the window that is left when zooming in by one step."""
PAN = 0.25


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


class TimeChart(LinesView, inherit_bindings=False):
    """One or two timelines above one another; the keys are the pane's. `place` is the number of the part and
    the operation that is selected in it, None where nothing is."""

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
        self._saving = -1
        """The number of the saving whose operation was selected last; -1 before any was."""
        self._is_old = False
        self._palette: Palette | None = None

    @property
    def part(self) -> ChartPart:
        return self.parts[self.place[0] if self.place else 0]

    @property
    def selected(self) -> int | None:
        return self.place[1] if self.place else None

    def show_parts(self, parts: Sequence[ChartPart], palette: Palette, is_old: bool) -> None:
        """Show one or two parts. The window stays where their length stays, else it is all of the time; the
        operation of the same name stays selected."""
        if [part.timeline for part in parts] != [part.timeline for part in self.parts]:
            name = self.part.timeline.ops[self.place[1]].name if self.place else ""
            number = min(self.place[0], len(parts) - 1) if self.place else 0
            self.parts = parts
            limit = max((part.timeline.drawn_seconds for part in parts), default=0.0)
            if limit != self.window.limit:
                self.window = TimeWindow.whole(limit)
            self.place, self._saving = None, -1
            if parts:
                kept = parts[number].index.named(name)
                op = first_choice(parts[number].timeline) if kept is None else kept
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

    def follow(self) -> None:
        if self.place is None:
            return
        op = self.part.index.waited_for(self.place[1])
        self.select(op)
        if op is None:
            said = "The compiler's scheduler does not report dependencies."
            if self.part.timeline.critical_path:
                said = "It waited for nothing: it was ready at the start."
            self.notify(said)

    def select_named(self, name: str) -> None:
        """Select the operation of that name in the upper timeline, where it takes time."""
        op = self.parts[0].index.named(name)
        if op is None:
            self.notify(f"{name} takes no time by itself here.", markup=False)
        self.select(op, 0)

    def saving(self, step: int) -> None:
        """Select what would save most, then what the next saving, or the one before, is of."""
        savings = self.parts[0].timeline.savings if self.parts else ()
        if savings:
            self._saving = (self._saving + step) % len(savings) if self._saving >= 0 else 0
            self.select(savings[self._saving].op, 0)

    def on_lane_beside(self, step: int) -> None:
        """Select what runs at the same time on the next lane, which may be that of the other timeline."""
        if self.place is None:
            return
        number, op = self.place
        beside = self.part.index.on_lane_beside(op, step)
        if beside is None and 0 <= number + step < len(self.parts):
            timed = self.part.timeline.ops[op]
            number += step
            beside = self.parts[number].index.edge(step, (timed.start + timed.end) / 2)
        self.select(beside, number)

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
        """The place of the selected operation in the window; the middle where it is not seen."""
        if self.selected is None:
            return 0.5
        op, window = self.part.timeline.ops[self.selected], self.window
        start, end = max(op.start, window.start), min(op.end, window.end)
        return ((start + end) / 2 - window.start) / window.seconds if start <= end else 0.5

    @on(events.Resize)
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

    def on_lines_view_clicked(self, event: LinesView.Clicked) -> None:
        if isinstance(self.canvas, StackedCharts):
            found = self.canvas.op_at(event.column, event.line)
            if found is not None:
                self.select(found[1], found[0])
                if event.is_double:
                    self.post_message(self.Opened())

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        event.prevent_default()
        if self.parts and isinstance(self.canvas, StackedCharts):
            self.zoom(step, self.canvas.share_at(event.x + round(self.scroll_x)))


def first_choice(timeline: ProgramTimeline) -> int | None:
    """The operation with which to begin: what would save most, or the longest; None where there is none."""
    if timeline.savings:
        return timeline.savings[0].op
    ops = timeline.ops
    return max(range(len(ops)), key=lambda number: ops[number].end - ops[number].start, default=None)
