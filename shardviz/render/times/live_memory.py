"""Live memory under a chart of the same stretch of the clock, its peak and the limit marked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from operator import itemgetter

from rich.style import Style
from rich.text import Text

from shardviz.render.lines import LineBuilder, sentence
from shardviz.render.palette import DIM, Palette
from shardviz.render.tables import Cell, as_text, columns, giving_way, records
from shardviz.render.times.gantt import FULL, HEIGHTS, LESS, WAITING, Gantt
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import human_bytes, may_fit_words, seconds

BAR = 24
"""Columns of the bars in tables at most."""
NEGLIGIBLE = 0.001
"""Of a critical path, or of the peak memory; what takes less of it is not listed."""
LISTED = 6
"""Operations without an estimate, and buffers, that are listed."""


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
        *(_line(chart, eighths, row, height, top, limit) for row in reversed(range(height))),
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


def _line(chart: Gantt, eighths: list[int], row: int, height: int, top: int, limit: int | None) -> Text:
    """The line that shows heights from `row` up to `row + 1`, of `height`, the upper edge at `top` bytes."""
    line = LineBuilder(0, chart.width)
    style = Style(color=chart.palette.lanes["memory"]) if chart.palette.shown else Style()
    is_limit = limit is not None and limit <= top and min(limit * height // top, height - 1) == row
    if row == height - 1:
        line.put(0, human_bytes(top)[: chart.left - 1], DIM)
    elif not row:
        line.put(0, "0", DIM)
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


def misfit_lines(memory: MemoryReport, width: int) -> list[Text]:
    """A program that does not fit, by how much, and the largest of what holds it, or one that may not fit."""
    if not memory.over_bytes or memory.limit_bytes is None:
        may = may_fit_words(memory.peak_bytes, memory.allocated_bytes, memory.limit_bytes)
        return [*sentence(may, width, lead="? "), Text()] if may else []
    words = (
        f"{human_bytes(memory.peak_bytes)} needed, {human_bytes(memory.limit_bytes)} allowed: "
        f"{human_bytes(memory.over_bytes)} too much"
    )
    held = [f"{buffer.shape} {human_bytes(buffer.bytes)}" for buffer in memory.buffers[:3]]
    words += f"; the largest at the peak: {', '.join(held)}" if held else ""
    return [*sentence(words, width, lead="✗ does not fit: "), Text()]


def memory_report_lines(memory: MemoryReport, width: int, palette: Palette) -> list[Text]:
    """Arguments, temporaries and outputs as a bar against the limit, then the largest buffers."""
    limit = memory.limit_bytes
    against = "" if limit is None else f" of {human_bytes(limit)} allowed"
    by = "the compiler's own figures" if memory.by == "compiler" else "estimated from program order"
    words = f"{human_bytes(memory.peak_bytes)}{against}, {by}"
    if memory.order:
        # The instruction at whose time the most memory is live, and when on the drawn clock that is.
        name, _ = max(memory.order, key=lambda entry: entry[1])
        when = f", at {seconds(memory.peak_at)}" if memory.curve and memory.peak_at else ""
        words += f"; when {name} runs{when}"
    lines = sentence(words, width, lead="peak memory: ")
    outputs = max(memory.output_bytes - memory.alias_bytes, 0)
    lanes = ("copy", "memory", "network")
    styles = [Style(color=palette.lanes[lane] if palette.shown else None) for lane in lanes]
    sizes = memory.argument_bytes, memory.temporary_bytes, outputs
    parts = [*zip((FULL, LESS, "▒"), styles, ("arguments", "temporaries", "outputs"), sizes, strict=True)]
    used = sum(size for *_, size in parts)
    # Against a limit that leaves nothing of them to see, the parts are shown among themselves.
    limit = None if limit is not None and used * BAR < limit else limit
    whole = max(used, limit or 0, 1)
    bar, columns_left = Text("  "), min(width - 4, 2 * BAR)
    room = columns_left
    for glyph, style, _, size in parts:
        length = min(round(size / whole * room), columns_left)
        bar.append(glyph * length, style)
        columns_left -= length
    if limit is not None:
        bar.append(WAITING * columns_left, "dim")
    told = [
        Text.assemble((glyph, style), f" {name} {human_bytes(size)}")
        for glyph, style, name, size in parts
        if size
    ]
    if memory.alias_bytes:
        told.append(Text(f"{human_bytes(memory.alias_bytes)} of outputs reuse donated buffers"))
    lines += [bar] * bool(used)
    if limit is not None and used > limit:
        words = f"↑ {human_bytes(limit)} allowed"
        at = min(2 + round(limit / whole * room), width - len(words))
        lines.append(Text(" " * at + words, "bold"))
    lines += records([told], width, 2) if told else []
    return lines + buffer_lines(memory, width)


def buffer_lines(memory: MemoryReport, width: int) -> list[Text]:
    """The largest buffers at the peak, with their shapes, their source lines and how long they live."""
    rows: list[list[Cell]] = []
    shown = [buffer for buffer in memory.buffers if buffer.bytes >= memory.peak_bytes * NEGLIGIBLE]
    for buffer in shown[:LISTED]:
        lives = ""
        if buffer.start is not None and buffer.end is not None:
            end = seconds(buffer.end)
            lives = f"{seconds(buffer.start)} to {end}" if buffer.start else f"to {end}"
        elif buffer.last:
            # Without a clock: by the instructions, from its own on.
            since = f"{buffer.first} " if buffer.first not in ("", buffer.name) else ""
            lives = f"{since}to {buffer.last}"
        # Of a file its name is enough; an operation's name stays whole.
        source = "" if buffer.source == buffer.name else re.sub(r".*/([^/]+:\d+)", r"\1", buffer.source)
        cells = human_bytes(buffer.bytes), buffer.name, buffer.kind, buffer.shape
        rows.append([*cells, lives, (source, "dim")])
    if not rows:
        return []
    head = [">bytes", "largest buffers", "", "shape", "lives", "source"]
    for column in (4, 5):
        if not any(as_text(row[column]) for row in rows):
            head[column] = ""
    whole = columns(rows, width, 2, head, giving_way("", "lives"))
    return whole or [Text("  largest buffers", "bold"), *records(rows, width, 4)]
