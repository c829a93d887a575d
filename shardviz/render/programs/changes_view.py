"""Programs held to something: a saved report, and the changes from one to another, a line for each collective
with its figures and its place; and the failures of tests, what was expected beside what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import HloModule, ShardyModule
from shardviz.hlo.collective import Tally
from shardviz.render.lines import printable, sentence, sentences
from shardviz.render.palette import PLAIN
from shardviz.render.programs.collective_rows import FLUSH, NO_AXES, rows_of
from shardviz.render.tables import Cell, columns, records, table
from shardviz.render.times.live_memory import memory_report_lines
from shardviz.render.times.report import brief_view
from shardviz.reports.changes import (
    MOST_SHARE,
    BrokenLimit,
    Change,
    ChangeKind,
    ReportChanges,
    ReportSummary,
    SummaryLine,
)
from shardviz.reports.entries import BY_COST
from shardviz.reports.program_report import ProgramReport
from shardviz.sharding import Mesh
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import human_bytes, seconds
from shardviz.user_files import short_path

MARKS: dict[ChangeKind, str] = {"added": "+", "removed": "-", "less overlapped": "↑", "more overlapped": "↓"}
"""More to wait for than before, or less; of other changes their bytes tell."""
FEW_CHANGES, MAX_CHANGES, MAX_LINES = 8, 40, 200
WIDTH = 100
MAX_ROWS = 20
"""Lines for one operation."""


def short_place(source: str) -> str:
    """``layer.py:12`` of a line of a file; the name of an operation stays as it is."""
    path, _, line = source.rpartition(":")
    return f"{short_path(Path(path))}:{line}" if line.isdecimal() else source


def summary_view(summary: ReportSummary, width: int) -> list[Text]:
    """The mesh and the machine, the figures of the whole, and each collective, the most bytes first."""
    mesh = _mesh(summary)
    told = [f"mesh {mesh}"] * (mesh != "none") + [f"machine {summary.machine}"] * bool(summary.machine)
    figures = [f"{human_bytes(summary.wire_bytes)} {_sent_by(summary)}"]
    if summary.seconds is not None:
        figures.append(f"{seconds(summary.seconds)} total")
    if summary.memory is not None:
        figures.append(f"{human_bytes(summary.memory)} of peak memory")
    lines = [*sentence(", ".join(told), width, style="dim"), *records([figures], width), Text()]
    if not summary.lines:
        return [*lines, Text("no collective: nothing is sent")]
    kept = sorted(summary.lines, key=lambda line: -(line.all_wire_bytes or 0))
    lines += [Text(plural(len(kept), "line"), "bold"), Text()]
    for line in kept[:MAX_LINES]:
        beside = f", work beside {_beside(line)} runs" if line.overlapped else ""
        words = f"{line.shape}, {_runs(line)}, {_sent(line)}{beside}"
        lines += [*records([[(_name(line), "bold"), words]], width), *_where(line, width)]
    return lines + _more(len(kept) - MAX_LINES, "more line")


def _name(line: SummaryLine) -> str:
    return line.op + (f" over {', '.join(line.axes)}" if line.axes else "")


def _where(line: SummaryLine, width: int, source: str = "") -> list[Text]:
    phase = line.phase if line.phase not in (None, "forward") else ""
    return sentence(", ".join(filter(None, (line.place, phase, source))), width, 4, style="dim")


def _runs(line: SummaryLine) -> str:
    return "in a loop of unknown length" if line.runs is None else f"×{line.runs:,}"


def _beside(line: SummaryLine) -> str:
    """``2 of 3``: the runs beside which something runs."""
    return f"{line.overlapped:,}" + ("" if line.runs is None else f" of {line.runs:,}")


def _sent(line: SummaryLine) -> str:
    """The bytes that a device sends in all runs, or in one where nobody knows how many there are."""
    sent = line.all_wire_bytes
    return f"{human_bytes(line.wire_bytes)} sent per run" if sent is None else f"{human_bytes(sent)} sent"


def _more(count: int, name: str, indent: int = 0) -> list[Text]:
    return [Text(f"{'':{indent}}… and {plural(count, name)}", "dim")] * (count > 0)


def changes_view(
    changes: ReportChanges, broken: Sequence[BrokenLimit], width: int, verbose: bool = True
) -> list[Text]:
    """Each broken limit, the figures before and after, and the changed collectives, few unless `verbose`."""
    other, same_hardware = [], []
    for name, *hardware in (
        ("mesh", _mesh(changes.before), _mesh(changes.after)),
        ("machine", changes.before.machine or "none", changes.after.machine or "none"),
    ):
        if hardware[0] != hardware[1]:
            other.append(f"another {name}: {' → '.join(hardware)}")
        elif hardware[0] != "none":
            same_hardware.append(f"{name} {hardware[0]}")
    lines = [*sentences((limit.message for limit in broken), width, lead="✗ "), *sentences(other, width)]
    lines += [Text()] * bool(lines)
    before, after = changes.before, changes.after
    figures: tuple[tuple[str, float | None, float | None, Callable[[Any], str]], ...] = (
        (_sent_by(before, after), before.wire_bytes, after.wire_bytes, human_bytes),
        ("time", before.seconds, after.seconds, seconds),
        ("peak memory", before.memory, after.memory, human_bytes),
    )
    rows = []
    for name, was, now, written in figures:
        share = ""
        if was is not None and now is not None and was != now:
            ratio = now / was if was else 0.0
            share = f"×{ratio:,.3g}" if ratio > MOST_SHARE else f"{(ratio - 1) * 100:+.1f} %"
            share = share if was else "new"
        if was is not None or now is not None:
            rows.append([name, *("unknown" if each is None else written(each) for each in (was, now)), share])
    told = [[f"{name}:", f"{old} to {new}", share] for name, old, new, share in rows]
    aligned = columns(rows, width, 0, ("", ">before", ">after", ">"))
    lines += [*(aligned or records(told, width)), Text()]
    shown = changes.changes[: MAX_CHANGES if verbose else FEW_CHANGES]
    if changes.changes:
        lines += [Text(plural(len(changes.changes), "change"), "bold"), Text()]
    elif changes.before.lines or changes.after.lines:
        count = len(changes.after.lines)
        same = f"{plural(count, 'line of the summary is', 'lines of the summary are')} the same"
        same += "" if changes.same == count else f", {count - changes.same:,} of them except the source line"
        lines += sentence(f"no collective changes: {same}", width)
    else:
        lines += sentence("no collectives, before or after", width)
    for change in shown:
        line = change.after or change.before
        assert line is not None
        mark, more = MARKS.get(change.kind), change.wire_bytes
        both = (change.before, change.after)
        if change.before is not None and change.after is not None and not _is_known(*both):
            more = change.after.wire_bytes - change.before.wire_bytes
            more = more if change.before.runs == change.after.runs else 0
        mark = mark or ("↑" if more > 0 else "↓" if more < 0 else "≠")
        head = Text.assemble((mark, "bold"), f" {change.kind}: ", (_name(line), "bold"))
        lines += records([[head, _figure(change)]], width)
        lines += _where(line, width, short_place(line.source))
    lines += _more(len(changes.changes) - len(shown), "more change")
    resharded = changes.arrays[: MAX_CHANGES if verbose else FEW_CHANGES]
    for old, new in resharded:
        lines += sentence(f"{old.spec} before, {new.spec} now", width, lead=f"≠ {new.path} {new.shape}: ")
    lines += _more(len(changes.arrays) - len(resharded), "more array")
    return lines + sentence(", ".join(same_hardware), width, style="dim")


def _mesh(summary: ReportSummary) -> str:
    return ",".join(f"{axis}={size}" for axis, size in summary.mesh) or "none"


def _figure(change: Change) -> str:
    before, after = change.before, change.after
    if before is None or after is None:
        line = before or after
        assert line is not None
        return f"{line.shape}, {_runs(line)}, {_sent(line)}"
    shape = _from_to(before.shape, after.shape)
    if change.kind in ("more overlapped", "less overlapped"):
        return f"{shape}, work beside {_beside(before)} runs before, {_beside(after)} now"
    if not _is_known(before, after):
        sent = _from_to(human_bytes(before.wire_bytes), human_bytes(after.wire_bytes))
        was, now = _runs(before), _runs(after)
        runs = now if was == now else f"{was} before, {now} now"
        return f"{shape}, {runs}, {sent} sent per run"
    sent = _from_to(human_bytes(before.all_wire_bytes or 0), human_bytes(after.all_wire_bytes or 0))
    return f"{shape}, {_from_to(_runs(before), _runs(after))}, {sent} sent"


def _is_known(*lines: SummaryLine | None) -> bool:
    return all(line is None or line.runs is not None for line in lines)


def _sent_by(*summaries: ReportSummary) -> str:
    known = _is_known(*(line for summary in summaries for line in summary.lines))
    return "sent per device" if known else "sent outside of unknown loops"


def _from_to(before: str, after: str) -> str:
    return after if before == after else f"{before} to {after}"


def expectation_text(module: HloModule | ShardyModule, mesh: Mesh | None, tallies: Sequence[Tally]) -> str:
    """The expected and the found number of each operation, then the collectives of those that differ."""
    unmet = [tally for tally in tallies if not tally.is_met]
    what = "has other collectives than expected" if unmet else "cannot be read in full"
    lines = [Text(f"{_named(module, mesh)} {what}")]
    rows = []
    for tally in tallies:
        expected = "any" if tally.expected is None else f"{tally.expected:,}"
        counted = [f"{tally.found:,}"] * bool(tally.found or not tally.uncounted)
        counted += [f"{tally.uncounted:,} in loops of unknown length"] * bool(tally.uncounted)
        rows.append(["" if tally.is_met else "≠", tally.name, expected, ", and ".join(counted)])
    lines += [Text(), *table(rows, WIDTH, 2, ("", "operation", ">expected", "found"), style="")]
    matmuls = module.collective_matmuls if isinstance(module, HloModule) else ()
    for tally in unmet:
        # Equal ones in a row share a line.
        found: list[Sequence[Cell]] = [
            (*row.cells, _place(source))
            for source, those in groupby(tally.collectives, lambda collective: collective.source)
            for row in rows_of([*those], mesh or NO_AXES, PLAIN, matmuls)
        ]
        lines += [Text(), Text(f"{tally.name}:" if found else f"no {tally.name}")]
        lines += [*table(found[:MAX_ROWS], WIDTH, 2, FLUSH), *_more(len(found) - MAX_ROWS, "more line", 2)]
    missing = any(
        tally.op == "reduce-scatter" and (tally.expected or 0) > tally.found and not tally.uncounted
        for tally in unmet
    )
    if missing and any(tally.op == "all-reduce" and tally.collectives for tally in tallies):
        words = "CPU compilers may keep an all-reduce and a slice where GPU compilers use a reduce-scatter"
        lines += [Text(), *sentence(words, WIDTH, lead="hint: ")]
    for complaint in module.unread:
        lines += [Text(), *sentence(complaint, WIDTH, lead="unread: ")]
    return _plain(lines)


def excess_text(report: ProgramReport, mesh: Mesh | None, problem: str, memory: MemoryReport | None) -> str:
    """The `problem` of a program, then its `memory` and largest buffers, or its costliest collectives."""
    lines = [Text(f"{_named(report.module, mesh)} {problem}"), Text()]
    if memory is not None:
        lines += memory_report_lines(memory, WIDTH, PLAIN)
        return _plain(lines)
    if not report.entries:
        lines.append(Text("no collective"))
    groups = BY_COST.groups(report.entries)
    rows: list[list[Cell]] = []
    for group in groups[:MAX_ROWS]:
        runs = "in a loop" if group.runs is None else f"×{group.runs:,}"
        sent = "" if group.wire_bytes is None else f"{group.wire_bytes:,} sent"
        waits = "" if group.exposed is None else f"{seconds(group.exposed)} exposed"
        one = group.first.collective
        (row,) = rows_of([one], mesh or NO_AXES, PLAIN)
        rows.append([*row.cells[:2], runs, sent, waits, _place(one.source)])
    lines += table(rows, WIDTH, 2, FLUSH)
    lines += _more(len(groups) - MAX_ROWS, "more line", 2)
    if report.timeline is not None:
        lines += brief_view(report.timeline, WIDTH, PLAIN)
    return _plain(lines)


def _plain(lines: Sequence[Text]) -> str:
    return "\n".join(printable(line.plain).rstrip() for line in lines)


def _named(module: HloModule | ShardyModule, mesh: Mesh | None) -> str:
    return f"{module.name or 'the program'}{f', on the mesh {mesh},' if mesh else ''}"


def _place(source: str) -> str:
    """``at layer.py:12``; an op name stays as it is."""
    location = short_place(source)
    return f"at {location}" if location.rpartition(":")[2].isdecimal() else location
