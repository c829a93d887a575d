"""The message of a failed test: the collectives that a program should have, and those that it has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import CollectiveMatmul, HloModule, ShardyModule
from shardviz.hlo.totals import Tally
from shardviz.render.lines import sentence, table
from shardviz.render.palette import PLAIN
from shardviz.render.programs.collective_rows import RIGHT, rows_of
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.render.sanitize import printable
from shardviz.sharding import Mesh

WIDTH = 100
MAX_ROWS = 20
"""Lines for one operation."""


def expectation_text(
    module: HloModule | ShardyModule, mesh: Mesh | None, tallies: Sequence[Tally], width: int = WIDTH
) -> str:
    """The expected and the found number of each operation, then the collectives of those that differ."""
    name = module.name or "the program"
    unmet = [tally for tally in tallies if not tally.is_met]
    what = "has other collectives than expected" if unmet else "cannot be read in full"
    lines = [Text(f"{name}{f', on the mesh {mesh},' if mesh else ''} {what}")]
    head = [Text(heading) for heading in ("", "operation", "expected", "found")]
    rows = [
        [Text("" if tally.is_met else "≠"), Text(tally.op), Text(_expected(tally)), Text(_found(tally))]
        for tally in tallies
    ]
    lines += [Text(), *table([head, *rows], width, 2, frozenset({2}))]
    matmuls = module.collective_matmuls if isinstance(module, HloModule) else ()
    for tally in unmet:
        lines += [Text(), *_collectives(tally, matmuls, mesh or NO_AXES, width)]
    lines += _hint(unmet, tallies, width)
    for complaint in module.unread:
        lines += [Text(), *sentence(complaint, width, lead="unread: ")]
    return "\n".join(printable(line.plain) for line in lines)


def _expected(tally: Tally) -> str:
    return "any" if tally.expected is None else f"{tally.expected:,}"


def _found(tally: Tally) -> str:
    if not tally.uncounted:
        return f"{tally.found:,}"
    loops = f"{tally.uncounted:,} in loops of unknown length"
    return f"{tally.found:,}, and {loops}" if tally.found else loops


def _collectives(tally: Tally, matmuls: Sequence[CollectiveMatmul], mesh: Mesh, width: int) -> list[Text]:
    """One line a collective, with its place in the source; equal ones in a row share one."""
    if not tally.collectives:
        return [Text(f"no {tally.op}")]
    rows = [
        (*row.cells, Text(_place(source)))
        for source, those in groupby(tally.collectives, lambda each: each.source)
        for row in rows_of([*those], mesh, PLAIN, matmuls)
    ]
    lines = [Text(f"{tally.op}:"), *table(rows[:MAX_ROWS], width, 2, RIGHT)]
    more = len(rows) - MAX_ROWS
    return [*lines, Text(f"  … and {plural(more, 'more line')}")] if more > 0 else lines


def _place(source: str) -> str:
    """``at layer.py:12``, short below the current directory; an op name stays as it is."""
    path, _, line = source.rpartition(":")
    if not line.isdecimal():
        return source
    found = Path(path)
    return f"at {found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found}:{line}"


def _hint(unmet: Sequence[Tally], tallies: Sequence[Tally], width: int) -> list[Text]:
    missing = any(
        tally.op == "reduce-scatter" and (tally.expected or 0) > tally.found and not tally.uncounted
        for tally in unmet
    )
    if not missing or not any(tally.op == "all-reduce" and tally.collectives for tally in tallies):
        return []
    words = "a compiler for CPUs may leave an all-reduce and a slice where one for GPUs has a reduce-scatter"
    return [Text(), *sentence(words, width, lead="hint: ")]
