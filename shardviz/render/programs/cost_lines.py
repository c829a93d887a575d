"""The collectives of a program by what they cost: a line for each, then their sums; why they are there; and
what of them is waste."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import HloModule
from shardviz.render.caption import axes_text
from shardviz.render.lines import GAP, printable, printable_line, sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import NO_AXES, members_text, shapes, way_out
from shardviz.render.tables import columns, giving_way, records, rest_line, table
from shardviz.reports.entries import AlikeEntries, By, CollectiveEntry, CostSum, Selection, cost_sum, sums
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.verdicts import WasteVerdict
from shardviz.reports.why import Reason, alike_reasons, reasons as reasons_of
from shardviz.units import human_bytes, percent, seconds

SHORT_PHASES = {None: "", "forward": "", "recomputed": "again ", "backward": "bwd ", "optimizer": "opt "}
"""Before a place; "" for the one phase of a program without gradients, and for None."""
TITLES: dict[By, str] = {
    "op": "by operation",
    "axes": "by mesh axis",
    "link": "by link",
    "phase": "by phase",
    "source": "by source line",
}
UNKNOWN: dict[By, str] = {
    "axes": "unknown axes",
    "link": "unknown link",
    "phase": "no phase",
    "source": "source line unknown",
}
LEAST_PLACE = 12
"""Columns that the place of a collective may be cut to."""
FEW = 5
"""Reasons on a page that was not asked for them."""


def cost_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """A line for each group of alike collectives, in the order that the selection asks for."""
    groups = selection.groups(report.entries)
    shown = groups[: selection.top]
    return _table(shown, report, width, palette) + rest_lines(report, groups, selection.top)


def rest_lines(report: ProgramReport, groups: Sequence[AlikeEntries], top: int | None) -> list[Text]:
    """The number of groups after the `top` ones, and of collectives that filters leave out."""
    rest = groups[top:] if top is not None else ()
    lines = []
    if rest:
        exposed = [group.exposed for group in rest if group.exposed is not None]
        sent = [group.wire_bytes for group in rest if group.wire_bytes is not None]
        known = math.fsum(exposed) if len(exposed) == len(rest) else None
        share = _share_of(known, sum(sent) if len(sent) == len(rest) else None, report)
        whole = "bytes" if report.timeline is None else "time"
        of_all = "" if share is None else f", {percent(share)} of the {whole}"
        lines += rest_line(len(rest), "more line", more=of_all)
    left_out = len(report.entries) - sum(len(group.entries) for group in groups)
    if left_out:
        lines.append(Text(f"{plural(left_out, 'collective is', 'collectives are')} not shown", "dim"))
    return lines


def sum_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """The sums by operation, axis, link, phase and source line, of what the filters let pass."""
    entries = selection.chosen(report.entries)
    lines: list[Text] = []
    for by, title in TITLES.items():
        costs = sums(entries, by)
        # One name says nothing that another table does not.
        if not costs or (by in ("link", "phase") and len(costs) < 2 and not (by == "link" and costs[0].name)):
            continue
        shown = costs[:8] if by == "source" else costs
        whole = [cost_sum(entries)] if by == "op" and len(costs) > 1 else []
        names = []
        for cost in shown:
            name = printable(cost.name) or UNKNOWN.get(by, "")
            names.append(Text(PurePath(name).name if by == "source" else name))
            if by == "axes" and cost.name:
                names[-1] = axes_text(cost.name.split(", "), report.module.mesh or NO_AXES, palette)
        names += [Text("all")] * len(whole)
        head, rows = _figures((*shown, *whole), report, "")
        cells = [[name, *row] for name, row in zip(names, rows, strict=True)]
        lines += [Text(), *table(cells, width, 0, (title, *head), GIVING_WAY)]
        lines += rest_line(len(costs) - len(shown), "more line")
    return lines + unknown_lines(report, entries, width)


def total_lines(report: ProgramReport, selection: Selection, width: int) -> list[Text]:
    """The sum of what the filters let pass, where it is of several collectives."""
    entries = selection.chosen(report.entries)
    whole = cost_sum(entries)
    known = len(entries) > 1 and whole.runs is not None and whole.wire_bytes is not None
    lines = []
    if known:
        words = f"{plural(whole.runs or 0, 'run')}, {human_bytes(whole.wire_bytes or 0)} sent per device"
        lines = [Text(), *sentence(words, width, lead="all: ")]
    return lines + unknown_lines(report, entries, width)


def unknown_lines(report: ProgramReport, entries: Sequence[CollectiveEntry], width: int) -> list[Text]:
    """The collectives that sums leave out, as nothing says how often they run."""
    unknown = sum(entry.runs is None for entry in entries)
    if not unknown:
        return []
    words = f"{unknown:,} collectives run an unknown number of times and are not in the sums"
    if unknown == 1:
        words = "1 collective runs an unknown number of times and is not in the sums"
    if isinstance(report.module, HloModule) and (loops := report.module.unknown_loops):
        words += f"; hlo --trips {','.join(f'{loop}=N' for loop in loops[:4])} sets the trip counts"
    return [Text(), *sentence(words, width)]


def _table(groups: Sequence[AlikeEntries], report: ProgramReport, width: int, palette: Palette) -> list[Text]:
    """The groups as lines of at most `width` columns, under a heading. Figures give way to the operation and
    its axes, shapes to the file's line, and this stands below where there is no room for it."""
    if not groups:
        ops = ", ".join(dict.fromkeys(entry.collective.op for entry in report.entries))
        return sentence(f"the program has {ops}", width, lead="no such collective: ") if ops else []
    mesh = report.module.mesh or NO_AXES
    head, figures = _figures(groups, report, "×")
    least = [max(LEAST_PLACE, len(_phase(group) + _line(group))) for group in groups]
    for with_shapes in (True, False) if width >= 100 else (False,):
        whats = []
        for one in (group.first.collective for group in groups):  # ``all-gather data``
            whats.append(Text(one.op, "bold"))
            if one.axes:
                whats[-1].append(" ").append_text(axes_text(one.axes, mesh, palette, ","))
            elif members := members_text(one, 1):
                whats[-1].append(f" {members}")
            whats[-1].append(way_out(one)).append(f"  {shapes(one)}" * with_shapes, "dim")
        longest = max(what.cell_len for what in whats)
        cells = [[*row, what] for row, what in zip(figures, whats, strict=True)]
        lines = columns(cells, width, 0, (*head, "collective"), GIVING_WAY)
        taken = max((line.cell_len for line in lines or ()), default=width) + GAP
        if width - taken >= max(least):
            break
    if lines is None:
        return records([[what] for what in whats], width)
    indent = max(taken - GAP - longest, GAP)
    drawn = [lines[0]]
    if width - taken >= min(least):
        drawn[0].append(" " * (taken - drawn[0].cell_len)).append("where", "bold")
    for line, group, needed in zip(lines[1:], groups, least, strict=True):
        if width - taken >= needed:
            line.append(" " * (taken - line.cell_len)).append_text(_place(group, width - taken))
            line.rstrip()
            drawn.append(line)
        else:
            where = _place(group, width - indent)
            drawn += [line, *[Text(" " * indent).append_text(where)] * bool(where)]
    return drawn


