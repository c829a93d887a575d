"""An answer that shows itself: in a terminal, on a Rich console, in a notebook."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from shardviz.render.palette import Palette

MIN_WIDTH = 40
"""Columns below which pictures cannot be drawn."""
PAGE_WIDTH = 100
"""Columns in a notebook, and where there is no terminal to ask."""


class Shown(ABC):
    """The same picture everywhere: `repr` and `str` as plain text, Rich in colour, notebooks as HTML too.

    Rich is loaded when something is shown, not before.
    """

    @abstractmethod
    def lines(self, width: int, palette: Palette) -> list[Text]:
        """The picture in lines of at most `width` columns, if it can be drawn in so few."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The JSON document that the command line prints with ``--json``."""

    def __repr__(self) -> str:
        from shardviz.render.page import plain_text

        width = max(shutil.get_terminal_size((PAGE_WIDTH, 24)).columns, MIN_WIDTH)
        return plain_text(self.lines, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from shardviz.render.palette import palette_for
        from shardviz.render.sanitize import printable_line

        palette = palette_for(None if console.no_color else console.color_system)
        for line in self.lines(max(options.max_width, MIN_WIDTH), palette):
            line.no_wrap = True
            yield printable_line(line)

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        """The forms for a notebook, which shows the richest that it can."""
        from shardviz.render.page import html

        return {"text/plain": repr(self), "text/html": html(self.lines, PAGE_WIDTH)}
