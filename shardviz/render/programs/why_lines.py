"""Why the collectives that cost most are there: the two shardings that met, in axis names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.cost_lines import SHORT_PHASES
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.sanitize import printable
from shardviz.reports.entries import Selection
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.suggestions import Suggestion
from shardviz.reports.why import AlikeReasons, Reason, alike_reasons
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
    hint: str = "",
) -> list[Text]:
    """A reason for each group of collectives, the most expensive first; those with one reason together. Below
    it is what avoids it, where that was found. `hint` says how to see all."""
    by_entry = {id(entry): reason for entry, reason in zip(report.entries, reasons, strict=True)}
    chosen = selection.chosen(report.entries)
    groups = selection.in_order(alike_reasons((each, by_entry[id(each)]) for each in chosen))
    if not groups:
        return []
    lines = [Text(), Text("why", "bold")]
    shown: set[Suggestion] = set()
    for group in groups[: selection.top]:
        lines += [_head(group, report, width, palette)]
        expected = " (expected)" if all(each.is_expected for each in group.reasons) else ""
        lines += sentence(f"{printable(group.name)}{expected}", width, 2)
        found = (suggestions[reason] for reason in group.reasons if reason in suggestions)
        best = next(found, None)
        if best is not None and best in shown:
            lines += [Text("  instead: the change above")]
        elif best is not None:
            shown.add(best)
            lines += _suggestion_lines(best, width)
    more = len(groups[selection.top :]) if selection.top is not None else 0
    return [*lines, Text(f"and {plural(more, 'more reason')}{hint}", "dim")] if more else lines


def _head(group: AlikeReasons, report: ProgramReport, width: int, palette: Palette) -> Text:
    """``bwd all-reduce data  12 MiB in 4 collectives, step.py:9``: what all of a reason send in all runs, how
    many they are, and the first line that they come from."""
    one, many = group.first.collective, len(group.entries)
    head = Text(SHORT_PHASES[group.first.phase], "italic").append(one.op, "bold")
    if one.axes:
        head.append(" ").append_text(axes_text(one.axes, report.module.mesh or NO_AXES, palette, ","))
    size = "? bytes" if group.wire_bytes is None else human_bytes(group.wire_bytes)
    words = [f"  {size}", f" in {many:,} collectives" * (many > 1)]
    words += [f", {printable(PurePath(source).name)}" for source in group.sources[:1]]
    words += [f" and {plural(len(group.sources) - 1, 'more line')}"] * (len(group.sources) > 1)
    for each in words:
        if head.cell_len + len(each) > width:
            break
        head.append(each, "dim")
    return head


def shape_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """Reasons by a compiled program's shapes and groups, without the program that it was made of."""
    told = reasons_of(report.entries, report.module.mesh)
    lines = why_lines(report, told, selection, width, palette, {})
    return [*lines, *sentence(FROM_SHAPES, width, style="dim")] if lines else []


def _suggestion_lines(one: Suggestion, width: int) -> list[Text]:
    """The change, the bytes that it saves on the target that has tried it, and the memory that it costs."""
    candidate = one.candidate
    lines = sentence(printable(candidate.code), width, 2, "instead: ")
    if candidate.made_by:
        lines += sentence(printable(f"x is the result of {candidate.made_by}"), width, 4, style="dim")
    words = f"a device sends {human_bytes(one.saved_bytes)} less in a run, tried on {one.target}"
    if one.memory_bytes:
        more = "more" if one.memory_bytes > 0 else "less"
        words += f", and needs {human_bytes(abs(one.memory_bytes))} {more} memory"
    return lines + sentence(words, width, 4)
