"""The collectives of a program by what they cost: a line for each, then their sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text
from shardviz.render.lines import GAP, columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import members_text, shapes, way_out
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.sanitize import printable
from shardviz.render.times.report import percent
from shardviz.reports.alike import AlikeEntries, alike
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.selection import Selection
from shardviz.reports.sums import By, CostSum, sums
from shardviz.sharding import Mesh
from shardviz.units import estimated_seconds, human_bytes

PHASES = {"forward": "", "recomputed": "recomputed", "backward": "backward", "optimizer": "optimizer"}
"""The words for the phases of a train step; a program without gradients has one phase, and no word."""
SHORT_PHASES = {"recomputed": "again", "backward": "bwd", "optimizer": "opt", "forward": "fwd"}
TITLES: dict[By, str] = {
    "op": "by operation",
    "axes": "by mesh axis",
    "link": "by link",
    "phase": "by phase",
    "source": "by source line",
}
UNKNOWN: dict[By, str] = {"axes": "no axes known", "link": "link unknown", "source": "source line unknown"}
"""The words for what is not known."""
WIDE = 100
"""From this width on, a line has the shapes."""
LEAST_PLACE = 12
"""Columns that the place of a collective may be cut to."""
MOST_SOURCES = 8
"""Source lines in the sums, the most expensive."""


def cost_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """A line for each group of alike collectives, the most expensive first, as the selection says."""
    entries = selection.chosen(report.entries)
    groups = selection.sorted(alike(entries))
    shown = groups if selection.top is None else groups[: selection.top]
    lines = _table(shown, report, width, palette)
    more = len(groups) - len(shown)
    if more:
        rest = groups[len(shown) :]
        share = _share(rest, report)
        of_all = "" if share is None else f", {percent(share)} of the cost"
        lines += [Text(f"and {plural(more, 'more line')}{of_all}", "dim")]
    left_out = len(report.entries) - len(entries)
    if left_out:
        lines += [Text(f"{plural(left_out, 'collective is', 'collectives are')} left out", "dim")]
    return lines


def sum_lines(report: ProgramReport, selection: Selection, width: int, palette: Palette) -> list[Text]:
    """The sums by operation, axis, link, phase and source line, of what the selection has."""
    entries = selection.chosen(report.entries)
    lines: list[Text] = []
    for by, title in TITLES.items():
        found = sums(entries, by)
        # One name says nothing that another table does not.
        if not found or (by in ("link", "phase") and len(found) < 2 and not (by == "link" and found[0].name)):
            continue
        shown = found[:MOST_SOURCES] if by == "source" else found
        rows = [_sum_cells(each, by, report, palette) for each in shown]
        if by == "op" and len(found) > 1:
            rows.append(_sum_cells(_all(found), by, report, palette))
        is_timed = report.timeline is not None
        head = [title, "runs", "sent", *(["exposed", "time"] if is_timed else []), "share"]
        bold = [Text(words, "bold") for words in head]
        lines.append(Text())
        lines += columns([bold, *rows], width, 0, frozenset({1, 2, 3, 4, 5})) or records(rows, width)
        if len(found) > len(shown):
            lines.append(Text(f"and {plural(len(found) - len(shown), 'more line')}", "dim"))
    unknown = sum(each.runs is None for each in entries)
    if unknown:
        runs = plural(unknown, "collective runs", "collectives run")
        words = f"{runs} an unknown number of times, and is not in the sums: --trips NAME=COUNT tells it"
        lines += [Text(), *sentence(words if unknown == 1 else words.replace(" is ", " are "), width)]
    return lines


def _table(groups: Sequence[AlikeEntries], report: ProgramReport, width: int, palette: Palette) -> list[Text]:
    """The groups as lines of at most `width` columns, under a heading."""
    if not groups:
        return [Text("no such collective")] if report.entries else []
    mesh = report.module.mesh or NO_AXES
    is_timed = report.timeline is not None
    numbers = [_numbers(each, report) for each in groups]
    head = [*(["share", "exposed", "time"] if is_timed else ["share"]), "runs", "sent"]
    bold = [Text(words, "bold") for words in head]
    right = frozenset(range(len(head)))
    left = columns([bold, *numbers], width, 0, right)
    whats = [Text("collective", "bold"), *(_what(each, mesh, palette, width) for each in groups)]
    if left is None:
        rows = [[*cells, what] for cells, what in zip(numbers, whats[1:], strict=True)]
        return records(rows, width)
    taken = max(line.cell_len for line in left)
    room = width - taken - GAP
    longest = max(what.cell_len for what in whats)
    lines = []
    for line, what, group in zip(left, whats, (None, *groups), strict=True):
        line.append(" " * (taken - line.cell_len + GAP))
        place = Text("where", "bold") if group is None else _place(group, room - longest - GAP)
        beside = what.copy()
        if room - longest - GAP >= LEAST_PLACE:
            beside.append(" " * (longest - what.cell_len + GAP)).append_text(place)
        elif beside.cell_len > room:
            beside.truncate(max(room, 1), overflow="ellipsis")
        lines.append(line.append_text(beside))
        lines[-1].rstrip()
    return lines


def _numbers(group: AlikeEntries, report: ProgramReport) -> list[Text]:
    share = _share([group], report)
    cells = [Text("?" if share is None else percent(share))]
    if report.timeline is not None:
        cells += [_seconds(group.exposed), _seconds(group.seconds)]
    runs = "?" if group.runs is None else f"×{group.runs:,}"
    return [*cells, Text(runs), Text(_sent(group.wire_bytes))]


def _what(group: AlikeEntries, mesh: Mesh, palette: Palette, width: int) -> Text:
    """``all-gather data``; on wide pages with the shapes."""
    one = group.first.collective
    text = Text(one.op, "bold")
    if one.axes:
        text.append(" ").append_text(axes_text(one.axes, mesh, palette, ","))
    elif members := members_text(one, 1):
        text.append(f" {members}")
    text.append(way_out(one))
    return text.append(f"  {shapes(one)}", "dim") if width >= WIDE else text


def _place(group: AlikeEntries, room: int) -> Text:
    """The phase, the argument or the scopes, and the file's line, in `room` columns."""
    entry = group.first
    file = PurePath(entry.collective.source)
    line = file.name if ":" in file.name else ""
    phase = "" if entry.phase == "forward" else f"{SHORT_PHASES[entry.phase]} "
    name = printable(group.name)
    rest = room - len(phase) - (len(line) + GAP if line else 0)
    if len(name) > rest > 2:
        # The end of a path tells most.
        name = f"…{name[len(name) - rest + 1 :]}"
    elif len(name) > rest:
        name = ""
    text = Text(phase, "italic").append(name)
    if line and name:
        text.append("  ")
    return text.append(printable(line), "dim") if text.cell_len + len(line) <= room else text


