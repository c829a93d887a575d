"""Why the collectives that cost most are there: the two shardings that met, in axis names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.cost_lines import SHORT_PHASES
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.sanitize import printable
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.selection import Selection
from shardviz.reports.suggestions import Suggestion
from shardviz.reports.why import Reason
from shardviz.reports.why import reasons as reasons_of
from shardviz.units import human_bytes

FROM_SHAPES = "the two shardings that met: shardviz program FILE.py:FUNCTION … --why, or shardviz.inspect"
FEW = 5
"""Reasons on a page that was not asked for them."""


def why_lines(
    report: ProgramReport,
    reasons: Sequence[Reason],
    selection: Selection,
    width: int,
    palette: Palette,
    suggestions: Mapping[Reason, Suggestion],
) -> list[Text]:
    """A reason for each group of collectives, the most expensive first; those with one reason together. Below
    it is what avoids it, where that was found."""
    by_entry = {id(entry): reason for entry, reason in zip(report.entries, reasons, strict=True)}
    mesh = report.module.mesh or NO_AXES
    said: dict[tuple[object, ...], list[Text]] = {}
    for group in selection.groups(report.entries):
        one, reason = group.first.collective, by_entry[id(group.first)]
        key = one.op, one.axes, group.first.phase, reason.words
        if key in said:
            continue
        phase = "" if group.first.phase == "forward" else f"{SHORT_PHASES[group.first.phase]} "
        lead = Text(phase, "italic").append(one.op, "bold")
        if one.axes:
            lead.append(" ").append_text(axes_text(one.axes, mesh, palette, ","))
        sent = "" if group.wire_bytes is None else f"  {human_bytes(group.wire_bytes)}"
        lines = [lead.append(sent, "dim")]
        meant = " (as meant)" if reason.is_wanted else ""
        lines += sentence(f"{printable(reason.words)}{meant}", width, 2)
        if reason in suggestions:
            lines += _suggestion_lines(suggestions[reason], width)
        said[key] = lines
    shown = [*said.values()][: selection.top]
    if not shown:
        return []
    lines = [Text(), Text("why", "bold"), *(line for each in shown for line in each)]
    more = len(said) - len(shown)
    return [*lines, Text(f"and {plural(more, 'more reason')}: --why", "dim")] if more else lines


def shape_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """Reasons by a compiled program's shapes and groups, without the program that it was made of."""
    told = reasons_of(report.entries, (), report.module.mesh)
    lines = why_lines(report, told, selection, width, palette, {})
    return [*lines, *sentence(FROM_SHAPES, width, style="dim")] if lines else []


def _suggestion_lines(one: Suggestion, width: int) -> list[Text]:
    """The change, the bytes that it saves by Shardy's account, and those that it costs."""
    candidate = one.candidate
    lines = sentence(printable(candidate.code), width, 2, "instead: ")
    if candidate.made_by:
        lines += sentence(printable(f"x is the result of {candidate.made_by}"), width, 4, style="dim")
    words = f"a device sends {human_bytes(one.saved_bytes)} less in a run, tried on Shardy"
    if candidate.memory_bytes:
        more = "more" if candidate.memory_bytes > 0 else "less"
        words += f"; the argument takes {human_bytes(abs(candidate.memory_bytes))} {more} on each"
    return lines + sentence(words, width, 4)
