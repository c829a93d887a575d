"""An overview of a picture of cells that is larger than its window, at the same cost for any number of them.

A character stands for a region of cells and shows the one in its middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.render.canvas import LineBuilder
from shardviz.render.palette import DIM
from shardviz.units import times

MOST = (40, 10)
"""Columns and lines of a map at most: 400 cells are looked at, of any number."""
LEAST_LINES = 4
"""Lines from which on a map says anything."""
AROUND = 2
"""Lines for its words, above and below."""
CURSOR, LENS = "▸", "▹"
NOWHERE = (" ", Style())
IN_VIEW = Style(reverse=True, bold=True)
WORDS_BESIDE = 44
"""Columns that words beside a map have at least."""
GAP = 3


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
    """A picture of `rows` and `columns` of cells in at most `width` columns and `height` lines.

    `name` and `unit` are those of its words: ``A``, ``device``.
    """

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
        """The columns and lines of the map."""
        return -(-self.columns // self.step.column), -(-self.rows // self.step.row)

    @cached_property
    def samples(self) -> Sequence[Sequence[tuple[str, Style]]]:
        """The characters, line by line."""
        columns, lines = self.size
        return [[self.sample(self.place_at(x, y)) or NOWHERE for x in range(columns)] for y in range(lines)]

    def place_at(self, x: int, y: int) -> Place:
        """The cell in the middle of a character's region; beyond the edges the one that is next."""
        row, column = (at * step + step // 2 for at, step in zip((y, x), self.step, strict=True))
        return Place(min(max(row, 0), self.rows - 1), min(max(column, 0), self.columns - 1))

    def lines(self, window: Window | None, marks: Mapping[Place, tuple[str, Style]]) -> list[Text]:
        """The map, the cells in the window in reverse video, with a mark at some, between its words."""
        first, last = (None, None) if window is None else map(self._character, window)
        at = {self._character(place): mark for place, mark in marks.items()}
        found = [self._title()]
        for y, samples in enumerate(self.samples):
            builder = LineBuilder(0, len(samples))
            for x, (character, style) in enumerate(samples):
                if first is not None and last is not None:
                    is_seen = first.row <= y <= last.row and first.column <= x <= last.column
                    style = style + IN_VIEW if is_seen else style
                if (mark := at.get(Place(y, x))) is not None:
                    character, style = mark[0], style + mark[1]
                builder.put(x, character, style)
            found.append(builder.text())
        words = ["reverse: in view", *(f"{mark} {name}" for mark, name in _named(marks.values()))]
        return [*found, Text("  ".join(words), DIM)]

    def _title(self) -> Text:
        region = times(self.step) if max(self.step) > 1 else "one"
        name = (f"{self.name}  ", "bold") if self.name else ""
        return Text.assemble(name, (f"one character is {region} {self.unit}{'s' * (region != 'one')}", DIM))

    def _character(self, place: Place) -> Place:
        return Place(place.row // self.step.row, place.column // self.step.column)


def _named(marks: Iterable[tuple[str, Style]]) -> list[tuple[str, str]]:
    names = {CURSOR: "cursor", LENS: "marked"}
    return [(mark, names[mark]) for mark in dict.fromkeys(mark for mark, _ in marks)]


def _power(count: int, most: int) -> int:
    """The smallest power of two of which `most` are enough for `count`."""
    return 1 << (-(-count // most) - 1).bit_length()


def room_beside(width: int, lines: int) -> tuple[int, int] | None:
    """The columns and lines that a map has beside words on so many columns and lines; None for too few."""
    columns = min(MOST[0], width - WORDS_BESIDE - GAP)
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
