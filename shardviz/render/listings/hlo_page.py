"""The page of a compiled program: each instruction without what only a compiler wants to know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.render.listings.line_index import LineIndex
from shardviz.render.listings.marks import marks
from shardviz.render.programs.foreign_text import printable
from shardviz.render.programs.hlo_picture import HloPicture

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.hlo import Collective
    from shardviz.hlo.listed_line import ListedLine
    from shardviz.hlo.listing import Listing
    from shardviz.render.listings.raw_page import RawLines
    from shardviz.render.palette import Palette


class HloPage:
    """A listing, each line cut at the page's edge. `collectives` are the lines that have one."""

    def __init__(
        self, listing: Listing, collectives: Sequence[int], raw: RawLines, width: int, palette: Palette
    ) -> None:
        self.width = width
        self.collectives = collectives
        self.height = len(listing.lines)
        self._lines = listing.lines
        self._raw = raw
        self._picture = HloPicture(listing, width, palette)

    def line(self, number: int, left: int, right: int) -> Text:
        text = self._picture.line(number)
        return text[left:right] if left else text

    def collective(self, number: int) -> Collective | None:
        return self._lines[number].collective

    def words(self, number: int) -> str:
        return printable(_words(self._lines[number]))

    def place(self, number: int) -> int:
        return self._raw.place_of(self._lines[number].name)

    def number_at(self, place: int) -> int:
        name = self._raw.name_at(place)
        return next((number for number, line in enumerate(self._lines) if line.name == name), 0)

    def searchable(self) -> LineIndex:
        return self._searchable

    @cached_property
    def _searchable(self) -> LineIndex:
        return LineIndex("\n".join(f"{_words(line)}{marks(line.collective)}" for line in self._lines))


def _words(line: ListedLine) -> str:
    """``name = shape opcode(operands) attributes``, in full."""
    if line.is_head:
        return f"{line.opcode} {f'of {line.operands}: ' if line.operands else ''}{line.name}"
    holds = f": {', '.join(line.holds)}" if line.holds else ""
    attributes = f" {', '.join(line.attributes)}" if line.attributes else ""
    return f"{line.name} = {line.shape} {line.opcode}{holds}({line.operands}){attributes}"
