"""The times of one program by several tellers: their totals in a table, their charts on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.times.gantt import first_column
from shardviz.render.times.report import (
    cause_lines,
    memory_report_lines,
    misfit_lines,
    picture_lines,
    timeline_view,
    total_lines,
    unknown_lanes,
)
from shardviz.reports.target_times import TargetTimes, TimesAnswer
from shardviz.timeline.program_timeline import ProgramTimeline
from shardviz.timeline.tellers import TellerComparison
from shardviz.units import estimated_seconds

MODEL, SCHEDULER = "model", "compiler's scheduler"


def target_times_view(answer: TimesAnswer, width: int, palette: Palette) -> list[Text]:
    """A blank line and the times of a target's answer; where there are none, the reason and the memory."""
    lines = [Text()]
    if answer.times is not None:
        return [*lines, *times_view(answer.times, width, palette)]
    if answer.error is not None:
        lines += sentence(answer.error.message, width, lead="no times: ")
        lines += sentence(answer.error.hint, width, 2, style="dim")
    if answer.memory is not None:
        lines += [*misfit_lines(answer.memory, width), *memory_report_lines(answer.memory, width, palette)]
    return lines


def times_view(times: TargetTimes, width: int, palette: Palette) -> list[Text]:
    """The model's page, with the compiler's scheduler beside it where that has simulated the program."""
    model, scheduler = times.model, times.scheduler
    if scheduler is None:
        lines = timeline_view(model, width, palette)
        return [*lines, *(sentence(times.note, width, lead="note: ") if times.note else ())]
    tellers = ((f"by the {MODEL}", model), (f"by the {SCHEDULER}", scheduler))
    lines = [*total_lines(model, width, palette), Text(), *totals_table(tellers, width)]
    if times.comparison is not None:
        lines += difference_lines(times.comparison, width)
    return [*lines, *stacked_pictures(tellers, width, palette), *cause_lines(model, width, palette)]


def stacked_pictures(
    tellers: Sequence[tuple[str, ProgramTimeline]], width: int, palette: Palette
) -> list[Text]:
    """The charts of named timelines below one another, on one scale."""
    limit = max(each.drawn_seconds for _, each in tellers)
    left = max(first_column(each, width) for _, each in tellers)
    lines = []
    for number, (name, each) in enumerate(tellers, 1):
        lines += [Text(), Text(name, "bold")]
        lines += picture_lines(each, width, palette, limit, left, with_legend=number == len(tellers))
    return lines


def difference_lines(comparison: TellerComparison, width: int) -> list[Text]:
    """The two totals against one another, and the causes of their difference, the largest first."""
    if comparison.agree:
        lines = sentence("within a quarter of one another", width, 2, style="dim")
    else:
        longer = "longer" if comparison.ratio > 1 else "shorter"
        words = (
            f"the scheduler's total is {comparison.ratio:.2f} × the model's, {longer} by more than a quarter"
        )
        lines = sentence(words, width, 2)
    for cause, seconds in comparison.causes:
        lead = f"{'+' if seconds > 0 else '−'}{estimated_seconds(abs(seconds))}  "
        lines += sentence(cause, width, 2, lead)
    return lines


def totals_table(tellers: Sequence[tuple[str, ProgramTimeline]], width: int) -> list[Text]:
    """A row a teller: the total, compute, communication, copies where there are any, and what of both is
    exposed. Where something has no estimate, a figure is a sum without it, ``24.3 ms + ?``."""
    kinds = {lane.name: lane.kind for _, timeline in tellers for lane in timeline.lanes}
    used = {name for _, each in tellers for name, seconds in each.communication_seconds if seconds}
    used.update(*(unknown_lanes(timeline) for _, timeline in tellers))
    columns_of = {"communication": ("axis", "network")}
    if any(kinds[name] in ("copy", "host") for name in used):
        columns_of["copies"] = ("copy", "host")
    words = ("total", "compute", *columns_of, "exposed")
    rows = []
    for name, timeline in tellers:
        unknown = unknown_lanes(timeline)
        row = [Text(name, "bold"), _without_unknown(timeline.seconds, bool(unknown))]
        row.append(_without_unknown(timeline.compute_seconds, "compute" in unknown))
        for wanted in columns_of.values():
            seconds = sum(each for lane, each in timeline.communication_seconds if kinds[lane] in wanted)
            row.append(_without_unknown(seconds, any(kinds[lane] in wanted for lane in unknown)))
        exposed = sum(seconds for _, seconds in timeline.exposed_seconds)
        rows.append([*row, _without_unknown(exposed, bool(unknown - {"compute"}))])
    told = ("", " in all", *(f" {what}" for what in words[1:]))
    return table(rows, width, 2, range(1, len(told)), ("", *words), told=told)


def _without_unknown(seconds: float, is_partial: bool) -> Text:
    """A time, or what is known of one."""
    if not is_partial:
        return Text(estimated_seconds(seconds))
    return Text.assemble(f"{estimated_seconds(seconds)} + " if seconds else "", ("?", "bold"))
