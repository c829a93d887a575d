"""The times of one program by several tellers: their totals in a table, their charts on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.compiler.target_timelines import TargetTimelines
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.sanitize import printable
from shardviz.render.times.gantt import first_column
from shardviz.render.times.report import (
    cause_lines,
    heading_lines,
    memory_report_lines,
    misfit_lines,
    parts_lines,
    picture_lines,
    timeline_view,
)
from shardviz.timeline.program_timeline import ProgramTimeline
from shardviz.units import estimated_seconds

MODEL, SCHEDULER = "model", "compiler's scheduler"


def target_times_view(told: TargetTimelines, width: int, palette: Palette) -> list[Text]:
    """A blank line and all that is known of a target's times; where there are none, the reason and the
    memory."""
    lines = [Text()]
    if told.model is None:
        assert told.error is not None
        lines += sentence(printable(told.error.message), width, lead="no times: ")
        if told.error.hint:
            lines += sentence(printable(told.error.hint), width, 2, style="dim")
        if told.memory is not None:
            lines += [*misfit_lines(told.memory, width), *memory_report_lines(told.memory, width, palette)]
        return lines
    if told.scheduler is None:
        return [*lines, *timeline_view(told.model, width, palette)]
    return [*lines, *tellers_view(((MODEL, told.model), (SCHEDULER, told.scheduler)), width, palette)]


def tellers_view(tellers: Sequence[tuple[str, ProgramTimeline]], width: int, palette: Palette) -> list[Text]:
    """The tellers' totals, their charts on one scale, and the causes as the first has them."""
    first = tellers[0][1]
    lines = [] if first.memory is None else misfit_lines(first.memory, width)
    lines += [*heading_lines(first, width), *parts_lines(first, width, palette), Text()]
    lines += [*_totals(tellers, width), Text()]
    limit = max(timeline.drawn_seconds for _, timeline in tellers)
    left = max(first_column(timeline, width) for _, timeline in tellers)
    for number, (name, timeline) in enumerate(tellers):
        last = number == len(tellers) - 1
        lines += [Text(f"by the {name}", "bold"), *picture_lines(timeline, width, palette, limit, left, last)]
        lines += [Text()] * (not last)
    return [*lines, *cause_lines(first, width, palette)]


def _totals(tellers: Sequence[tuple[str, ProgramTimeline]], width: int) -> list[Text]:
    """A row a teller: the total, compute, communication, and what of that is exposed."""
    head = [Text(words, "bold") for words in ("by the", "total", "compute", "communication", "exposed")]
    rows = []
    for name, timeline in tellers:
        sums = (
            timeline.seconds,
            timeline.compute_seconds,
            sum(seconds for _, seconds in timeline.communication_seconds),
            sum(seconds for _, seconds in timeline.exposed_seconds),
        )
        rows.append([Text(name, "bold"), *(Text(estimated_seconds(each)) for each in sums)])
    whole = columns([head, *rows], width, 2, frozenset({1, 2, 3, 4}))
    if whole is not None:
        return whole
    words = ("in all", "compute", "communication", "exposed")
    named = [
        [row[0], *(cell.append(f" {what}") for cell, what in zip(row[1:], words, strict=True))]
        for row in rows
    ]
    return records(named, width, 2)
