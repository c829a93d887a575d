"""Live memory under a chart of the same stretch of the clock, its peak and the limit marked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from rich.style import Style
from rich.text import Text

from shardviz.render.canvas import LineBuilder
from shardviz.render.palette import DIM
from shardviz.render.times.gantt import HEIGHTS, Gantt
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import estimated_seconds, human_bytes

PEAK = "▼"
LIMIT = "┄"
NEAR = 3
"""A limit of up to so many times the peak is drawn; a larger one would leave nothing to see."""
TALL = 4
"""Lines of the curve, unless another height is asked for."""


class MemoryCurve:
    """The curve of a report, prepared once: the most bytes of any stretch are found by halves."""

    def __init__(self, memory: MemoryReport) -> None:
        self.memory = memory
        self._times = [time for time, _ in memory.curve]
        self._levels = [[size for _, size in memory.curve]]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            self._levels.append([max(below[i : i + 2]) for i in range(0, len(below), 2)])

    def most(self, start: float, end: float) -> int:
        """The most live bytes between two times; 0 before the curve begins."""
        first, stop = max(bisect_right(self._times, start) - 1, 0), bisect_left(self._times, end)
        found = 0
        for level in self._levels:
            if first >= stop:
                break
            if first % 2:
                found = max(found, level[first])
                first += 1
            if stop % 2:
                stop -= 1
                found = max(found, level[stop])
            first, stop = first // 2, stop // 2
        return found

    @property
    def top(self) -> int:
        """Bytes at the upper edge of the picture."""
        limit, peak = self.memory.limit_bytes, max(self.memory.peak_bytes, *self._levels[0], 1)
        return max(limit, peak) if limit is not None and limit <= NEAR * peak else peak


def memory_lines(curve: MemoryCurve, chart: Gantt, height: int = TALL) -> list[Text]:
    """The peak's line, then `height` lines of the curve, in the columns of the chart; no curve, no line."""
    if not curve.memory.curve:
        return []
    cell = chart.window.seconds / chart.columns
    end = chart.rows.timeline.drawn_seconds
    starts = [chart.window.start + x * cell for x in range(chart.columns)]
    sizes = [curve.most(start, start + cell) if start < end else 0 for start in starts]
    eighths = [min(-(-size * height * 8 // curve.top), height * 8) for size in sizes]
    colour = chart.palette.lanes["memory"]
    style = Style(color=colour) if chart.palette.shown else Style()
    return [
        _peak_line(curve.memory, chart),
        *(_line(curve, chart, eighths, row, height, style) for row in reversed(range(height))),
    ]


def _peak_line(memory: MemoryReport, chart: Gantt) -> Text:
    line = LineBuilder(0, chart.width)
    line.put(0, "memory", Style(bold=True))
    x = chart.column_of(memory.peak_at)
    size = f"peak {human_bytes(memory.peak_bytes)}"
    texts = (f"{size} at {estimated_seconds(memory.peak_at)}", size, "")
    bold = Style(bold=True)
    if chart.left <= x < chart.width:
        room = max(chart.width - x, x - chart.left + 1) - 2
        text = next(each for each in texts if len(each) <= room or not each)
        if x + 2 + len(text) <= chart.width:
            line.put(x, f"{PEAK} {text}", bold)
        else:
            line.put(x - 1 - len(text), f"{text} {PEAK}", bold)
    else:
        text = next(each for each in texts if len(each) + 2 <= chart.columns or not each)
        before = x < chart.left
        place = chart.left if before else chart.width - len(text) - 2
        line.put(place, f"← {text}" if before else f"{text} →", DIM)
    return line.text()


def _line(curve: MemoryCurve, chart: Gantt, eighths: list[int], row: int, height: int, style: Style) -> Text:
    """The line that shows heights from `row` up to `row + 1`, of `height`."""
    line = LineBuilder(0, chart.width)
    limit = curve.memory.limit_bytes
    is_limit = (
        limit is not None and limit <= curve.top and min(limit * height // curve.top, height - 1) == row
    )
    if row == height - 1:
        line.put(0, human_bytes(curve.top)[: chart.left - 1], DIM)
    elif not row:
        line.put(0, "0", DIM)
    text = f" {human_bytes(limit)} allowed" if is_limit and limit is not None else ""
    free = sum(each <= row * 8 for each in eighths[-len(text) :]) == len(text) if text else False
    for x, each in enumerate(eighths):
        if free and x >= chart.columns - len(text):
            break
        level = min(each - row * 8, 8)
        if level > 0:
            line.put(chart.left + x, HEIGHTS[level - 1], style)
        elif is_limit:
            line.put(chart.left + x, LIMIT, DIM)
    if free:
        line.put(chart.width - len(text), text, DIM)
    return line.text()