GIVING_WAY = giving_way("time", "runs", "share", "exposed", "sent")


def _figures(
    costs: Sequence[AlikeEntries | CostSum], report: ProgramReport, times: str
) -> tuple[list[str], list[list[Text]]]:
    """The headings of figures, and their rows; the time only where some of it is hidden."""
    rows = []
    for cost in costs:
        more = " + ?" * bool(cost.unknown) if isinstance(cost, CostSum) else ""
        share = _share_of(cost.exposed, cost.wire_bytes, report)
        row = {">share": Text("?" if share is None else percent(share))}
        if report.timeline is not None:
            for name, time in ((">exposed", cost.exposed), (">time", cost.seconds)):
                known = Text(seconds(time)) if time else Text("hidden", "dim")
                row[name] = Text("?", "bold") if time is None else known
        row[">runs"] = Text("?" if cost.runs is None else f"{times}{cost.runs:,}{more}")
        row[">sent"] = Text("?" if cost.wire_bytes is None else human_bytes(cost.wire_bytes) + more)
        rows.append(row)
    has_hidden = any(row[">time"].plain != row[">exposed"].plain for row in rows if ">time" in row)
    head = [name for name in rows[0] if name != ">time" or has_hidden]
    return head, [[row[name] for name in head] for row in rows]


def _phase(group: AlikeEntries) -> str:
    # That a gradient is of the backward pass needs no word.
    return "grad " if group.first.gradient_of else SHORT_PHASES[group.first.phase]


def _line(group: AlikeEntries) -> str:
    name = PurePath(group.first.collective.source).name
    return name if ":" in name else ""


