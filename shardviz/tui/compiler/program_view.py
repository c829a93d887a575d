"""The lines of a program with a cursor, or other lines in their place, and marks in the margin."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.message import Message

from shardviz.render.lines import Canvas
from shardviz.tui.lines_view import LinesView, TextLines

CURSOR, MATCH = "❯", "•"
MARGIN = 1
"""Columns for the marks of cursor and matches."""
CONTEXT = 2
"""Lines that stay in sight before and behind the cursor."""
SIDEWAYS = 16
"""Columns of one step to the side."""


class ProgramView(LinesView, inherit_bindings=False):
    """Shows a canvas with a margin. `cursor` is the number of a line, None where lines are scrolled instead;
    the keys are the pane's."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"program--cursor"}

    class Moved(Message):
        """The cursor is on another line."""

    class Resized(Message):
        """Lines have another width now."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor: int | None = None
        self._pointed = range(0)
        self._subject: object = None

    @property
    def room(self) -> int:
        """Columns for lines that are not to be scrolled sideways, with or without a scrollbar beside them."""
        return max(1, self.outer_size.width - self.styles.scrollbar_size_vertical - MARGIN)

    def show_page(self, canvas: Canvas, cursor: int, is_old: bool = False) -> None:
        """Show a canvas with the cursor on a line. What was marked is marked no longer."""
        self._subject = canvas
        self.cursor = max(0, min(cursor, canvas.height - 1))
        self._pointed = range(0)
        self.show(_Marked(self, canvas, is_old))
        self._to_sight(range(self.cursor, self.cursor + 1))

    def show_lines(
        self, lines: Sequence[Text], subject: object, pointed: range = range(0), is_old: bool = False
    ) -> None:
        """Show lines without a cursor; the margin points to the first of some. The same subject stays where
        it was scrolled to."""
        self.cursor = None
        self._pointed = pointed
        self.show(_Marked(self, TextLines(lines), is_old))
        if subject != self._subject:
            self._subject = subject
            self.scroll_to(0, None if pointed else 0, animate=False, immediate=True)
            self._to_sight(pointed)

    def mark(self, query: str, matches: Collection[int]) -> None:
        """Mark the lines of a search's matches, and in what is seen of them the text itself."""
        if isinstance(self.canvas, _Marked):
            self.canvas.query = re.compile(re.escape(query), re.IGNORECASE) if query else None
            self.canvas.matches = frozenset(matches)
            self.refresh()

    def move_to(self, line: int) -> None:
        """Put the cursor on a line, or scroll to it where there is no cursor."""
        line = max(0, min(line, self.canvas.height - 1))
        if self.cursor is None:
            self.scroll_to(y=line, animate=False, immediate=True)
        elif line != self.cursor:
            before, self.cursor = self.cursor, line
            self._to_sight(range(line, line + 1))
            top = round(self.scroll_y)
            self.refresh_lines(before - top, 1)
            self.refresh_lines(line - top, 1)
            self.post_message(self.Moved())

    def move(self, lines: int) -> None:
        self.move_to((round(self.scroll_y) if self.cursor is None else self.cursor) + lines)

    def page(self, pages: int) -> None:
        self.move(pages * max(1, self.size.height - 1))

    def to_end(self) -> None:
        self.move_to(self.canvas.height - 1)

    def sideways(self, step: int) -> None:
        self.scroll_to(x=max(0, round(self.scroll_x) + step * SIDEWAYS), animate=False, immediate=True)

    def is_marked(self, line: int) -> bool:
        return line == self.cursor if self.cursor is not None else line in self._pointed[:1]

    def on_lines_view_clicked(self, event: LinesView.Clicked) -> None:
        if self.cursor is not None:
            self.move_to(event.line)

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def _to_sight(self, lines: range) -> None:
        """Scroll no further than needed for the lines, and some around them, to be seen."""
        height = self.size.height
        if not height or not lines:
            return
        context = min(CONTEXT, (height - 1) // 2)
        top = round(self.scroll_y)
        lowest = min(lines.stop + context, self.canvas.height) - height
        top = min(max(top, lowest), max(0, lines.start - context))
        self.scroll_to(y=max(0, top), animate=False, immediate=True)


class _Marked:
    """A canvas with the margin before it."""

    def __init__(self, view: ProgramView, canvas: Canvas, is_old: bool) -> None:
        self.width = canvas.width + MARGIN
        self.height = canvas.height
        self.query: re.Pattern[str] | None = None
        self.matches: frozenset[int] = frozenset()
        self._view = view
        self._canvas = canvas
        self._is_old = is_old

    def line(self, y: int, left: int, right: int) -> Text:
        is_here = self._view.is_marked(y)
        is_match = y in self.matches
        line = self._canvas.line(y, left, right - MARGIN)
        if self._is_old:
            line.stylize("dim")
        if is_match and self.query is not None:
            for match in self.query.finditer(line.plain):
                line.stylize(Style(reverse=True), match.start(), match.end())
        margin = CURSOR if is_here else MATCH if is_match else " "
        text = Text.assemble((margin, "bold"), line)
        if is_here and self._view.cursor is not None:
            text.pad_right(max(0, right - left - text.cell_len))
            text.stylize(Style(bgcolor=self._view.get_component_rich_style("program--cursor").bgcolor))
        return text
