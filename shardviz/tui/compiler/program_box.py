"""A program on a page: cursor, folding, search, and what there is to say of the cursor's line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from shardviz.render.programs.program_pages import line_details, next_of, place_rule
from shardviz.tui.compiler.program_view import ProgramView
from shardviz.tui.compiler.search import Search
from shardviz.tui.compiler.search_line import SearchLine
from shardviz.tui.lines_view import LinesView, TextLines

if TYPE_CHECKING:
    from shardviz.render.palette import Palette
    from shardviz.render.programs.program_pages import ListedProgram, ProgramPage

Drawn = tuple["ListedProgram", bool, int, "Palette"]
"""What a page was made of: the program, whether folded, the width, and the colours."""
MANY_LINES, DETAILS, FEW_DETAILS = 18, 6, 4
"""A box of so many lines has this many for what there is to say of the cursor's, a lower one fewer."""


class ProgramBox(Vertical):
    """Shows a program, or other lines in its place. `folded`: the lines for people, not all of the text."""

    DEFAULT_CSS = """
    ProgramBox > #heading { height: 1; }
    ProgramBox > #details { overflow-x: hidden; }
    ProgramBox.other > #details { display: none; }
    ProgramBox.searching > #heading { display: none; }
    """

    class Matched(Message):
        """A search has gone through the page."""

        def __init__(self, page: ProgramPage, query: str, matches: Sequence[int]) -> None:
            super().__init__()
            self.page, self.query, self.matches = page, query, matches

    def __init__(self) -> None:
        super().__init__()
        self.folded = True
        self._page: ProgramPage | None = None
        self._drawn: Drawn | None = None
        self._cursor = 0
        self._search: Search | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="heading")
        yield SearchLine()
        yield ProgramView()
        yield LinesView(id="details")

    @property
    def view(self) -> ProgramView:
        """The lines."""
        return self.query_one(ProgramView)

    @property
    def is_program(self) -> bool:
        """Whether a program is shown, and not other lines."""
        return self._page is not None and not self.has_class("other")

    @property
    def is_searching(self) -> bool:
        """Whether the text of a search is being typed."""
        return self._search is not None

    def title(self, text: Text) -> None:
        """Show a line above the page."""
        text.truncate(max(1, self.size.width), overflow="ellipsis")
        self.query_one("#heading", Static).update(text, layout=False)

    def show_program(self, program: ListedProgram, palette: Palette, is_old: bool) -> None:
        """Show a program.

        The cursor is on the collective with the same number as before, at first on the first; in the same
        program it is where it was.
        """
        self.remove_class("other")
        drawn = program, self.folded, self.view.room, palette
        if self._page is None or self._drawn is None or not _same(drawn, self._drawn):
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
        self.leave_search()
        self.add_class("other")
        self.view.styles.height = "1fr"
        self.view.show_lines(lines, subject, pointed, is_old)

    def to_collective(self, step: int) -> None:
        """To the next collective, or the one before."""
        if self._page is not None:
            line = next_of(self._page.collectives, self._cursor, step)
            if line is not None:
                self.view.move_to(line)

    def _place_on(self, page: ProgramPage, program: ListedProgram) -> int:
        """The line of a new page for the cursor."""
        before = self._page
        if before is None or self._drawn is None or program is not self._drawn[0]:
            number = 0 if before is None else bisect_left(before.collectives, self._cursor)
            lines = page.collectives
            return lines[min(number, len(lines) - 1)] if lines else 0
        return self._cursor if type(page) is type(before) else page.number_at(before.place(self._cursor))

    def open_search(self) -> None:
        """Begin to search."""
        self.add_class("searching")
        self._search = Search("", self._cursor)
        self.query_one(SearchLine).open()

    def leave_search(self) -> None:
        """End the search; the cursor stays where it is."""
        if self._search is not None:
            self._search = None
            self.remove_class("searching")
            self.query_one(SearchLine).close()
            self._mark()
            self.view.focus()

    def on_search_line_typed(self, event: SearchLine.Typed) -> None:
        if self._search is not None:
            self._search = Search(event.query, self._search.start)
            self._look()
            self._mark()

    def on_search_line_next(self, event: SearchLine.Next) -> None:
        line = self._search.next(self._cursor, event.step) if self._search is not None else None
        if line is not None:
            self.view.move_to(line)

    def on_search_line_left(self) -> None:
        self.leave_search()

    def _look(self) -> None:
        """Begin to go through the page for what is searched."""
        if self._search is not None and self._page is not None:
            self._search = replace(self._search, matches=(), is_done=False)
            self._go_through(self._page, self._search.query)

    @work(thread=True, exclusive=True, group="search")
    def _go_through(self, page: ProgramPage, query: str) -> None:
        worker = get_current_worker()
        matches: list[int] = []
        for found in page.searchable.searched(query) if query else ():
            matches += found
            if worker.is_cancelled:
                return
        self.post_message(self.Matched(page, query, matches))

    def on_program_box_matched(self, event: Matched) -> None:
        if self._search is None or (event.page, event.query) != (self._page, self._search.query):
            return
        self._search = replace(self._search, matches=event.matches, is_done=True)
        line = self._search.first()
        if line is not None:
            self.view.move_to(line)
        self._mark()

    def _mark(self) -> None:
        """Show the matches, and how many there are."""
        search = self._search
        if self.is_program:
            self.view.mark(search.query if search else "", search.matches if search else ())
        if search is not None:
            self.query_one(SearchLine).tell(search.words(self._cursor))

    def on_program_view_moved(self) -> None:
        if self.view.cursor is not None:
            self._cursor = self.view.cursor
            self._explain()
            if self._search is not None:
                self.query_one(SearchLine).tell(self._search.words(self._cursor))

    def on_resize(self) -> None:
        if self.is_program:
            self._divide()

    def _divide(self) -> int:
        """Give a short program no more lines than it has: what is said of the cursor's stands below it.

        The lines that are left to that.
        """
        room = self.size.height - 1
        details = DETAILS if self.size.height >= MANY_LINES else FEW_DETAILS
        wanted = self._page.height if self._page is not None else 0
        program = max(1, min(wanted, room - details))
        self.view.styles.height = program
        return room - program

    def _explain(self) -> None:
        """What there is to say of the cursor's line."""
        if self._page is None or self._drawn is None or not self._page.height:
            return
        program, *_, palette = self._drawn
        room = self._divide()
        for width in (self.size.width, self.size.width - 1):  # a column may be the scrollbar's
            lines = [place_rule(self._cursor, self._page, max(1, width))]
            lines += line_details(program, self._page, self._cursor, max(1, width), palette)
            if len(lines) <= room:
                break
        self.query_one("#details", LinesView).show(TextLines(lines))


def _same(drawn: Drawn, before: Drawn) -> bool:
    """Whether no other page is needed; programs, which may be long, are told apart by identity."""
    return drawn[0] is before[0] and drawn[1:] == before[1:]
