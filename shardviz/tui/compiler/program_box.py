"""A program on a page with a cursor: folding, search, and the details of the cursor's line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from shardviz.render.palette import Palette
from shardviz.render.programs.program_pages import (
    ListedProgram,
    ProgramPage,
    line_details,
    next_of,
    place_rule,
)
from shardviz.tui.compiler.program_view import ProgramView
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import SEARCHING, bindings
from shardviz.tui.themes import Styled

Drawn = tuple["ListedProgram", bool, int, "Palette"]
"""The source of a page: the program, whether folded, the width, and the colours."""
MANY_LINES, DETAILS, FEW_DETAILS = 18, 6, 4
"""A box of so many lines has this many for the details of the cursor's line, a lower one fewer."""


class Search(NamedTuple):
    """`query` and, once `is_done`, the numbers of the lines that have it, in order. `start` is the line on
    which the cursor was when the search began."""

    query: str
    start: int
    matches: Sequence[int] = ()
    is_done: bool = False

    def next(self, line: int, step: int) -> int | None:
        """The match after a line, or the one before it, round the ends."""
        if not self.matches:
            return None
        index = bisect_left(self.matches, line + 1) if step > 0 else bisect_left(self.matches, line) - 1
        return self.matches[index % len(self.matches)]

    def words(self, line: int | None) -> str:
        """``2 of 7`` on a match, else how many there are."""
        if not self.query:
            return ""
        if not self.is_done:
            return "…"
        if not self.matches:
            return "not there"
        index = bisect_left(self.matches, line or 0)
        if line is not None and index < len(self.matches) and self.matches[index] == line:
            return f"{index + 1:,} of {len(self.matches):,}"
        return f"{len(self.matches):,}"