def _sum_cells(total: CostSum, by: By, report: ProgramReport, palette: Palette) -> list[Text]:
    name: Text | str = printable(total.name) or UNKNOWN.get(by, "")
    if by == "axes" and total.name:
        name = axes_text(total.name.split(", "), report.module.mesh or NO_AXES, palette)
    elif by == "source":
        name = PurePath(str(name)).name
    more = " + ?" * bool(total.unknown)
    cells = [Text.assemble(name), Text(f"{total.runs:,}{more}"), Text(human_bytes(total.wire_bytes) + more)]
    share = _share_of(total.exposed, total.wire_bytes, report)
    if report.timeline is not None:
        cells += [_seconds(total.exposed), _seconds(total.seconds)]
    return [*cells, Text("?" if share is None else percent(share))]


def _all(found: Sequence[CostSum]) -> CostSum:
    timed = [each for each in found if each.seconds is not None]
    return CostSum(
        "all",
        sum(each.count for each in found),
        sum(each.runs for each in found),
        sum(each.bytes for each in found),
        sum(each.wire_bytes for each in found),
        math.fsum(each.seconds or 0.0 for each in timed) if timed else None,
        math.fsum(each.exposed or 0.0 for each in timed) if timed else None,
        sum(each.unknown for each in found),
        sum(each.untimed for each in found),
    )


def _share(groups: Sequence[AlikeEntries], report: ProgramReport) -> float | None:
    exposed = [each.exposed for each in groups]
    sent = [each.wire_bytes for each in groups]
    return _share_of(
        None if None in exposed else math.fsum(each or 0.0 for each in exposed),
        None if None in sent else sum(each or 0 for each in sent),
        report,
    )


def _share_of(exposed: float | None, sent: int | None, report: ProgramReport) -> float | None:
    """The part of a program's total that waits for it; without a machine, of all bytes that are sent."""
    if report.timeline is not None:
        total = report.timeline.seconds
        return None if exposed is None or not total else exposed / total
    every = sum(each.all_wire_bytes or 0 for each in report.entries)
    return None if sent is None or not every else sent / every


def _seconds(seconds: float | None) -> Text:
    if seconds is None:
        return Text("?", "bold")
    return Text(estimated_seconds(seconds)) if seconds else Text("hidden", "dim")


def _sent(count: int | None) -> str:
    return "?" if count is None else human_bytes(count)
