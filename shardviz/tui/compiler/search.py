"""A search in a page: the lines that have its text, and the line in which that is typed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from shardviz.tui.registry import SEARCHING, bindings


@dataclass(frozen=True)
class Search:
    """`query` and, once `is_done`, the numbers of the lines that have it, in order. `start` is the line on
    which the cursor was when the search began."""

    query: str
    start: int
    matches: Sequence[int] = ()
    is_done: bool = False

    def first(self) -> int | None:
        """The first match from the start on, round the end; None where there is none."""
        if not self.matches:
            return None
        place = bisect_left(self.matches, self.start)
        return self.matches[place % len(self.matches)]

    def next(self, line: int, step: int) -> int | None:
        """The match after a line, or the one before it, round the ends."""
        if not self.matches:
            return None
        place = bisect_left(self.matches, line + 1) if step > 0 else bisect_left(self.matches, line) - 1
        return self.matches[place % len(self.matches)]

    def words(self, line: int | None) -> str:
        """``2 of 7`` on a match, else how many there are."""
        if not self.query:
            return ""
        if not self.is_done:
            return "…"
        if not self.matches:
            return "not there"
        place = bisect_left(self.matches, line or 0)
        if line is not None and place < len(self.matches) and self.matches[place] == line:
            return f"{place + 1:,} of {len(self.matches):,}"
        return f"{len(self.matches):,}"


class SearchLine(Horizontal):
    """``/ all-red  2 of 7``: enter and down go to the next match, up to the one before, esc leaves."""

    DEFAULT_CSS = """
    SearchLine { height: 1; display: none; }
    SearchLine.open { display: block; }
    SearchLine Static { width: auto; }
    SearchLine Input { width: 1fr; }
    """
    BINDINGS = bindings(SEARCHING)

    class Typed(Message):
        """Something else is searched."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query = query

    class Next(Message):
        """To the next match, or the one before."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Left(Message):
        """The search is over."""

    def compose(self) -> ComposeResult:
        yield Static(Text("/ ", "bold"), id="sign")
        # What is not shown is not to get the focus either.
        yield Input(compact=True, select_on_focus=False, disabled=True)
        yield Static("", id="count")

    def open(self) -> None:
        """Begin a search."""
        self.add_class("open")
        field = self.query_one(Input)
        field.disabled = False
        field.value = ""
        field.focus()

    def close(self) -> None:
        """Put the line away."""
        self.remove_class("open")
        self.query_one(Input).disabled = True

    def tell(self, words: str) -> None:
        """Show how many matches there are."""
        self.query_one("#count", Static).update(Text(words))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("open"):
            self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_next(1)

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def action_next(self, step: int) -> None:
        self.post_message(self.Next(step))
