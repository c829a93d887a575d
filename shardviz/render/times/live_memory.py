"""The memory of a program in words: whether it fits, its parts against the limit, its largest buffers."""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text

from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.tables import Cell, as_text, columns, giving_way, records
from shardviz.render.times.gantt import FULL, LESS, WAITING
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import human_bytes, may_fit_words, seconds

BAR = 24
"""Columns of the bars in tables at most."""
NEGLIGIBLE = 0.001
"""Of a critical path, or of the peak memory; what takes less of it is not listed."""
LISTED = 6
"""Operations without an estimate, and buffers, that are listed."""


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
