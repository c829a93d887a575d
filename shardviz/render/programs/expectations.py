"""The failures of tests: what a program was expected to have, beside what it has, with the lines to blame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import CollectiveMatmul, HloModule, ShardyModule
from shardviz.hlo.totals import Tally
from shardviz.render.lines import Cell, printable, sentence, table
from shardviz.render.palette import PLAIN
from shardviz.render.programs.changes_view import short_place
from shardviz.render.programs.collective_rows import RIGHT, rows_of
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.times.report import brief_view, memory_report_lines
from shardviz.reports.entries import BY_COST, AlikeEntries
from shardviz.reports.program_report import ProgramReport
from shardviz.sharding import Mesh
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import estimated_seconds

WIDTH = 100
MAX_ROWS = 20
"""Lines for one operation."""


def expectation_text(
    module: HloModule | ShardyModule, mesh: Mesh | None, tallies: Sequence[Tally], width: int = WIDTH
) -> str:
    """The expected and the found number of each operation, then the collectives of those that differ."""
    unmet = [tally for tally in tallies if not tally.is_met]
    what = "has other collectives than expected" if unmet else "cannot be read in full"
    lines = [Text(f"{_named(module, mesh)} {what}")]
    rows = [["", "operation", "expected", "found"]]
    for tally in tallies:
        expected = "any" if tally.expected is None else f"{tally.expected:,}"
        rows.append(["" if tally.is_met else "≠", tally.name, expected, _found(tally)])
    lines += [Text(), *table(rows, width, 2, {2})]
    matmuls = module.collective_matmuls if isinstance(module, HloModule) else ()
    for tally in unmet:
        lines += [Text(), *_collectives(tally, matmuls, mesh or NO_AXES, width)]
    lines += _hint(unmet, tallies, width)
    for complaint in module.unread:
        lines += [Text(), *sentence(complaint, width, lead="unread: ")]
    return _plain(lines)


def excess_text(
    report: ProgramReport, mesh: Mesh | None, problem: str, memory: MemoryReport | None = None
) -> str:
    """The `problem` of a program, then what it spends most on: its collectives, the most expensive first,
    with their places in the source; where there is `memory`, that and its largest buffers."""
    lines = [Text(f"{_named(report.module, mesh)} {problem}"), Text()]
    if memory is not None:
        lines += memory_report_lines(memory, WIDTH, PLAIN)
        return _plain(lines)
    if not report.entries:
        lines.append(Text("no collective"))
    groups = BY_COST.groups(report.entries)
    rows: list[list[Cell]] = [
        [*row.cells[:2], *_cost_cells(group), _place(one.source)]
        for group in groups[:MAX_ROWS]
        for one in (group.first.collective,)
        for row in rows_of([one], mesh or NO_AXES, PLAIN)
    ]
    lines += table(rows, WIDTH, 2, RIGHT)
    more = len(groups) - MAX_ROWS
    if more > 0:
        lines.append(Text(f"  … and {plural(more, 'more line')}"))
    if report.timeline is not None:
        lines += brief_view(report.timeline, WIDTH, PLAIN)
    return _plain(lines)


def _plain(lines: Sequence[Text]) -> str:
    return "\n".join(printable(line.plain).rstrip() for line in lines)


def _cost_cells(group: AlikeEntries) -> list[str]:
    """The runs of a group, the bytes that a device sends in them, and the seconds that it waits for them."""
    runs = "in a loop" if group.runs is None else f"×{group.runs:,}"
    sent = "" if group.wire_bytes is None else f"{group.wire_bytes:,} sent"
    waits = "" if group.exposed is None else f"{estimated_seconds(group.exposed)} exposed"
    return [runs, sent, waits]


def _named(module: HloModule | ShardyModule, mesh: Mesh | None) -> str:
    return f"{module.name or 'the program'}{f', on the mesh {mesh},' if mesh else ''}"


def _found(tally: Tally) -> str:
    if not tally.uncounted:
        return f"{tally.found:,}"
    loops = f"{tally.uncounted:,} in loops of unknown length"
    return f"{tally.found:,}, and {loops}" if tally.found else loops


def _collectives(tally: Tally, matmuls: Sequence[CollectiveMatmul], mesh: Mesh, width: int) -> list[Text]:
    """One line a collective, with its place in the source; equal ones in a row share one."""
    if not tally.collectives:
        return [Text(f"no {tally.name}")]
    rows: list[Sequence[Cell]] = [
        (*row.cells, _place(source))
        for source, those in groupby(tally.collectives, lambda each: each.source)
        for row in rows_of([*those], mesh, PLAIN, matmuls)
    ]
    lines = [Text(f"{tally.name}:"), *table(rows[:MAX_ROWS], width, 2, RIGHT)]
    more = len(rows) - MAX_ROWS
    return [*lines, Text(f"  … and {plural(more, 'more line')}")] if more > 0 else lines


def _place(source: str) -> str:
    """``at layer.py:12``; an op name stays as it is."""
    place = short_place(source)
    return f"at {place}" if place.rpartition(":")[2].isdecimal() else place


def _hint(unmet: Sequence[Tally], tallies: Sequence[Tally], width: int) -> list[Text]:
    missing = any(
        tally.op == "reduce-scatter" and (tally.expected or 0) > tally.found and not tally.uncounted
        for tally in unmet
    )
    if not missing or not any(tally.op == "all-reduce" and tally.collectives for tally in tallies):
        return []
    words = "a compiler for CPUs may leave an all-reduce and a slice where one for GPUs has a reduce-scatter"
    return [Text(), *sentence(words, width, lead="hint: ")]
