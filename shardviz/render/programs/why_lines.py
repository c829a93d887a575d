"""Why the collectives that cost most are there: the two shardings that met, in axis names; and arrays that a
compiler fully replicates in order to reshard them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text
from shardviz.render.lines import printable_line, sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.cost_lines import SHORT_PHASES
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.reports.entries import Selection
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.rematerialization import Rematerialization
from shardviz.reports.suggestions import Suggestion
from shardviz.reports.why import AlikeReasons, Reason, alike_reasons
from shardviz.reports.why import reasons as reasons_of
from shardviz.sharding import Mesh, PartitionSpec
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
        lines += sentence(f"{group.name}{expected}", width, 2)
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
    words += [f", {PurePath(source).name}" for source in group.sources[:1]]
    words += [f" and {plural(len(group.sources) - 1, 'more line')}"] * (len(group.sources) > 1)
    for each in words:
        if head.cell_len + len(each) > width:
            break
        head.append(each, "dim")
    return printable_line(head)


def shape_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """Reasons by a compiled program's shapes and groups, without the program that it was made of."""
    told = reasons_of(report.entries, report.module.mesh)
    lines = why_lines(report, told, selection, width, palette, {})
    return [*lines, *sentence(FROM_SHAPES, width, style="dim")] if lines else []


def _suggestion_lines(one: Suggestion, width: int) -> list[Text]:
    """The change, the bytes that it saves on the target that has tried it, and the memory that it costs."""
    candidate = one.candidate
    lines = sentence(candidate.code, width, 2, "instead: ")
    if candidate.made_by:
        lines += sentence(f"x is the result of {candidate.made_by}", width, 4, style="dim")
    words = f"a device sends {human_bytes(one.saved_bytes)} less in a run, tried on {one.target}"
    if one.memory_bytes:
        more = "more" if one.memory_bytes > 0 else "less"
        words += f", and needs {human_bytes(abs(one.memory_bytes))} {more} memory"
    return lines + sentence(words, width, 4)


UNNAMED = "axes are those of the log's shardings: --mesh NAME=SIZE,… names yours"
MOST_ARRAYS = 8
"""Arrays that a page tells of; JSON has all."""


def rematerialization_lines(found: Sequence[Rematerialization], width: int) -> list[Text]:
    """Some lines for each array, under a heading; nothing where there is none."""
    if not found:
        return []
    arrays = plural(len(found), "array is", "arrays are")
    them = "it" if len(found) == 1 else "them"
    lines = [Text(), *sentence(f"{arrays} fully replicated in order to reshard {them}", width, style="bold")]
    for each in found[:MOST_ARRAYS]:
        lines += _array_lines(each, width)
    if len(found) > MOST_ARRAYS:
        lines.append(Text(f"and {plural(len(found) - MOST_ARRAYS, 'more array')}", "dim"))
    return lines


def log_lines(
    found: Sequence[Rematerialization], mesh: Mesh | None, width: int, *, is_given: bool
) -> list[Text]:
    """The page of a log alone: the mesh of its shardings, and the arrays."""
    if not found:
        return sentence("the log has a warning of a rematerialization that cannot be read", width)
    lines = [] if mesh is None else sentence(str(mesh), width, lead="mesh ")
    if not is_given:
        lines += sentence(UNNAMED, width, style="dim")
    return [*lines, *rematerialization_lines(found, width)]


def _array_lines(one: Rematerialization, width: int) -> list[Text]:
    array = "" if one.shape is None else f"{one.dtype}[{','.join(map(str, one.shape))}] "
    before, after = (_split(spec, number, one) for number, spec in enumerate((one.before, one.after)))
    times = f", {one.times} times" if one.times > 1 else ""
    lines = sentence(f"{array}from {before} to {after}{times}", width)
    place = one.source if one.op_name in ("", one.source) else f"{one.op_name}  {one.source}"
    if place and "/" not in place:
        place = f"the argument {place}"
    if place:
        lines += sentence(place, width, 2, style="dim")
    if one.whole_bytes is not None and one.wire_bytes is not None:
        words = (
            f"takes {human_bytes(one.whole_bytes)} on each device, and sends {human_bytes(one.wire_bytes)}"
        )
        if one.route_bytes is not None:
            words += f"; in steps it sends {human_bytes(one.route_bytes)}"
        lines += sentence(words, width, 2)
    if len(one.route) > 1:
        lines += [Text(f"  {step.code}") for step in one.route]
    return lines


def _split(spec: PartitionSpec | None, number: int, one: Rematerialization) -> str:
    if spec is not None:
        return str(spec)
    if one.written is not None:
        return one.written[number]
    part = f"{one.dtype}[{','.join(map(str, one.kept))}]"
    return f"a part {part} on each device" if number else "a split over all devices"
