"""Timelines as one SVG picture of shapes, which any viewer scales, and as a page around it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from html import escape

from shardviz.errors import plural
from shardviz.forms.form import one_line
from shardviz.render.exports.html import PAGE as PAGE_STYLE
from shardviz.render.exports.html import Styles, section_html, whole_page
from shardviz.render.exports.sections import WIDTH as COLUMNS
from shardviz.render.exports.sections import Section
from shardviz.render.palette import TRUECOLOR, Palette
from shardviz.render.times.gantt import axis_names, bar_label, first_axis, is_matmul, lane_names, span_text
from shardviz.render.times.memory_curve import NEAR, MemoryCurve
from shardviz.render.times.report import cause_lines, percent, total_lines
from shardviz.render.times.timeline_rows import LaneRow, TimelineRows
from shardviz.render.times.window import TimeWindow, ticks
from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp, TimeSpan
from shardviz.units import estimated_seconds, human_bytes

WIDTH = 1280
EDGE, NAMES = 28, 104
"""Pixels at the edges of the picture, and of the lanes' names."""
ROW, GAP, BRACKET, CURVE = 26, 6, 20, 72
"""Heights of a row, of the space between lanes, of a row of loops, and of the curve of memory."""
LETTER = 7.3
"""Width of a character of 12 pixels, at most."""
PAGE, TEXT, DIMMED, LINE = "#11121a", "#d6dae8", "#8b8fa3", "#2c2f40"

STYLE = f"""
svg {{ max-width: 100%; height: auto; }}
text {{ font: 12px "Inter", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }}
.title {{ font-size: 20px; font-weight: bold; }}
.total {{ font-size: 14px; fill: {DIMMED}; }}
.lane {{ font-weight: bold; text-anchor: end; }}
.tick {{ fill: {DIMMED}; font-size: 11px; }}
.grid {{ stroke: {LINE}; stroke-width: 1; }}
.in {{ font-size: 11.5px; fill: {TRUECOLOR.ink}; }}
.dim {{ fill: {DIMMED}; font-size: 11px; }}
.over {{ stroke: {PAGE}; stroke-width: 4px; paint-order: stroke; font-weight: bold; }}
.loop {{ fill: none; stroke: {DIMMED}; stroke-width: 1.2; }}
"""


def timeline_svg(timelines: Sequence[ProgramTimeline], title: str = "", palette: Palette = TRUECOLOR) -> str:
    """One SVG file of timelines below one another on one scale."""
    return _picture(timelines, title, palette, f"<style>{STYLE}</style>\n")


def timeline_html(timelines: Sequence[ProgramTimeline], title: str, command: str = "") -> str:
    """One HTML file: the picture, in which a bar under the pointer tells its operation, then all that there
    is to say of each timeline. Raises `QuestionError` for what is too long."""
    styles = Styles()
    sections = [
        Section(
            f"{timeline.title} on {timeline.machine}",
            [*total_lines(timeline, COLUMNS, TRUECOLOR), *cause_lines(timeline, COLUMNS, TRUECOLOR)],
        )
        for timeline in timelines
    ]
    body = [_picture(timelines, title, TRUECOLOR)]
    body += [section_html(section, number, styles) for number, section in enumerate(sections)]
    hint = "write it as a trace, which https://ui.perfetto.dev opens"
    return whole_page(title, command, PAGE_STYLE + STYLE + styles.css(), "", body, hint)