def _place(group: AlikeEntries, room: int) -> Text:
    """The phase, the argument or the scopes, and the file's line, in `room` columns: ``grad params['w']``
    is the sum of a gradient, ``bwd params['w']`` a parameter that the backward pass gathers."""
    phase, line = _phase(group), _line(group)
    name = printable(group.name)
    rest = room - len(phase) - (len(line) + GAP if line else 0)
    if len(name) > rest:
        # Without its first pieces, as the last ones tell most.
        end = name[len(name) - rest + 1 :]
        piece = re.search(r"[/\[]", end[: len(end) // 2])
        name = "…" + end[piece.start() if piece else 0 :] if rest >= 3 else ""
    text = Text(phase, "italic").append(name)
    if line and name:
        text.append("  ")
    return text.append(printable(line), "dim") if text.cell_len + len(line) <= room else text


def _share_of(exposed: float | None, sent: int | None, report: ProgramReport) -> float | None:
    """The part of a program's total that waits for it; without a machine, of all bytes that are sent."""
    if report.timeline is not None:
        total = report.timeline.seconds
        return None if exposed is None or not total else exposed / total
    every = sum(entry.all_wire_bytes or 0 for entry in report.entries)
    return None if sent is None or not every else sent / every


def why_lines(
    report: ProgramReport, reasons: Sequence[Reason], selection: Selection, width: int, palette: Palette
) -> list[Text]:
    """The reasons for collectives, of the most expensive first."""
    by_entry = {id(entry): reason for entry, reason in zip(report.entries, reasons, strict=True)}
    chosen = selection.chosen(report.entries)
    groups = selection.in_order(alike_reasons((entry, by_entry[id(entry)]) for entry in chosen))
    if not groups:
        return []
    lines = [Text(), Text("why", "bold")]
    shown = groups[: selection.top]
    for group in shown:
        # ``bwd all-reduce data  12 MiB in 4 collectives, step.py:9``: what all of a reason send in all runs,
        # how many they are, and the first line that they come from.
        one, many = group.first.collective, len(group.entries)
        head = Text(SHORT_PHASES[group.first.phase], "italic").append(one.op, "bold")
        if one.axes:
            head.append(" ").append_text(axes_text(one.axes, report.module.mesh or NO_AXES, palette, ","))
        size = "? bytes" if group.wire_bytes is None else human_bytes(group.wire_bytes)
        words = [f"  {size}", f" in {many:,} collectives" * (many > 1)]
        words += [f", {PurePath(source).name}" for source in group.sources[:1]]
        words += [f" and {plural(len(group.sources) - 1, 'more line')}"] * (len(group.sources) > 1)
        for word in words:
            if head.cell_len + len(word) > width:
                break
            head.append(word, "dim")
        lines.append(printable_line(head))
        expected = " (expected)" if all(reason.is_expected for reason in group.reasons) else ""
        lines += sentence(f"{group.name}{expected}", width, 2)
    return lines + rest_line(len(groups) - len(shown), "more reason")


def shape_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """Reasons by a compiled program's shapes and groups, without the program that it was made of."""
    told = reasons_of(report.entries, report.module.mesh)
    lines = why_lines(report, told, selection, width, palette)
    words = "the two shardings that met: shardviz program FILE.py:FUNCTION … --why, or shardviz.inspect"
    return [*lines, *sentence(words, width, style="dim")] if lines else []


def verdict_lines(verdicts: Sequence[WasteVerdict], width: int) -> list[Text]:
    """The wastes of the program, under a heading: each with its line, what mends it, and what that saves."""
    lines = [Text(), Text("waste, and what mends it", "bold")] if verdicts else []
    for one in verdicts:
        saving, change = one.saving, one.candidate
        where = PurePath(one.source).name if one.source else one.array
        lines += sentence(f"{where}: {one.words}" if where else one.words, width, 2, f"{one.kind}: ", "bold")
        lines += sentence(one.code, width, 4, "instead: ")
        if change is not None and change.made_by:
            lines += sentence(f"x is the result of {change.made_by}", width, 6, style="dim")
        saved = saving.sent_bytes, -saving.memory_bytes
        less = ["less" if amount >= 0 else "more" for amount in (*saved, saving.seconds or 0.0)]
        sent, memory = (f"{human_bytes(abs(size))} {word}" for size, word in zip(saved, less, strict=False))
        parts = [f"sends {sent}"] * bool(saving.sent_bytes)
        parts += [f"needs {memory} memory"] * bool(saving.memory_bytes)
        words = [f"each device {' and '.join(parts)}"] * bool(parts)
        if saving.seconds:
            words.insert(0, f"a run takes {seconds(abs(saving.seconds))} {less[2]}")
        how = f"compiled for {one.target}" if one.target else "priced, not compiled"
        lines += sentence(f"{'; '.join(words)} ({how})", width, 4)
    return lines
