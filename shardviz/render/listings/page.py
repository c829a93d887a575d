"""What all pages of a program have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.hlo import Collective
    from shardviz.render.listings.line_index import LineIndex


class Page(Protocol):
    """The lines of a program: `width` columns, `height` lines, each drawn at constant cost.

    `collectives` are the numbers of the lines that are a collective, or begin one, in order.
    """

    width: int
    height: int
    collectives: Sequence[int]

    def line(self, number: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""

    def collective(self, number: int) -> Collective | None:
        """The collective that a line is, or begins."""

    def words(self, number: int) -> str:
        """The whole of a line."""

    def place(self, number: int) -> int:
        """Where in the program's text a line begins."""

    def number_at(self, place: int) -> int:
        """The line that has this place of the program's text, or the next one that is shown."""

    def searchable(self) -> LineIndex:
        """What a search looks at, line by line. Made when it is first asked for, which may take long."""
