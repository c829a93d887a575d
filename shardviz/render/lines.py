"""Lines of a page: sentences that wrap with a hanging indent, columns that line up, code; and pictures that
are drawn line by line, of which a window shows some."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from rich.style import Style
from rich.text import Span, Text

from shardviz.errors import plural
from shardviz.render.palette import PLAIN, SIGNS, Palette

GAP = 2
SHELF_GAP = 3
"""Columns between blocks on a shelf."""
SUMMARY = 6
"""Places in a row or a column that cannot show all its parts: the first ones, a gap, the last."""
GLUE = "\xa0"
"""A blank at which no line breaks."""
COUNTED = re.compile(
    r"(?<=[0-9]) (?=(?:[KMGTPE]?i?B(?:/s)?|bytes?|[mµn]?s|chunks?|rounds?|devices?|messages?)\b)|(?<=≥) "
)
"""The blank between a number and its unit."""
READABLE = 100
"""Sentences wrap here even on wider pages."""
Cell = Text | str | tuple[str, str | Style]
"""A cell of a table: a text, or words with a style."""
BLOCKS = " ▏▎▍▌▋▊▉█"


def printable(text: str) -> str:
    """Another program's text, with ? for each character that moves the cursor or changes what is shown."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_line(line: Text) -> Text:
    if not line.plain.isprintable():
        line.plain = printable(line.plain)
    return line


Lines = Callable[[int, Palette], Sequence[Text]]
"""A picture: its lines, of at most so many columns, in the colours of a palette."""


def plain_text(lines: Lines, width: int) -> str:
    """The picture as text without colours, and without a line end after the last line."""
    return "\n".join(printable(line.plain) for line in lines(width, PLAIN))


