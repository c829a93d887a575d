"""Timelines as one page for a browser that zooms and pans, light and dark; it loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from shardviz.render.exports.html import PAGE, Styles, section_html, whole_page
from shardviz.render.exports.sections import WIDTH, Section
from shardviz.render.palette import ON_LIGHT, TRUECOLOR, Palette
from shardviz.render.sanitize import printable
from shardviz.render.times.gantt import axis_names, first_axis, is_matmul
from shardviz.render.times.report import ESTIMATES, cause_lines, total_lines
from shardviz.render.times.timeline_rows import TimelineRows
from shardviz.timeline.program_timeline import Lane, ProgramTimeline

PICO = 1e12
"""Times of a page are whole picoseconds."""


def timeline_html(timelines: Sequence[ProgramTimeline], title: str, command: str = "") -> str:
    """One HTML file with a chart of each timeline, all on one scale, and what there is to say of each.

    The wheel, dragging and keys zoom and pan; what is under the pointer is told beside it, what is clicked
    stays below. Raises `QuestionError` for what is too long.
    """
    styles = Styles()
    folder = files("shardviz.render.times")
    script = folder.joinpath("timeline.js").read_text(encoding="utf-8")
    style = PAGE + folder.joinpath("timeline.css").read_text(encoding="utf-8")
    data = json.dumps([*map(_data, timelines)], ensure_ascii=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")
    body = [
        '<div id="charts" tabindex="0" role="img" aria-label="Timelines, told in words below"></div>',
        '<p class="keys">wheel or + and − zoom · drag or ← → pan · 0 shows all · a click shows causes</p>',
        '<div id="detail" aria-live="polite"></div>',
        '<div id="tip" hidden></div>',
        # A data block is not run, and no policy is asked about it.
        f'<script type="application/json" id="data">{data}</script>',
    ]
    for number, timeline in enumerate(timelines):
        heading = f"{timeline.title} on {timeline.machine}"
        told = [*total_lines(timeline, WIDTH, TRUECOLOR), *cause_lines(timeline, WIDTH, TRUECOLOR)]
        part = Section(heading, told)
        body.append(section_html(part, number, styles))
    hint = "write it as a trace, which https://ui.perfetto.dev opens"
    return whole_page(title, command, style + styles.css(), script, body, hint)


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return [printable(text) for text in self._numbers]


def _data(timeline: ProgramTimeline) -> dict[str, Any]:
    """The data of the page's script: operations in columns, times in picoseconds, texts by number."""
    rows, texts = TimelineRows(timeline), _Texts()
    ops = timeline.ops

    def pico(times: Iterable[float | None]) -> list[int | None]:
        return [None if time is None else round(time * PICO) for time in times]

    memory = timeline.memory
    columns: dict[str, Any] = {
        "name": [texts.number(op.name) for op in ops],
        "op": [texts.number(op.op) for op in ops],
        "lane": [op.lane for op in ops],
        "row": [rows.row_of.get(number, -1) for number in range(len(ops))],
        "start": pico(op.start for op in ops),
        "end": pico(op.end for op in ops),
        "seconds": pico(op.seconds for op in ops),
        "exposed": pico(op.exposed for op in ops),
        "runs": [op.runs for op in ops],
        "source": [texts.number(op.source) for op in ops],
        "estimate": [texts.number(ESTIMATES.get(op.estimate, "")) for op in ops],
        "bound": [texts.number(op.bound) for op in ops],
        "detail": [texts.number(op.detail) for op in ops],
        "bytes": [op.bytes for op in ops],
        "matmul": [int(is_matmul(op)) for op in ops],
        "after": [op.after for op in ops],
    }
    return {
        "title": printable(f"{timeline.title} on {timeline.machine}"),
        "end": round(timeline.drawn_seconds * PICO),
        "lanes": [
            {
                "name": printable(lane.name),
                "kind": lane.kind,
                "dark": _colour(timeline, lane, TRUECOLOR),
                "light": _colour(timeline, lane, ON_LIGHT),
            }
            for lane in timeline.lanes
        ],
        "compute": {"dark": TRUECOLOR.lanes, "light": ON_LIGHT.lanes},
        "rows": [row.lane for row in rows.rows],
        "ops": columns,
        "spans": [
            [
                printable(span.name),
                span.kind,
                round(span.start * PICO),
                round(span.end * PICO),
                span.count,
                depth,
            ]
            for depth, spans in enumerate(rows.spans)
            for span in spans
        ],
        "memory": None
        if memory is None or not memory.curve
        else {
            "times": pico(time for time, _ in memory.curve),
            "bytes": [size for _, size in memory.curve],
            "peak": memory.peak_bytes,
            "at": round(memory.peak_at * PICO),
            "limit": memory.limit_bytes,
        },
        "texts": texts.all(),
    }


def _colour(timeline: ProgramTimeline, lane: Lane, palette: Palette) -> str:
    if lane.kind == "axis":
        return palette.axis_colour(axis_names(timeline), first_axis(lane))
    return palette.lanes[lane.kind]
