"""The lanes of a timeline as rows, time from left to right, for any stretch of the clock at the cost of the
cells drawn: the ticks, a line for each depth of loops, branches and calls, the rows of lanes, and live memory
below, its peak and the limit marked."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from rich.style import Style
from rich.text import Text

from shardviz.render.lines import LineBuilder, printable, trimmed
from shardviz.render.palette import DIM, Palette
from shardviz.render.tables import records
from shardviz.render.times.timeline_rows import HIDDEN, TIGHT, LaneRow, TimelineRows, TimeWindow, ticks
from shardviz.timeline.program_timeline import MemoryReport, ProgramTimeline, TimedOp, TimeSpan
from shardviz.units import human_bytes, seconds

FULL, LESS, WAITING, UNKNOWN = "█", "▓", "░", "?"
"""Fill bars of matmuls and of all that moves, of other compute, and time that waits; an operation that nobody
can estimate."""
HEIGHTS = "▁▂▃▄▅▆▇█"
"""A cell with several operations: the share of its time in which one of them runs."""
ENDS = "▏▎▍▌▋▊▉"
"""The last cell of a bar, in eighths."""
FIGURED, FIGURES = 80, 20
"""Columns of a chart that has the times of a lane beside its name, and those that they take."""


class Gantt:
    """The stretch `window` of a timeline in `width` columns, a canvas. `chosen` is the user's operation,
    `related` are others to mark, `left` is the chart's first column, which charts above one another share."""

    def __init__(
        self,
        rows: TimelineRows,
        width: int,
        palette: Palette,
        window: TimeWindow,
        chosen: int | None = None,
        related: Collection[int] = (),
        left: int = 0,
    ) -> None:
        self.rows, self.width, self.palette, self.window = rows, width, palette, window
        self._timeline = rows.timeline
        self._styles = LaneStyles(rows.timeline, palette)
        self._names = lane_names(rows.timeline)
        self._figures = FIGURES if width >= FIGURED else 0
        self.left = left or first_column(rows.timeline, width)
        self.columns = max(width - self.left, 1)
        self._cell = window.seconds / self.columns
        self._marks: dict[int, list[tuple[int, str]]] = {}
        marked = [*((number, "◂") for number in related), *([] if chosen is None else [(chosen, "▸")])]
        for number, glyph in marked:
            if (place := self.place_of(number)) is not None:
                self._marks.setdefault(place[0], []).append((place[1], glyph))
        self._drawn: dict[int, Text] = {}

    @property
    def top(self) -> int:
        """The line of the first row of lanes."""
        return 1 + len(self.rows.spans)

    @property
    def height(self) -> int:
        return self.top + len(self.rows.rows)

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line, drawn when it is first asked for."""
        if y not in self._drawn:
            if y:
                self._drawn[y] = self._brackets(self.rows.spans[y - 1]) if y < self.top else self._row(y)
            else:
                line = LineBuilder(0, self.width)
                if self._figures:
                    line.put(self.left - FIGURES, f"{'busy':>8} {'exposed':>9}", DIM)
                for x, text in self._tick_columns:
                    line.put(x, "│" + text if x + 1 + len(text) <= self.width else "│", DIM)
                self._drawn[y] = line.text()
        return self._drawn[y][left:right]

    def column_of(self, time: float) -> int:
        """The column of a drawn time, which may lie outside the window."""
        return self.left + math.floor((time - self.window.start) / self._cell)

    def op_at(self, x: int, y: int) -> int | None:
        """The number of the operation that takes most of a cell; None where none is there."""
        index = y - self.top
        if not (0 <= index < len(self.rows.rows) and self.left <= x < self.width):
            return None
        row = self.rows.rows[index]
        start = self.window.start + (x - self.left) * self._cell
        if self.rows.is_first_of_lane(index):  # which has the marks of operations without an estimate
            starts, numbers = self.rows.unknown[row.lane]
            i = bisect_left(starts, start)
            if i < len(starts) and starts[i] < start + self._cell:
                return numbers[i]
        return row.longest(start, start + self._cell)

    def place_of(self, op: int) -> tuple[int, int, int] | None:
        """The line of an operation, its first column, and the one after its last; None outside the window."""
        timed = self._timeline.ops[op]
        row = self.rows.row_of.get(op)
        if row is None or timed.start >= self.window.end or timed.end < self.window.start:
            return None
        first = max(self.column_of(timed.start), self.left)
        last = min(max(self.column_of(timed.end - self._cell * TIGHT) + 1, first + 1), self.width)
        return self.top + row, min(first, self.width - 1), last

    @cached_property
    def _tick_columns(self) -> list[tuple[int, str]]:
        times = ticks(self.window, self.columns)
        columns = ((self.column_of(time + self._cell * TIGHT), text) for time, text in times)
        return [(x, text) for x, text in columns if self.left <= x < self.width]

    def _brackets(self, spans: list[TimeSpan]) -> Text:
        """``┌── ×32 while.5 ──┐`` above what it runs."""
        line = LineBuilder(0, self.width)
        index = bisect_right([span.end for span in spans], self.window.start)
        while index < len(spans) and spans[index].start < self.window.end:
            span = spans[index]
            index += 1
            first = max(self.column_of(span.start + self._cell / 2), self.left)
            last = min(self.column_of(span.end + self._cell / 2), self.width)
            if last <= first:
                continue
            opens, closes = span.start >= self.window.start, span.end <= self.window.end
            length = last - first
            text = span_text(span, length - 2)
            body = f" {text} " if text and len(text) + 4 <= length else text
            rest = length - len(body)
            drawn = "─" * (rest // 2) + body + "─" * (rest - rest // 2)
            if length > 1:
                drawn = ("┌" if opens else "─") + drawn[1:-1] + ("┐" if closes else "─")
            line.put(first, drawn, Style(bold=True) if span.kind == "loop" else DIM)
        return line.text()

    def _row(self, y: int) -> Text:
        index = y - self.top
        row = self.rows.rows[index]
        cells: dict[int, tuple[str, Style]] = {}
        pieces: list[tuple[int, str, Style]] = [*self.runs(row), *self._unknown_marks(row, index)]
        for x, piece, style in pieces:
            cells |= {at: (letter, style) for at, letter in enumerate(piece, x)}
        waits = self._timeline.lanes[row.lane].kind == "compute"
        grid = {x for x, _ in self._tick_columns}
        for x in range(self.left, self.width) if waits else grid:
            if x in cells:
                continue
            start = self.window.start + (x - self.left) * self._cell
            lane = self.rows.waited_for(start, start + self._cell) if waits else None
            if lane is not None:
                cells[x] = WAITING, self._styles.bar(lane)
            elif x in grid:
                cells[x] = "·", DIM
        cells |= {x: (glyph, Style(bold=True, reverse=True)) for x, glyph in self._marks.get(y, ())}
        line = LineBuilder(0, self.width)
        if self.rows.is_first_of_lane(index):
            name = self._names[row.lane]
            room = self.left - self._figures - 1
            line.put(0, name if len(name) <= room else name[: room - 1] + "…", self._styles.name(row.lane))
            if self._figures:
                busy, waited = self.rows.times.get(self._timeline.lanes[row.lane].name, ("", ""))
                line.put(self.left - FIGURES, f"{busy:>8}", Style())
                line.put(self.left - FIGURES + 8, f"{waited:>10}", DIM if waited == HIDDEN else Style())
        # Cells in a row that have one style are one piece.
        for (_, style), run in groupby(enumerate(sorted(cells)), lambda at: (at[1] - at[0], cells[at[1]][1])):
            columns = [x for _, x in run]
            line.put(columns[0], "".join(cells[x][0] for x in columns), style)
        return line.text()

    def _unknown_marks(self, row: LaneRow, index: int) -> Iterator[tuple[int, str, Style]]:
        starts = self.rows.unknown[row.lane][0] if self.rows.is_first_of_lane(index) else []
        i = bisect_left(starts, self.window.start)
        while i < len(starts) and starts[i] <= self.window.end:
            x = min(self.column_of(starts[i]), self.width - 1)
            yield x, UNKNOWN, Style(bold=True)
            # The next one that is in another cell.
            i = bisect_left(starts, self.window.start + (x - self.left + 1) * self._cell, i + 1)

    def runs(self, row: LaneRow) -> Iterator[tuple[int, str, Style]]:
        """Pieces for the operations of a row: bars where they fill cells, heights where several share one."""
        starts, ends, cell = row.starts, row.ends, self._cell
        tight, count = cell * TIGHT, len(row.starts)
        x = 0
        while x < self.columns:
            left = self.window.start + x * cell
            right = left + cell
            i = bisect_right(ends, left + tight)
            if i == count:
                return
            start, end = starts[i], ends[i]
            if start >= right - tight:
                x = max(x + 1, int((start - self.window.start) / cell + TIGHT))
                continue
            op = self._timeline.ops[row.ops[i]]
            style = self._styles.of(op)
            if start <= left + tight and end >= right - tight:
                stop = min(int((end - self.window.start) / cell + TIGHT), self.columns)
                stop = max(stop, x + 1)
                meets = i + 1 < count and starts[i + 1] - end < cell / 8
                ends_here = end - (self.window.start + stop * cell) < cell / 8 and stop < self.columns
                yield from self._bar(op, x, stop, style, meets and ends_here)
                x = stop
                continue
            last = bisect_left(starts, right, i) - 1
            share = row.covered(left, right) / cell
            if start < left + tight and last <= i + 1:
                # The end of a bar; if another begins in this cell, the blank between them tells them apart.
                eighths = round((end - left) / cell * 8)
                if eighths:
                    yield self.left + x, ENDS[min(eighths, 7) - 1], style.glyph
                elif last > i and ends[last] >= right - tight:
                    yield self.left + x, FULL, self._styles.of(self._timeline.ops[row.ops[last]]).glyph
            elif last == i and end >= right - tight:
                sizes = ((0.75, FULL), (0.375, "▐"), (0.0625, "▕"))
                if glyph := next((glyph for least, glyph in sizes if share >= least), ""):
                    yield self.left + x, glyph, style.glyph
            else:
                height = min(max(math.ceil(share * 8), 1), 8)
                those = range(i, last + 1) if last - i < 9 else range(i, i + 1)
                longest = max(those, key=lambda index: ends[index] - starts[index])
                glyphs = self._styles.of(self._timeline.ops[row.ops[longest]]).glyph
                yield self.left + x, HEIGHTS[height - 1], glyphs
            x += 1

    def _bar(
        self, op: TimedOp, first: int, stop: int, style: BarStyle, is_cut: bool
    ) -> Iterator[tuple[int, str, Style]]:
        x, length = self.left + first, stop - first
        if is_cut and length > 1:
            length -= 1
        name, room = printable(op.name), length - 2
        choices = (name, op.op) if op.op in name or name in op.op else (f"{op.op} {name}", op.op)
        label = next((text for text in choices if len(text) <= room), "") if room > 2 else ""
        if label:
            fill = style.fill if not self.palette.shown else " "
            yield x, f"{fill}{label}{fill * (length - 1 - len(label))}", style.bar
        else:
            yield x, style.fill * length, style.glyph
        if is_cut and stop - first > 1:
            yield x + length, ENDS[-1], style.glyph


def path_lines(chart: Gantt) -> list[Text]:
    """The critical path on a line, in the colours of its lanes; no line where one lane has all of it."""
    if not chart.rows.path.ops:
        return []
    line = LineBuilder(0, chart.width)
    line.put(0, "critical path" if chart.left > len("critical path") else "critical", Style(bold=True))
    for piece in chart.runs(chart.rows.path):
        line.put(*piece)
    return [line.text()]


def is_matmul(op: TimedOp) -> bool:
    return op.op in ("matmul", "dot", "convolution", "einsum")


class BarStyle:
    """The `fill` of a bar without colours, its style with its name in it, and that of its glyphs alone."""

    def __init__(self, fill: str, colour: str, ink: str, shown: bool) -> None:
        self.fill = FULL if shown else fill
        self.bar = Style(color=ink, bgcolor=colour) if shown else Style()
        self.glyph = Style(color=colour) if shown else Style()


class LaneStyles:
    """The styles of a timeline's bars: mesh axes have their colours, other lanes have one by what they do."""

    def __init__(self, timeline: ProgramTimeline, palette: Palette) -> None:
        self._lanes = timeline.lanes
        shown = palette.shown
        # A lane has the colour of its first mesh axis, or that of what it does.
        named = [(lane.name.partition(",")[0].strip(), lane) for lane in timeline.lanes]
        axes = tuple(dict.fromkeys(first for first, lane in named if lane.kind == "axis"))
        colours = [
            palette.axis_colour(axes, first) if lane.kind == "axis" else palette.lanes[lane.kind]
            for first, lane in named
        ]
        self._moving = [BarStyle(FULL, colour, palette.bar_ink, shown) for colour in colours]
        self._matmul = BarStyle(FULL, palette.lanes["matmul"], palette.bar_ink, shown)
        self._compute = BarStyle(LESS, palette.lanes["compute"], palette.bar_ink, shown)
        self.compute = (self._matmul, "matmul"), (self._compute, "other compute")

    def of(self, op: TimedOp) -> BarStyle:
        if self._lanes[op.lane].kind == "compute":
            return self._matmul if is_matmul(op) else self._compute
        return self._moving[op.lane]

    def bar(self, lane: int) -> Style:
        return self._moving[lane].glyph

    def name(self, lane: int) -> Style:
        """The style of a lane's name: that of a mesh axis has the axis's colour."""
        if self._lanes[lane].kind == "axis":
            return Style.combine([self._moving[lane].glyph, Style(bold=True)])
        return Style(bold=True)


