"""The page of Shardy's program: MLIR, with the collectives that Shardy inserted marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.hlo.text.folding import fold
from shardviz.render.listings.line_index import LineIndex
from shardviz.render.listings.marks import marks
from shardviz.render.listings.raw_page import RawLines
from shardviz.render.programs.foreign_text import printable
from shardviz.render.programs.hlo_picture import MARK, collective_style, facts

if TYPE_CHECKING:
    from shardviz.hlo import Collective
    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh

QUOTED = re.compile(r'"([^"]*)"')


class MlirLines:
    """Those lines of a module that say something: blank ones and tables of source locations do not.

    `collectives` has the collectives by the number of their line.
    """

    def __init__(self, index: LineIndex, collectives: Iterable[Collective]) -> None:
        self.index = index
        found = RawLines(index, collectives).collectives
        self.raw: list[int] = []
        self.collectives: dict[int, Collective] = {}
        for number in range(index.count):
            start = index.line(number, 0, 80).lstrip()
            if not start or start.startswith("#loc"):
                continue
            if number in found:
                self.collectives[len(self.raw)] = found[number]
            self.raw.append(number)

    def text(self, number: int) -> str:
        """A line, without source locations and attributes that only a compiler wants to know."""
        return fold(self.index.line(self.raw[number])).expandtabs(2)


class MlirPage:
    """The module, each line cut at the page's edge; axes in their colours."""

    def __init__(self, lines: MlirLines, mesh: Mesh, width: int, palette: Palette) -> None:
        self.width = width
        self.height = len(lines.raw)
        self.collectives: Sequence[int] = (*lines.collectives,)
        self._lines = lines
        self._mesh = mesh
        self._palette = palette

    def line(self, number: int, left: int, right: int) -> Text:
        collective = self.collective(number)
        text = Text(printable(self._lines.text(number)))
        for axis in QUOTED.finditer(text.plain):
            if axis[1] in self._mesh.axis_names:
                text.stylize(self._palette.axis(self._mesh, axis[1]), axis.start(1), axis.end(1))
        if collective is None:
            text.truncate(self.width - 2, overflow="ellipsis")
            return Text("  ").append_text(text)[left:right]
        text.stylize("bold", len(text.plain) - len(text.plain.lstrip()))
        tail = facts(collective, self._mesh, self._palette)
        text.truncate(max(self.width - 2 - tail.cell_len, self.width // 2), overflow="ellipsis")
        marked = Text.assemble((MARK, collective_style(collective, self._mesh, self._palette)), " ")
        return marked.append_text(text).append_text(tail)[left:right]

    def collective(self, number: int) -> Collective | None:
        return self._lines.collectives.get(number)

    def words(self, number: int) -> str:
        return printable(self._lines.text(number).strip())

    def place(self, number: int) -> int:
        return self._lines.index.start(self._lines.raw[number])

    def number_at(self, place: int) -> int:
        line = self._lines.index.line_at(place)
        return next((number for number, raw in enumerate(self._lines.raw) if raw >= line), 0)

    def searchable(self) -> LineIndex:
        return self._searchable

    @cached_property
    def _searchable(self) -> LineIndex:
        return LineIndex(
            "\n".join(f"{self._lines.text(n)}{marks(self.collective(n))}" for n in range(self.height))
        )
