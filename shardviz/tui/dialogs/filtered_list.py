"""The base of the dialogs to choose from a list: letters narrow it, arrows choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on, work
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.dialog import HELP, Dialog
from shardviz.tui.registry import TABLES, Command, bindings

OPEN, *MOVES, CLOSE = TABLES["LIST"]


@dataclass(frozen=True)
class ListRow:
    """A line of a list, and the `value` with which the dialog is left. It is found by `words`, and stands
    below its `heading`, which is shown once for the rows that share it."""

    line: Text
    words: str
    value: Any
    heading: Text | None = None


class FilterField(Input):
    """The field above a list. The keys of commands that are `taken` are not for its text."""

    taken: Sequence[Command] = ()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        is_taken = any(key in command.keys for command in self.taken)
        return not is_taken and super().check_consume_key(key, character)


class FilteredList(Dialog):
    """A field to find lines by words, the list, and a description of the line under the cursor: beside the
    list in a broad window, else below it. It is about a `subject`. `taken` are commands whose keys would else
    be text. The rows of a `table` have all columns of the window; `kind` has its classes."""

    commands: ClassVar[Sequence[Command]] = (OPEN, MOVES[0], CLOSE)
    taken: ClassVar[Sequence[Command]] = ()
    kind: ClassVar = ""
    searching = ""
    """Words while the rows are found."""
    placeholder = "type to find"
    nothing = "Nothing matches; remove some words."
    typed_first: ClassVar = True
    """True if a text that is a row by itself is meant before those that have its words."""
    BINDINGS = bindings((*MOVES, CLOSE), priority=True)

    def __init__(self, subject: Any = None) -> None:
        super().__init__(classes=self.kind)
        self.subject = subject
        self.rows: tuple[ListRow, ...] = ()
        self._shown: tuple[ListRow, ...] = ()

    def content(self) -> Sequence[Widget]:
        about = Static(id="about", markup=False)
        choices = OptionList(markup=False, compact=True)
        choices.can_focus = False
        field = FilterField(placeholder=self.placeholder, select_on_focus=False, compact=True)
        field.taken = self.taken
        return [field, Vertical(choices, about, id="choice")]

    def check_action(self, _action: str, parameters: tuple[object, ...]) -> bool:
        """The keys of the ends of a line are for the text, once there is one."""
        return parameters not in (("first",), ("last",)) or not self.query_one(Input).value

    @property
    def all_commands(self) -> Sequence[Command]:
        return (OPEN, *self.taken, *MOVES, CLOSE, replace(HELP, usual=("f1",), shown="f1"))

    @property
    def choices(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def chosen(self) -> ListRow | None:
        index = self.choices.highlighted
        if index is None or not self._shown:
            return None
        number = self.choices.get_option_at_index(index).id
        return None if number is None else self._shown[int(number)]

    def show_rows(self, rows: Sequence[ListRow], first: Any = None) -> None:
        """Show other rows, the cursor on the one whose value is `first`."""
        self.rows = tuple(rows)
        self._narrow(first)

    def show_table(self, lines: Sequence[Text], values: Sequence[Any], first: Any = None) -> None:
        """Show a row for each value, by its line; the first line is the heading of all."""
        head, *others = lines
        rows = zip(others, values, strict=True)
        self.show_rows([ListRow(line, line.plain, value, head) for line, value in rows], first)

    @on(events.Mount)
    def _begin(self) -> None:
        if self.searching:
            self.describe(Text(self.searching, "dim"))
            self._find()

    def find(self) -> Iterator[Callable[[], object]]:
        """Find the rows of a list that is `searching`, in a thread, until the list is left: what each step
        gives is called on the screen's thread. An error takes the place of the description."""
        raise NotImplementedError

    @work(thread=True, exit_on_error=False)
    def _find(self) -> None:
        worker = get_current_worker()
        try:
            for show in self.find():
                if worker.is_cancelled:
                    return
                self.app.call_from_thread(show)
        except ShardvizError as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self.describe, Text(error_words(error)))

    def row_of(self, _typed: str) -> ListRow | None:
        """The row that a text is by itself, whatever the list has; None where it is none."""
        return None

    def about(self, _row: ListRow) -> Text:
        return Text()

    def describe(self, text: Text) -> None:
        self.query_one("#about", Static).update(text)

    @on(Input.Changed)
    def _typed(self) -> None:
        chosen = self.chosen
        self.rows = self.rows_for(self.query_one(Input).value)
        self._narrow(chosen.value if chosen is not None else None)

    def rows_for(self, _typed: str) -> tuple[ListRow, ...]:
        """The rows among which a text is looked for."""
        return self.rows

    def _narrow(self, first: Any) -> None:
        """List the rows that have the words that are typed, the text's own last. The cursor is on the one
        that is typed in full, else it stays on its row while that is listed."""
        typed = self.query_one(Input).value
        words = typed.lower().split()
        shown = [row for row in self.rows if all(word in row.words.lower() for word in words)]
        named = [row for row in shown if row.words.lower().split()[:1] == words]
        if len(named) == 1:
            first = named[0].value
        own = self.row_of(typed.strip()) if words else None
        if own is not None:
            is_listed = any(row.value == own.value for row in shown)
            shown += [] if is_listed else [own]
            first = own.value if is_listed or self.typed_first else first
        self._shown = tuple(shown)
        options: list[Option] = []
        heading, index = None, None
        for number, row in enumerate(shown):
            if row.heading is not None and row.heading != heading:
                heading = row.heading
                options.append(Option(heading, disabled=True))
            if row.value == first:
                index = len(options)
            options.append(Option(row.line, id=str(number)))
        choices = self.choices
        choices.clear_options()
        choices.add_options(options)
        if index is None:
            index = next((number for number, option in enumerate(options) if not option.disabled), None)
        choices.highlighted = index
        if index is not None and index <= 1:
            choices.scroll_home(animate=False)
        if index is None:
            self.describe_chosen()

    @on(OptionList.OptionHighlighted)
    def describe_chosen(self) -> None:
        row = self.chosen
        if row is None and self.rows:
            self.describe(Text(self.nothing))
        elif row is not None:
            self.describe(self.about(row))

    async def action_list(self, move: str) -> None:
        """Do in the list what the key would do if the list had the focus."""
        await self.choices.run_action(move)

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def action_open(self) -> None:
        row = self.chosen
        if row is not None:
            self.leave_with(row)

    def leave_with(self, row: ListRow) -> None:
        self.dismiss(row.value)