def first_column(timeline: ProgramTimeline, width: int) -> int:
    """The first column of a timeline's chart of that width, after the names of its lanes."""
    longest = max((len(name) for name in lane_names(timeline)), default=0)
    if timeline.memory is not None and timeline.memory.curve:
        longest = max(longest, len("15.8 GiB"))
    figures = FIGURES if width >= FIGURED else 0
    return min(max(longest, 5), 14, max(width // 4, 5)) + 1 + figures


def lane_names(timeline: ProgramTimeline) -> list[str]:
    return [printable(lane.name) for lane in timeline.lanes]


def span_text(span: TimeSpan, room: int) -> str:
    """``×32 while.5``, ``×?`` for a loop of unknown length, ``branch 1``; as much as has room."""
    name = printable(span.name)
    if span.kind != "loop":
        return name if len(name) <= room else ""
    count = "×?" if span.count is None else f"×{span.count:,}"
    return next((text for text in (f"{count} {name}", count) if len(text) <= room), "")


def legend(rows: TimelineRows, width: int, palette: Palette) -> list[Text]:
    """The meaning of the glyphs, as far as this timeline can have them."""
    timeline = rows.timeline
    kinds = {lane.kind for lane in timeline.lanes}
    styles = LaneStyles(timeline, palette)
    entries: list[tuple[str, Style, str]] = []
    if "compute" in kinds:
        entries += [(style.fill, style.glyph, words) for style, words in styles.compute]
        if len(kinds) > 1:
            entries.append((WAITING, Style(), "the device waits"))
    entries.append((HEIGHTS[2] + HEIGHTS[5], Style(), "busy for part of the cell"))
    if any(starts for starts, _ in rows.unknown):
        entries.append((UNKNOWN, Style(bold=True), "no estimate"))
    if any(span.kind == "loop" for span in timeline.spans):
        entries.append(("┌×N┐", Style(), "a loop, drawn once"))
    cells = [Text.assemble((glyph, style), (f" {words}", DIM)) for glyph, style, words in entries]
    return records([cells], width)


def most_bytes(memory: MemoryReport, start: float, end: float) -> int:
    """The most live bytes between two times; 0 before the curve begins."""
    first = max(bisect_right(memory.curve, start, key=itemgetter(0)) - 1, 0)
    stop = bisect_left(memory.curve, end, key=itemgetter(0))
    return max((size for _, size in memory.curve[first:stop]), default=0)


def memory_lines(chart: Gantt, height: int = 4) -> list[Text]:
    """The peak's line, then `height` lines of the curve, in the columns of the chart; no curve, no line."""
    memory = chart.rows.timeline.memory
    if memory is None or not memory.curve:
        return []
    limit, top = memory.limit_bytes, max(memory.peak_bytes, *(size for _, size in memory.curve), 1)
    # A larger limit would leave nothing to see.
    if limit is not None and limit <= 3 * top:
        top = max(limit, top)
    cell = chart.window.seconds / chart.columns
    end = chart.rows.timeline.drawn_seconds
    starts = [chart.window.start + x * cell for x in range(chart.columns)]
    sizes = [most_bytes(memory, start, start + cell) if start < end else 0 for start in starts]
    eighths = [min(-(-size * height * 8 // top), height * 8) for size in sizes]
    return [
        _peak_line(memory, chart),
        *(_level_line(chart, eighths, row, height, top, limit) for row in reversed(range(height))),
    ]


def _peak_line(memory: MemoryReport, chart: Gantt) -> Text:
    line = LineBuilder(0, chart.width)
    line.put(0, "memory", Style(bold=True))
    x = chart.column_of(memory.peak_at)
    size = f"peak {human_bytes(memory.peak_bytes)}"
    texts = (f"{size} at {seconds(memory.peak_at)}", size, "")
    bold = Style(bold=True)
    if chart.left <= x < chart.width:
        room = max(chart.width - x, x - chart.left + 1) - 2
        text = next(text for text in texts if len(text) <= room or not text)
        if x + 2 + len(text) <= chart.width:
            line.put(x, f"▼ {text}", bold)
        else:
            line.put(x - 1 - len(text), f"{text} ▼", bold)
    else:
        text = next(text for text in texts if len(text) + 2 <= chart.columns or not text)
        before = x < chart.left
        index = chart.left if before else chart.width - len(text) - 2
        line.put(index, f"← {text}" if before else f"{text} →", DIM)
    return line.text()


def _level_line(chart: Gantt, eighths: list[int], row: int, height: int, top: int, limit: int | None) -> Text:
    """The line that shows heights from `row` up to `row + 1`, of `height`, the upper edge at `top` bytes."""
    line = LineBuilder(0, chart.width)
    style = Style(color=chart.palette.lanes["memory"]) if chart.palette.shown else Style()
    is_limit = limit is not None and limit <= top and min(limit * height // top, height - 1) == row
    text = f" {human_bytes(limit)} allowed" if is_limit and limit is not None else ""
    free = sum(filled <= row * 8 for filled in eighths[-len(text) :]) == len(text) if text else False
    for x, filled in enumerate(eighths):
        if free and x >= chart.columns - len(text):
            break
        level = min(filled - row * 8, 8)
        if level > 0:
            line.put(chart.left + x, HEIGHTS[level - 1], style)
        elif is_limit:
            line.put(chart.left + x, "┄", DIM)
    if free:
        line.put(chart.width - len(text), text, DIM)
    return line.text()


def picture_lines(
    timeline: ProgramTimeline,
    width: int,
    palette: Palette,
    limit: float = 0.0,
    left: int = 0,
    with_legend: bool = True,
) -> list[Text]:
    """The chart, from column `left` and up to `limit` drawn seconds at least, the memory, and the legend."""
    rows = TimelineRows(timeline)
    if not rows.row_of:
        return []
    window = TimeWindow.whole(max(limit, timeline.drawn_seconds))
    chart = Gantt(rows, width, palette, window, left=left)
    drawn = [chart.line(y, 0, width) for y in range(chart.height)]
    drawn += [*path_lines(chart), *memory_lines(chart)]
    lines = [trimmed(line, palette) for line in drawn]
    return [*lines, *(legend(rows, width, palette) if with_legend else ())]


def stacked_pictures(
    tellers: Sequence[tuple[str, ProgramTimeline]], width: int, palette: Palette
) -> list[Text]:
    """The charts of named timelines below one another, on one scale."""
    limit = max(timeline.drawn_seconds for _, timeline in tellers)
    left = max(first_column(timeline, width) for _, timeline in tellers)
    lines = []
    for number, (name, timeline) in enumerate(tellers, 1):
        lines += [Text(), Text(name, "bold")]
        lines += picture_lines(timeline, width, palette, limit, left, with_legend=number == len(tellers))
    return lines