class ProgramBox(Styled, Vertical):
    """Shows a program, or other lines in its place. `folded`: the lines for people, not all of the text.
    While it is searched, a line above it has the text: ``/ all-red 2 of 7``."""

    BINDINGS = bindings(SEARCHING)

    def __init__(self) -> None:
        super().__init__()
        self.folded = True
        self._lens: int | None = None
        self._page: ProgramPage | None = None
        self._drawn: Drawn | None = None
        self._cursor = 0
        self._search: Search | None = None
        self.view = ProgramView()

    def compose(self) -> ComposeResult:
        yield Static(id="heading")
        with Horizontal(id="search"):
            yield Static(Text("/ ", "bold"))
            # What is not shown is not to get the focus either.
            yield Input(compact=True, select_on_focus=False, disabled=True)
            yield Static(id="count")
        yield self.view
        yield LinesView(id="details")

    @property
    def is_program(self) -> bool:
        return self._page is not None and not self.has_class("other")

    @property
    def is_searching(self) -> bool:
        return self._search is not None

    def title(self, text: Text) -> None:
        text.truncate(max(1, self.size.width), overflow="ellipsis")
        self.query_one("#heading", Static).update(text, layout=False)

    def show_program(self, program: ListedProgram, palette: Palette, is_old: bool) -> None:
        """Show a program. The cursor is on the collective with the same number as before, at first on the
        first; in the same program it is where it was."""
        self.remove_class("other")
        drawn = program, self.folded, self.view.room, palette
        before = self._drawn
        # Programs, which may be long, are told apart by identity.
        if self._page is None or before is None or drawn[0] is not before[0] or drawn[1:] != before[1:]:
            page = program.page(self.folded, self.view.room, palette)
            self._cursor = self._place_on(page, program)
            self._page, self._drawn = page, drawn
            self._look()
        self._divide()
        self.view.show_page(self._page, self._cursor, is_old)
        self._mark()
        self._explain()

    def show_lines(
        self, lines: Sequence[Text], subject: object, pointed: range = range(0), is_old: bool = False
    ) -> None:
        """Show something else, which stays where it was scrolled to as long as its subject is the same."""
        self.action_leave()
        self.add_class("other")
        self.view.styles.height = "1fr"
        self.view.show_lines(lines, subject, pointed, is_old)

    def mark_device(self, lens: int | None) -> None:
        if lens != self._lens:
            self._lens = lens
            self._explain()

    def to_collective(self, step: int) -> None:
        if self._page is not None:
            line = next_of(self._page.collectives, self._cursor, step)
            if line is not None:
                self.view.move_to(line)

    @property
    def instruction(self) -> str:
        """The name of the instruction under the cursor, or of the one that it ends; empty where no
        program is shown."""
        if self._page is None or self._drawn is None:
            return ""
        line = self._page.beginning(self._cursor)
        return self._drawn[0].raw.name_at(self._page.place(line))

    def to_instruction(self, name: str) -> None:
        """Put the cursor on an instruction, or where it is folded away, on the line that has it."""
        if self._page is not None and self._drawn is not None:
            self._cursor = self._page.number_at(self._drawn[0].raw.place_of(name))
            self.view.move_to(self._cursor)

    def _place_on(self, page: ProgramPage, program: ListedProgram) -> int:
        before = self._page
        if before is None or self._drawn is None or program is not self._drawn[0]:
            number = 0 if before is None else bisect_left(before.collectives, self._cursor)
            lines = page.collectives
            return lines[min(number, len(lines) - 1)] if lines else 0
        return self._cursor if type(page) is type(before) else page.number_at(before.place(self._cursor))

    def open_search(self) -> None:
        self._search = Search("", self._cursor)
        self.add_class("searching")
        field = self.query_one(Input)
        field.disabled = False
        field.value = ""
        field.focus()

    def action_leave(self) -> None:
        if self._search is not None:
            self._search = None
            self.remove_class("searching")
            self.query_one(Input).disabled = True
            self._mark()
            self.view.focus()

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool:
        """The keys of a search are those of the pane while nothing is searched."""
        return self.is_searching or action not in ("next", "leave")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._search is not None:
            self._search = Search(event.value, self._search.start)
            self._look()
            self._mark()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_next(1)

    def action_next(self, step: int) -> None:
        if self._search is not None and (line := self._search.next(self._cursor, step)) is not None:
            self.view.move_to(line)

    def _look(self) -> None:
        if self._search is not None and self._page is not None:
            self._search = self._search._replace(matches=(), is_done=False)
            self._go_through(self._page, self._search.query)

    @work(thread=True, exclusive=True, group="search")
    def _go_through(self, page: ProgramPage, query: str) -> None:
        worker = get_current_worker()
        matches: list[int] = []
        for batch in page.searchable.searched(query) if query else ():
            matches += batch
            if worker.is_cancelled:
                return

        def take() -> None:
            if self._search is None or (page, query) != (self._page, self._search.query):
                return
            self._search = self._search._replace(matches=matches, is_done=True)
            if (line := self._search.next(self._search.start - 1, 1)) is not None:
                self.view.move_to(line)
            self._mark()

        self.call_later(take)

    def _mark(self) -> None:
        search = self._search
        if self.is_program:
            self.view.mark(search.query if search else "", search.matches if search else ())
        if search is not None:
            self.query_one("#count", Static).update(Text(search.words(self._cursor)))

    def on_program_view_moved(self) -> None:
        if self.view.cursor is not None:
            self._cursor = self.view.cursor
            self._explain()
            if self._search is not None:
                self.query_one("#count", Static).update(Text(self._search.words(self._cursor)))

    def on_resize(self) -> None:
        if self.is_program:
            self._divide()

    def _divide(self) -> int:
        """Give a short program no more lines than it has; the lines that are left to the details below it."""
        room = self.size.height - 1
        details = DETAILS if self.size.height >= MANY_LINES else FEW_DETAILS
        wanted = self._page.height if self._page is not None else 0
        program = max(1, min(wanted, room - details))
        self.view.styles.height = program
        return room - program

    def _explain(self) -> None:
        if self._page is None or self._drawn is None or not self._page.height:
            return
        program, *_, palette = self._drawn
        room = self._divide()
        for width in (self.size.width, self.size.width - 1):  # a column may be the scrollbar's
            lines = [place_rule(self._cursor, self._page, max(1, width))]
            lines += line_details(program, self._page, self._cursor, max(1, width), palette, self._lens)
            if len(lines) <= room:
                break
        self.query_one("#details", LinesView).show(TextLines(lines))
