"""Lines of a page: sentences that wrap with a hanging indent, bars, code; and pictures that are drawn line by
line, of which a window shows some."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rich.style import Style
from rich.text import Span, Text

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


def listed(names: Sequence[str], most: int) -> str:
    """``a, b, c and 4 more``: at most `most` of the names."""
    more = len(names) - most
    return ", ".join(names[:most]) + f" and {more:,} more" * (more > 0)


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


def visible(count: int, limit: int, summary: int = SUMMARY) -> tuple[int | None, ...]:
    """The parts of `count` to draw: all within `limit`, or the first, None for a gap, the last; of more than
    `limit` no more than `summary`."""
    if count <= limit:
        return tuple(range(count))
    limit = max(min(limit, summary), 3)
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
