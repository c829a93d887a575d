"""Pictures that are drawn line by line: a window shows some of one, a page all; and an overview of a picture
of cells that is larger than its window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

from rich.style import Style
from rich.text import Span, Text

from shardviz.render.palette import DIM
from shardviz.units import times

SUMMARY = 6
"""Places in a row or a column that cannot show all its parts: the first ones, a gap, the last."""


class Canvas(Protocol):
    """Lines of text of a known size; `line` draws columns `left` to `right` of one, at constant cost."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    def line(self, y: int, left: int, right: int) -> Text: ...


def all_lines(canvas: Canvas, width: int) -> list[Text]:
    """Every line of a canvas as it is printed: at most `width` columns, without blanks at the end."""
    lines = [canvas.line(y, 0, width) for y in range(canvas.height)]
    for line in lines:
        line.rstrip()
    return lines


def visible(count: int, limit: int) -> tuple[int | None, ...]:
    """The parts of `count` to draw: all within `limit`, or the first, None for a gap, the last."""
    if count <= limit:
        return tuple(range(count))
    limit = max(min(limit, SUMMARY), 3)
    return (*range(limit - 2), None, count - 1)


class LineBuilder:
    """Pieces put at their columns, from left to right; what lies outside `left` to `right` is cut off. What
    was put first stays: a piece that begins under it is seen from its end on."""

    def __init__(self, left: int, right: int) -> None:
        self.left = left
        self.right = right
        self._column = left
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
        """Write a text with its styles."""
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
        """The line as it has been written."""
        return Text("".join(self._pieces), spans=self._spans)


MOST = (40, 10)
"""Columns and lines of a map at most: 400 cells are looked at, of any number."""
LEAST_LINES = 4
"""The fewest lines of a map that shows anything."""
AROUND = 2
"""Lines for its words, above and below."""
WIDEST = 4
"""Characters of a region at most."""
CURSOR, LENS = "▸", "▹"
MARK_NAMES = {CURSOR: "cursor", LENS: "marked"}
NOWHERE = (" ", Style())
IN_VIEW = Style(reverse=True, bold=True)
WORDS_BESIDE = 44
"""Columns that words beside a map have at least."""
BESIDE_WORDS = 3


class Place(NamedTuple):
    """A cell of a picture."""

    row: int
    column: int


Window = tuple[Place, Place]
"""The first and the last cell that are seen of a picture."""
Sample = Callable[[Place], tuple[str, Style] | None]
"""The character of a cell and its style; None where there is no cell."""


@dataclass(frozen=True, eq=False)
class Minimap:
    """A picture of `rows` and `columns` of cells in at most `width` columns and `height` lines. A picture of
    few columns has several characters alike for each. `name` and `unit` are those of its words: ``A``,
    ``device``."""

    rows: int
    columns: int
    sample: Sample
    name: str
    unit: str
    width: int = MOST[0]
    height: int = MOST[1]

    @cached_property
    def step(self) -> Place:
        """The rows and columns of cells that one character stands for: powers of two, as meshes have them."""
        return Place(_power(self.rows, self.height), _power(self.columns, self.width))

    @cached_property
    def size(self) -> tuple[int, int]:
        """The regions beside one another and below one another."""
        return -(-self.columns // self.step.column), -(-self.rows // self.step.row)

    @property
    def wide(self) -> int:
        """The characters of a region."""
        return max(1, min(WIDEST, self.width // self.size[0]))

    @cached_property
    def samples(self) -> Sequence[Sequence[tuple[str, Style]]]:
        """The characters of the regions, line by line."""
        columns, lines = self.size
        return [[self.sample(self._middle(x, y)) or NOWHERE for x in range(columns)] for y in range(lines)]

    def place_at(self, x: int, y: int) -> Place | None:
        """The cell that a character shows; None beside the map."""
        columns, lines = self.size
        is_inside = 0 <= x < columns * self.wide and 0 <= y < lines
        return self._middle(x // self.wide, y) if is_inside else None

    def _middle(self, x: int, y: int) -> Place:
        row, column = (at * step + step // 2 for at, step in zip((y, x), self.step, strict=True))
        return Place(min(row, self.rows - 1), min(column, self.columns - 1))

    def lines(self, window: Window | None, marks: Mapping[Place, tuple[str, Style]]) -> list[Text]:
        """The map, the cells in the window in reverse video, with a mark at some, between its words."""
        first, last = (None, None) if window is None else map(self._character, window)
        at = {self._character(place): mark for place, mark in marks.items()}
        region = times(self.step) if max(self.step) > 1 else "one"
        drawn_as = "one character is" if self.wide == 1 else f"{self.wide} characters are"
        name = (f"{self.name}  ", "bold") if self.name else ""
        found = [Text.assemble(name, (f"{drawn_as} {region} {self.unit}{'s' * (region != 'one')}", DIM))]
        for y, samples in enumerate(self.samples):
            seen = range(0)
            if first is not None and last is not None and first.row <= y <= last.row:
                seen = range(first.column, last.column + 1)
            drawn = []
            for x, (character, style) in enumerate(samples):
                mark, mark_style = at.get(Place(y, x), (character, NOWHERE[1]))
                style += mark_style
                drawn.append((mark + character * (self.wide - 1), style + IN_VIEW if x in seen else style))
            line = Text()
            for same, those in groupby(drawn, itemgetter(1)):
                line.append("".join(characters for characters, _ in those), same)
            found.append(line)
        shown = dict.fromkeys(mark for mark, _ in marks.values())
        said = ["reverse: in view", *(f"{mark} {MARK_NAMES[mark]}" for mark in shown)]
        return [*found, Text("  ".join(said), DIM)]

    def _character(self, place: Place) -> Place:
        return Place(place.row // self.step.row, place.column // self.step.column)


def _power(count: int, most: int) -> int:
    return 1 << (-(-count // most) - 1).bit_length()


def room_beside(width: int, lines: int) -> tuple[int, int] | None:
    """The columns and lines that a map has beside words on so many columns and lines; None for too few."""
    columns = min(MOST[0], width - WORDS_BESIDE - BESIDE_WORDS)
    lines = min(MOST[1], lines - AROUND)
    return (columns, lines) if columns >= MOST[0] // 2 and lines >= LEAST_LINES else None


def room_below(width: int, lines: int) -> tuple[int, int] | None:
    """The same below words, which leave so many lines."""
    lines = min(MOST[1], lines - AROUND)
    return (min(MOST[0], width), lines) if lines >= LEAST_LINES else None


def with_map(words: Sequence[Text], drawn: Sequence[Text], column: int) -> list[Text]:
    """Words, and from a column on a map beside them."""
    found = []
    for y in range(max(len(words), len(drawn))):
        line = words[y].copy() if y < len(words) else Text()
        if y < len(drawn):
            line.append(" " * (column - line.cell_len)).append_text(drawn[y])
        found.append(line)
    return found
