"""Why the collectives that cost most are there: the two shardings that met, in axis names."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.cost_lines import SHORT_PHASES
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.sanitize import printable
from shardviz.reports.alike import alike
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.selection import Selection
from shardviz.reports.why import Reason
from shardviz.units import human_bytes

FEW = 5
"""Reasons on a page that was not asked for them."""


def why_lines(
    report: ProgramReport, reasons: Sequence[Reason], selection: Selection, width: int, palette: Palette
) -> list[Text]:
    """A reason for each group of collectives, the most expensive first; those with one reason together."""
    by_entry = {id(entry): reason for entry, reason in zip(report.entries, reasons, strict=True)}
    mesh = report.module.mesh or NO_AXES
    said: dict[tuple[object, ...], list[Text]] = {}
    for group in selection.sorted(alike(selection.chosen(report.entries))):
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
        lines += sentence(printable(reason.words), width, 2)
        if reason.is_wanted:
            lines[-1].append("  as meant", "dim")
        said[key] = lines
    shown = [*said.values()][: selection.top]
    if not shown:
        return []
    lines = [Text(), Text("why", "bold"), *(line for each in shown for line in each)]
    more = len(said) - len(shown)
    return [*lines, Text(f"and {plural(more, 'more reason')}: --why", "dim")] if more else lines
