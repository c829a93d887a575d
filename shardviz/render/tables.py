"""Tables: rows of cells below headings that say how their columns stand; on narrower pages, cells one after
another."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import GAP, printable, printable_line

Cell = Text | str | tuple[str, str | Style]
"""A cell of a table: a text, or words with a style."""


def as_text(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return printable_line(cell)
    return Text(printable(cell)) if isinstance(cell, str) else Text(printable(cell[0]), cell[1])


def columns(
    rows: Sequence[Sequence[Cell]],
    width: int,
    indent: int = 0,
    head: Sequence[str] = (),
    without: Sequence[Collection[str]] = (),
    style: str = "bold",
) -> list[Text] | None:
    """Rows of cells below the words of `head`, if it has any. A column is flush right if its heading begins
    with ``>``. Empty columns are left out, and those of the first of `without` with which the others fit."""
    texts = [[*map(as_text, row)] for row in _headed(rows, head, style)]
    count = max(map(len, texts), default=0)
    widths = [max((row[i].cell_len for row in texts if i < len(row)), default=0) for i in range(count)]
    for left_out in ((), *without):
        hidden = {i for i, word in enumerate(head) if word.removeprefix(">") in left_out}
        kept = [i for i in range(count) if widths[i] and i not in hidden]
        if indent + sum(widths[i] for i in kept) + GAP * (len(kept) - 1) <= width:
            break
    else:
        return None
    lines = []
    for row in texts:
        line = Text(" " * indent)
        for index, i in enumerate(kept):
            cell = row[i] if i < len(row) else Text()
            blank = " " * (widths[i] - cell.cell_len)
            line.append(" " * (GAP if index else 0))
            is_right = i < len(head) and head[i].startswith(">")
            line.append_text(Text.assemble(blank, cell) if is_right else Text.assemble(cell, blank))
        line.rstrip()
        lines.append(line)
    return lines


def _headed(rows: Sequence[Sequence[Cell]], head: Sequence[str], style: str) -> Sequence[Sequence[Cell]]:
    words = [(word.removeprefix(">"), style) for word in head]
    return [words, *rows] if any(word for word, _ in words) else rows


def giving_way(*names: str) -> list[tuple[str, ...]]:
    """The headings that narrower and narrower tables are without: the first of `names`, the first two, …"""
    return [names[:count] for count in range(1, len(names) + 1)]


def records(rows: Sequence[Sequence[Cell]], width: int, indent: int = 0) -> list[Text]:
    """Each row's cells one after another, as many to a line as fit. Lines after a row's first are indented
    two more; a cell wider than a line goes on over several, broken at blanks where it has them."""
    lines = []
    room = max(width - indent - GAP, 1)
    for row in rows:
        pieces: list[tuple[Text, int]] = []
        for cell in map(as_text, row):
            number = 0
            while cell.cell_len > room:
                blank = cell.plain.rfind(" ", 0, room + 1)
                stop = blank if blank > 0 else room
                pieces.append((cell[:stop], number))
                cell, number = cell[stop + (blank > 0) :], number + 1
            pieces += [(cell, number)] * bool(cell.cell_len)
        line = Text(" " * indent)
        for index, (piece, number) in enumerate(pieces):
            gap = 1 if number else GAP
            if index and line.cell_len + gap + piece.cell_len > width:
                lines.append(line)
                line = Text(" " * (indent + GAP))
            elif index:
                line.append(" " * gap)
            line.append_text(piece)
        lines.append(line)
    return lines


def table(
    rows: Sequence[Sequence[Cell]],
    width: int,
    indent: int = 0,
    head: Sequence[str] = (),
    without: Sequence[Collection[str]] = (),
    told: Sequence[str] = (),
    style: str = "bold",
) -> list[Text]:
    """`columns`, or else records: below the head, or cells with the word `told` for their column. No rows, no
    line."""
    texts = columns(rows, width, indent, head, without, style) if rows else []
    if texts is not None:
        return texts
    if not told:
        return records(_headed(rows, head, style), width, indent)
    named = (zip(map(as_text, row), told, strict=False) for row in rows)
    return records([[Text.assemble(*pair) for pair in row if pair[0]] for row in named], width, indent)


def rest_line(count: int, name: str, indent: int = 0, more: str = "") -> list[Text]:
    """``and 4 more rows, 2 MiB``: the line below some of many, `count` of which are not shown; none for 0."""
    return [Text(f"{'':{indent}}and {plural(count, name)}{more}", "dim")] * (count > 0)