def _picture(timelines: Sequence[ProgramTimeline], title: str, palette: Palette, style: str = "") -> str:
    """The SVG element; a page has its style elsewhere."""
    limit = max(each.drawn_seconds for each in timelines)
    y = float(EDGE)
    parts: list[str] = []
    for number, timeline in enumerate(timelines):
        chart = _Chart(timeline, limit, palette, number)
        parts += chart.draw(y)
        y = chart.bottom + EDGE
    height = math.ceil(y)
    title = one_line(title or " and ".join(each.title for each in timelines))
    said = "; ".join(one_line(_total(each)) for each in timelines)
    body = "\n".join(parts)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" \
role="img" aria-label="{escape(title)}" fill="{TEXT}">
<title>{escape(title)}</title>
<desc>{escape(said)}</desc>
{style}<rect width="{WIDTH}" height="{height}" fill="{PAGE}"/>
{body}
</svg>
"""


def _total(timeline: ProgramTimeline) -> str:
    """``108 ms: 83 % compute, 15 % waiting for Y; 61 % of the peak FLOP/s``."""
    total = timeline.seconds or 1.0
    parts = [f"{percent(timeline.compute_seconds / total)} compute"]
    parts += [
        f"{percent(waits / total)} waiting for {name}" for name, waits in timeline.exposed_seconds if waits
    ]
    parts += [f"{percent(timeline.idle_seconds / total)} idle"] * bool(timeline.idle_seconds)
    whole = "in all"
    if timeline.unknown:
        whole = f"without {plural(len(timeline.unknown), 'operation')} of which there is no estimate"
    said = f"{estimated_seconds(timeline.seconds)} {whole}: {', '.join(parts)}"
    if timeline.utilisation is not None:
        said += f"; {percent(timeline.utilisation)} of the peak FLOP/s"
    return said


class _Chart:
    """The picture of one timeline, `limit` drawn seconds wide; `bottom` is where it ends."""

    def __init__(self, timeline: ProgramTimeline, limit: float, palette: Palette, number: int) -> None:
        self._timeline, self._palette, self._number = timeline, palette, number
        self._rows = TimelineRows(timeline)
        self._window = TimeWindow.whole(limit)
        names = lane_names(timeline)
        self._left = EDGE + max(NAMES, math.ceil(max(map(len, names), default=0) * LETTER) + 10)
        self._width = WIDTH - EDGE - self._left
        self._scale = self._width / self._window.limit
        self._names = names
        axes = axis_names(timeline)
        self._colours = [
            palette.axis_colour(axes, first_axis(lane)) if lane.kind == "axis" else palette.lanes[lane.kind]
            for lane in timeline.lanes
        ]
        self.bottom = 0.0

    def draw(self, y: float) -> Iterator[str]:
        """The pieces of the picture from `y` on."""
        timeline = self._timeline
        y += 16
        yield _text(EDGE, y, f"{timeline.title} on {timeline.machine}", "title")
        y += 24
        yield _text(EDGE, y, _total(timeline), "total")
        y += 26
        grid = [(self._x(time), text) for time, text in ticks(self._window, self._width // 9)]
        yield from (_text(x + 4, y + 8, text, "tick") for x, text in grid if x < WIDTH - EDGE - 20)
        top = y
        y += 14
        body: list[str] = []
        for spans in self._rows.spans:
            body += [piece for span in spans for piece in self._bracket(span, y)]
            y += BRACKET
        y += GAP
        body += self._patterns()
        for place, row in enumerate(self._rows.rows):
            if self._rows.is_first_of_lane(place):
                y += GAP
                colour = self._colours[row.lane] if timeline.lanes[row.lane].kind == "axis" else TEXT
                body.append(_text(self._left - 12, y + 17, self._names[row.lane], "lane", colour))
            if timeline.lanes[row.lane].kind == "compute":
                body += self._waiting(y)
            body += self._bars(row, y)
            if self._rows.is_first_of_lane(place):
                starts = self._rows.unknown[row.lane][0]
                body += [_text(self._x(start) - 3, y + 17, "?", "over") for start in starts[:200]]
            y += ROW
        if timeline.memory is not None and timeline.memory.curve:
            y += 3 * GAP
            body += self._curve(MemoryCurve(timeline.memory), y)
            y += CURVE
        yield from (_line(x, top, x, y) for x, _ in grid)
        yield from body
        y += 24
        yield from self._legend(y)
        self.bottom = y + 4

    def _x(self, time: float) -> float:
        return round(self._left + time * self._scale, 2)

    def _patterns(self) -> Iterator[str]:
        """Hatchings in the colours of the lanes, for what waits for them."""
        yield "<defs>"
        for lane, colour in enumerate(self._colours):
            yield (
                f'<pattern id="wait-{self._number}-{lane}" width="6" height="6" '
                f'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
                f'<rect width="2.2" height="6" fill="{colour}"/></pattern>'
            )
        yield "</defs>"

    def _bracket(self, span: TimeSpan, y: float) -> Iterator[str]:
        first, last = self._x(span.start), self._x(span.end)
        if last - first < 2:
            return
        yield f'<path class="loop" d="M{first + 0.6} {y + 16}V{y + 9}H{last - 0.6}V{y + 16}"/>'
        text = span_text(span, int((last - first - 16) / LETTER))
        if text:
            middle, half = (first + last) / 2, len(text) * LETTER / 2 + 4
            yield f'<rect x="{middle - half:.1f}" y="{y}" width="{2 * half:.1f}" height="15" fill="{PAGE}"/>'
            yield f'<text x="{middle:.1f}" y="{y + 12.5}" text-anchor="middle">{escape(text)}</text>'

    def _bars(self, row: LaneRow, y: float) -> Iterator[str]:
        """Bars of two pixels and more with their names; columns that several share are as opaque as busy."""
        pixel = 1 / self._scale
        i, count = 0, len(row.starts)
        while i < count:
            start, end = row.starts[i], row.ends[i]
            op = self._timeline.ops[row.ops[i]]
            if end - start >= 2 * pixel:
                yield from self._bar(op, start, end, y)
                i += 1
                continue
            stop = start + pixel
            share = row.covered(start, stop) / pixel
            colour = self._colour(op)
            yield (
                f'<rect x="{self._x(start)}" y="{y + 1}" width="1" height="{ROW - 3}" fill="{colour}" '
                f'fill-opacity="{max(round(share, 2), 0.15)}"/>'
            )
            # The next one that is drawn: the first that begins beyond this pixel, or that is long enough.
            last = bisect_right(row.starts, stop, i + 1)
            long = next(
                (j for j in range(i + 1, min(last, count)) if row.ends[j] - row.starts[j] >= 2 * pixel), last
            )
            i = max(long, i + 1)

    def _bar(self, op: TimedOp, start: float, end: float, y: float) -> Iterator[str]:
        first, width = self._x(start), round((end - start) * self._scale, 2)
        gap = 1 if width > 4 else 0.4
        told = f"{op.name}, {estimated_seconds(op.seconds or 0.0)}" + (f", {op.source}" if op.source else "")
        yield (
            f'<rect x="{first}" y="{y + 1}" width="{round(width - gap, 2)}" height="{ROW - 3}" rx="2" '
            f'fill="{self._colour(op)}"><title>{escape(one_line(told))}</title></rect>'
        )
        text = bar_label(op, int((width - 8) / LETTER))
        if text:
            yield _text(first + 6, y + 17, text, "in")

    def _colour(self, op: TimedOp) -> str:
        lane = self._timeline.lanes[op.lane]
        if lane.kind == "compute":
            return self._palette.lanes["matmul" if is_matmul(op) else "compute"]
        return self._colours[op.lane]

    def _waiting(self, y: float) -> Iterator[str]:
        """Where nothing is computed while a lane is busy: a stretch for each lane that is waited for."""
        pixel = 1 / self._scale
        begun: tuple[int, int] | None = None
        for x in range(int(self._width) + 1):
            start = x * pixel
            lane = self._rows.waited_for(start, start + pixel) if x < int(self._width) else None
            if begun is not None and begun[1] != lane:
                first = self._left + begun[0]
                yield (
                    f'<rect x="{first}" y="{y + 1}" width="{self._left + x - first}" height="{ROW - 3}" '
                    f'fill="url(#wait-{self._number}-{begun[1]})"/>'
                )
                begun = None
            if begun is None and lane is not None:
                begun = x, lane

    def _curve(self, curve: MemoryCurve, y: float) -> Iterator[str]:
        """Live bytes as an area, the peak and the limit marked."""
        memory = curve.memory
        pixel, foot = 1 / self._scale, y + CURVE

        def height(size: float) -> float:
            return round(foot - size / curve.top * (CURVE - 16), 1)

        end = int(self._timeline.drawn_seconds * self._scale)
        points: list[tuple[int, float]] = []
        for x in range(end):
            level = height(curve.most(x * pixel, (x + 1) * pixel))
            if not points or points[-1][1] != level:
                points.append((self._left + x, level))
        path = "".join(f"H{x}V{level}" for x, level in points)
        colour = self._palette.lanes["memory"]
        area = f"M{self._left} {foot}{path}H{self._left + end}V{foot}Z"
        yield _text(self._left - 12, y + CURVE / 2 + 4, "memory", "lane", TEXT)
        yield f'<path d="{area}" fill="{colour}" fill-opacity="0.45" stroke="{colour}"/>'
        limit = memory.limit_bytes
        if limit is not None and limit <= NEAR * memory.peak_bytes:
            level = height(limit)
            yield (
                f'<path d="M{self._left} {level}H{WIDTH - EDGE}" stroke="{DIMMED}" stroke-dasharray="5 4"/>'
            )
            words = f"{human_bytes(limit)} allowed"
            yield f'<text class="dim" x="{WIDTH - EDGE}" y="{level - 4}" text-anchor="end">{words}</text>'
        at, level = self._x(memory.peak_at), height(memory.peak_bytes)
        yield f'<circle cx="{at}" cy="{level}" r="3.5" fill="{TEXT}"/>'
        words = f"peak {human_bytes(memory.peak_bytes)}"
        side = "end" if at > WIDTH / 2 else "start"
        shift = -8 if side == "end" else 8
        yield f'<text class="over" x="{at + shift}" y="{level - 5}" text-anchor="{side}">{words}</text>'

    def _legend(self, y: float) -> Iterator[str]:
        """Chips with the meaning of colours and hatchings."""
        kinds = {lane.kind for lane in self._timeline.lanes}
        chips = [(self._palette.lanes["matmul"], "matmul"), (self._palette.lanes["compute"], "other compute")]
        chips = chips if "compute" in kinds else []
        seen = [n for n, lane in enumerate(self._timeline.lanes) if lane.kind != "compute"]
        if "compute" in kinds:
            chips += [(f"url(#wait-{self._number}-{n})", f"waits for {self._names[n]}") for n in seen]
        x = float(self._left)
        for fill, words in chips:
            yield f'<rect x="{x}" y="{y - 10}" width="18" height="12" rx="2" fill="{fill}"/>'
            yield _text(x + 24, y, words, "dim")
            x += 24 + len(words) * LETTER + 18


def _text(x: float, y: float, words: str, kind: str, colour: str = "") -> str:
    fill = f' fill="{colour}"' if colour else ""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{round(x, 2)}" y="{round(y, 2)}"{fill}>{escape(one_line(words))}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1} {y1}L{x2} {y2}"/>'
