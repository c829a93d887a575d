"""The details of one line of a program: of a collective all of it, of others the whole line."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.render.lines import records, sentence
from shardviz.render.programs.collective_rows import has_schedule, members_text, rows_of, when
from shardviz.render.sanitize import printable_line

if TYPE_CHECKING:
    from shardviz.hlo import Collective
    from shardviz.render.listings.pages import ListedProgram, ProgramPage
    from shardviz.render.palette import Palette

MAX_GROUPS = 8
MAX_WORKS = 6
NARROW = 60
"""On fewer columns all numbers and words follow one another, so that they take fewer lines."""


def line_details(
    program: ListedProgram, page: ProgramPage, number: int, width: int, palette: Palette
) -> list[Text]:
    """Lines of at most `width` columns, the most telling first."""
    collective = page.collective(number)
    if collective is None:
        return sentence(page.words(number), width, style="dim")
    return collective_details(program, program.record(collective), width, palette)


def collective_details(
    program: ListedProgram, collective: Collective, width: int, palette: Palette
) -> list[Text]:
    """The data that moves, its size, when it runs and beside what, its devices and its source line."""
    (row,) = rows_of([collective], program.mesh, palette)
    op, shapes, *sizes = (cell for cell in row.cells if cell.plain)
    said = [when(collective)] if has_schedule(program.compiled) else []
    said += [collective.algorithm] * bool(collective.algorithm)
    if width < NARROW:
        lines = records([[op, *sizes, Text("; ".join(said)), shapes]], width)
    else:
        lines = [*records([[op, *sizes, shapes]], width), *sentence("; ".join(said), width)]
    if collective.axes and (members := members_text(collective, MAX_GROUPS if width > 60 else 2)):
        lines += sentence(members, width, lead="devices " if collective.groups else "")
    lines += sentence(collective.source, width, lead="from " if collective.source else "")
    names = [f"{work.name} ({work.op})" for work in collective.overlapped[:MAX_WORKS]]
    if more := len(collective.overlapped) - len(names):
        names.append(f"{more:,} more")
    lines += sentence(", ".join(names), width, lead="meanwhile " if names else "")
    return [printable_line(line) for line in lines]


def place_rule(number: int, page: ProgramPage, width: int) -> Text:
    """A rule that says where the cursor is: ``── line 7 of 33 ── collective 1 of 2 ───``."""
    said = [f"line {number + 1:,} of {page.height:,}"]
    if page.collective(number) is not None:
        place = bisect_left(page.collectives, number)
        said.append(f"collective {place + 1:,} of {len(page.collectives):,}")
    rule = Text("".join(f"── {words} " for words in said), "dim")
    rule.truncate(width)
    return rule.append("─" * max(0, width - rule.cell_len), "dim")