def as_text(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return printable_line(cell)
    return Text(printable(cell)) if isinstance(cell, str) else Text(printable(cell[0]), cell[1])


def bar(size: float, most: float, room: int) -> str:
    """A bar of eighths that fills `room` columns at `most`; any size above 0 has an eighth."""
    eighths = max(round(8 * room * size / most) if most else 0, int(size > 0))
    return BLOCKS[-1] * (eighths // 8) + BLOCKS[eighths % 8].strip()


def sentence(text: str, width: int, indent: int = 0, lead: str = "", style: str | Style = "") -> list[Text]:
    """`text` in lines of at most `width` columns, all indented, the others two more than the first, which
    begins with `lead` in bold; a sign at its beginning has its colour. A number and its unit stay together,
    and so do words with `GLUE` between them. No text, no line."""
    if not lead + text:
        return []
    hanging = GAP if lead else 0
    wrapped = textwrap.wrap(
        COUNTED.sub(GLUE, lead + text),
        min(width, READABLE) - indent,
        subsequent_indent=" " * hanging,
        break_on_hyphens=False,
    )
    words = (printable(line.replace(GLUE, " ")) for line in wrapped)
    lines = [Text.assemble(" " * indent, (line, style)) for line in words]
    if lead:
        lines[0].stylize("not dim bold", indent, indent + len(lead))
    if lead[:2].strip() in SIGNS:
        lines[0].stylize(SIGNS[lead[0]], indent, indent + 1)
    return lines


def sentences(
    said: Iterable[str], width: int, indent: int = 0, lead: str = "", style: str | Style = ""
) -> list[Text]:
    """Several of them, each with its own lines; empty ones are left out."""
    return [line for text in said if text for line in sentence(text, width, indent, lead, style)]


def shared(
    said: Iterable[tuple[str, str]], width: int, indent: int = 0, lead: str = "{}: ", style: str = ""
) -> list[Text]:
    """Each sentence of `said` once, after the names that it is about; empty ones are left out."""
    names: dict[str, list[str]] = {}
    for name, words in said:
        if words:
            names.setdefault(words, []).append(name)
    return [
        line
        for words, those in names.items()
        for line in sentence(words, width, indent, lead.format(", ".join(those)), style)
    ]


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
    words = [word.removeprefix(">") for word in head]
    texts = [[*map(as_text, row)] for row in ([_headings(words, style), *rows] if any(words) else rows)]
    count = max(map(len, texts), default=0)
    widths = [max((row[i].cell_len for row in texts if i < len(row)), default=0) for i in range(count)]
    for left_out in ((), *without):
        kept = [i for i in range(count) if widths[i] and not {*words[i : i + 1]} & {*left_out}]
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


def _headings(words: Sequence[str], style: str) -> list[Cell]:
    return [(word, style) for word in words]


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
    if told:
        named = [zip(map(as_text, row), told, strict=False) for row in rows]
        rows = [[Text.assemble(cell, word) for cell, word in row if cell] for row in named]
    elif any(words := [word.removeprefix(">") for word in head]):
        rows = [_headings(words, style), *rows]
    return records(rows, width, indent)


def listed(names: Sequence[str], most: int) -> str:
    """``a, b, c and 4 more``: at most `most` of the names."""
    more = len(names) - most
    return ", ".join(names[:most]) + f" and {more:,} more" * (more > 0)


def rest_line(count: int, name: str, indent: int = 0, more: str = "") -> list[Text]:
    """``and 4 more rows, 2 MiB``: the line below some of many, `count` of which are not shown; none for 0."""
    return [Text(f"{'':{indent}}and {plural(count, name)}{more}", "dim")] * (count > 0)


def beside(line: Text, words: str, left: int, width: int, least: int, indent: int) -> list[Text]:
    """A line with dim words beside it from column `left` on; below it where these have less than `least`."""
    if width - left < least or line.cell_len > left:
        return [line, *sentence(words, width, indent, style="dim")]
    lines = sentence(words, width, left, style="dim") or [Text()]
    lines[0] = Text.assemble(line, " " * (left - line.cell_len), lines[0][left:])
    lines[0].rstrip()
    return lines


def cut(text: Text, width: int) -> Text:
    """The text itself, of at most `width` columns, with an ellipsis where it was longer."""
    text.truncate(width, overflow="ellipsis")
    return text


def shelve(blocks: Sequence[Sequence[Text]], width: int, gap: int = SHELF_GAP) -> list[Text]:
    """Blocks of lines, as many beside one another as fit, top-aligned; then the next ones below."""
    lines: list[Text] = []
    shelf: list[Text] = []
    for block in blocks:
        wide = max(line.cell_len for line in block)
        used = max((line.cell_len for line in shelf), default=0)
        if shelf and used + gap + wide > width:
            lines += shelf
            shelf, used = [], 0
        left = used + gap if shelf else 0
        shelf += [Text() for _ in range(len(block) - len(shelf))]
        for line, addition in zip(shelf, block, strict=False):
            line.append(" " * (left - line.cell_len)).append_text(addition)
    return lines + shelf


def rule(said: Iterable[str], width: int) -> Text:
    """A line across the page with words on it: ``── line 7 of 33 ── collective 1 of 2 ───``."""
    line = Text("".join(f"── {words} " for words in said), "dim")
    line.truncate(width)
    return line.append("─" * max(0, width - line.cell_len), "dim")


def trimmed(line: Text, palette: Palette) -> Text:
    """A line without the blanks at its end, but for those that are the edge of a coloured cell."""
    stop = len(line.plain.rstrip())
    if palette.shown:
        coloured = (span for span in line.spans if isinstance(span.style, Style) and span.style.bgcolor)
        stop = max([stop, *(span.end for span in coloured)])
    return line[:stop]


def highlighted(code: str, theme: str) -> list[Text]:
    """The lines of Python code, coloured by one of Pygments' styles; "" leaves them plain."""
    if not theme:
        return [Text(line) for line in code.splitlines()]
    from rich.syntax import Syntax

    text = Syntax("", "python", theme=theme).highlight(code)
    text.rstrip()
    text.style = ""
    for index, (start, end, style) in enumerate(text.spans):
        full = style if isinstance(style, Style) else Style.parse(style)
        # Without its background.
        bare = Style(color=full.color, bold=full.bold, italic=full.italic, underline=full.underline)
        text.spans[index] = Span(start, end, bare)
    return list(text.split("\n", allow_blank=True))


class Canvas(Protocol):
    """Lines of text of a known size; `line` draws columns `left` to `right` of one, at constant cost."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    def line(self, y: int, left: int, right: int) -> Text: ...


def visible(count: int, limit: int) -> tuple[int | None, ...]:
    """The parts of `count` to draw: all within `limit`, or the first, None for a gap, the last."""
    if count <= limit:
        return tuple(range(count))
    limit = max(min(limit, SUMMARY), 3)
    return (*range(limit - 2), None, count - 1)


class LineBuilder:
    """Pieces put at their columns, from left to right; what lies outside `left` to `right` is cut off. A
    piece that begins under another is seen from its end on."""

    def __init__(self, left: int, right: int) -> None:
        self.left, self.right, self._column = left, right, left
        self._pieces: list[str] = []
        self._spans: list[Span] = []

    def put(self, column: int, piece: str, style: str | Style = "") -> None:
        """Write a piece, all of whose characters are one column wide."""
        if column + len(piece) <= self._column or column >= self.right:
            return
        if column < self._column:
            piece, column = piece[self._column - column :], self._column
        piece = piece[: self.right - column]
        if column > self._column:
            self._pieces.append(" " * (column - self._column))
        self._pieces.append(piece)
        self._column = column + len(piece)
        if style:
            self._spans.append(Span(column - self.left, self._column - self.left, style))

    def put_text(self, column: int, text: Text) -> None:
        offset, before = column - self.left, self._column
        plain = text.plain
        self.put(column, plain, text.style)
        if before <= column and column + len(plain) <= self.right:
            # Nearly always nothing is cut off.
            self._spans += [Span(start + offset, end + offset, style) for start, end, style in text.spans]
            return
        first, last = max(offset, before - self.left), self._column - self.left
        for span in text.spans:
            start, end = max(span.start + offset, first), min(span.end + offset, last)
            if start < end:
                self._spans.append(Span(start, end, span.style))

    def text(self) -> Text:
        return Text("".join(self._pieces), spans=self._spans)
