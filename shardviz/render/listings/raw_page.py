"""The page of a program as the compiler wrote it: every character, at constant cost."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.render.programs.foreign_text import printable
from shardviz.render.programs.hlo_picture import collective_style

if TYPE_CHECKING:
    from shardviz.hlo import Collective
    from shardviz.render.listings.line_index import LineIndex
    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh

MAX_NAME = 400
"""Characters at a line's beginning among which the name of what it makes is looked for."""
BEFORE_NAME = (" ", "%", "\n", "")
AFTER_NAME = (" = ", " (", " {")


class RawLines:
    """The lines of a text, and which of them make a collective.

    A name that several functions of MLIR use is that of the collectives that have it, in their order.
    """

    def __init__(self, index: LineIndex, collectives: Iterable[Collective]) -> None:
        self.index = index
        waiting: dict[str, list[Collective]] = {}
        for each in collectives:
            waiting.setdefault(each.name, []).append(each)
        self.collectives: dict[int, Collective] = {}
        for number in range(index.count) if waiting else ():
            line = index.line(number, 0, MAX_NAME)
            named = waiting.get(_name(line))
            if named and _is(line, named[0]):
                self.collectives[number] = named.pop(0) if len(named) > 1 else named[0]

    def name_at(self, place: int) -> str:
        """The name of what the line with this place of the text makes."""
        if not self.index.count:
            return ""
        return _name(self.index.line(min(self.index.line_at(place), self.index.count - 1), 0, MAX_NAME))

    def place_of(self, name: str) -> int:
        """Where the line is that makes what has this name; the beginning of the text where none does."""
        text = self.index.text
        position = text.find(name)
        while position >= 0:
            stop = position + len(name)
            if text[position - 1 : position] in BEFORE_NAME and text.startswith(AFTER_NAME, stop):
                return position
            position = text.find(name, stop)
        return 0


class RawPage:
    """The text as it is; characters that are none to look at have a stand-in."""

    def __init__(self, lines: RawLines, mesh: Mesh, palette: Palette) -> None:
        self.width = lines.index.width
        self.height = lines.index.count
        self.collectives: Sequence[int] = (*lines.collectives,)
        self._lines = lines
        self._mesh = mesh
        self._palette = palette

    def line(self, number: int, left: int, right: int) -> Text:
        text = Text(printable(self._lines.index.line(number, left, right)))
        collective = self.collective(number)
        if collective is not None:
            text.stylize(collective_style(collective, self._mesh, self._palette))
        return text

    def collective(self, number: int) -> Collective | None:
        return self._lines.collectives.get(number)

    def words(self, number: int) -> str:
        return printable(self._lines.index.line(number, 0, MAX_NAME).strip())

    def place(self, number: int) -> int:
        return self._lines.index.start(number)

    def number_at(self, place: int) -> int:
        return max(0, min(self._lines.index.line_at(place), self.height - 1))

    def searchable(self) -> LineIndex:
        return self._lines.index


def next_of(numbers: Sequence[int], number: int, step: int) -> int | None:
    """The next of sorted numbers after one, or the one before it; None where there is none."""
    place = bisect_left(numbers, number + 1 if step > 0 else number) - (step < 0)
    return numbers[place] if 0 <= place < len(numbers) else None


def _name(line: str) -> str:
    """``add.1`` of ``ROOT %add.1 = …``, ``main`` of ``ENTRY %main (…``, ``%1`` of ``%1 = sdy.…``.

    MLIR's names are numbers, and keep their sign.
    """
    words = line.split(maxsplit=2)
    name = next((word for word in words if word not in ("ROOT", "ENTRY")), "")
    short = name.removeprefix("%")
    return name if short.isdigit() else short


def _is(line: str, collective: Collective) -> bool:
    """Whether a line with the name of a collective is it: each function of MLIR counts its names anew."""
    return not collective.name.startswith("%") or collective.op.replace("-", "_") in line
