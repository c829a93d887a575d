"""The dialog of `o`: the files of a folder, and a field that takes a path, a command line, a string or a
sharding."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.widgets import Input

from shardviz.errors import ShardvizError, quote
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.lines import printable
from shardviz.tui.dialogs.dialog import Dialog
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.opening.kinds import READ, WORDS, Kind, Openable, listed_folder, openables, typed, why_empty
from shardviz.tui.registry import TABLES

with LazyImports():
    from shardviz.tui.opening import reading as contents

if TYPE_CHECKING:
    from shardviz.tui.opening.reading import Opened, OpenedProgram, OpeningReader
    from shardviz.tui.state import EditorState


class ReadingDialog(Dialog):
    """Reads one thing at a time; without another mesh, target or machine for those of the problem."""

    state: EditorState
    reading: OpeningReader | None = None

    def open(self, kind: Openable) -> None:
        """Read it, and leave with that."""
        self.read(kind.name, lambda reader: reader.open(kind))

    def read(self, name: str, read: Callable[[OpeningReader], Opened]) -> None:
        """Hand over what is read to `show_opened`; `name` is what it is called."""
        self.stop_reading()

        def show(text: Text) -> None:
            if not reading.is_stopped:
                self.app.call_from_thread(self.describe, text)

        self.reading = reading = contents.OpeningReader(self.state, show)
        self.describe(Text(f"reading {name} …", "dim"))
        self._read(name, read, reading)

    @work(thread=True, exit_on_error=False)
    def _read(self, name: str, read: Callable[[OpeningReader], Opened], reading: OpeningReader) -> None:
        try:
            found: Opened | ShardvizError = read(reading)
        except ShardvizError as error:
            found = error
        except Exception as error:
            found = ShardvizError(f"{quote(name)} cannot be read: {type(error).__name__}: {error}")

        def end() -> None:
            if reading.is_stopped:
                return
            self.reading = None
            if isinstance(found, ShardvizError):
                self.show_failure(found)
            else:
                self.show_opened(found)

        if not reading.is_stopped:
            self.app.call_from_thread(end)

    def describe(self, text: Text) -> None:
        """Show how far the reading is, or why it has failed."""
        raise NotImplementedError

    def show_failure(self, error: ShardvizError) -> None:
        """Say why it cannot be read."""
        self.describe(Text(f"✗ {error_words(error)}"))

    def show_opened(self, opened: Opened) -> None:
        """Leave with what was read."""
        self.dismiss(opened)

    def stop_reading(self) -> bool:
        """Stop what is being read; False where nothing is."""
        if self.reading is None:
            return False
        self.reading.stop()
        self.reading = None
        return True

    def action_close(self) -> None:
        if self.stop_reading():
            self.describe(Text("stopped; esc closes", "dim"))
        else:
            self.dismiss()

    def on_unmount(self) -> None:
        self.stop_reading()


HELP = (
    "A compiled program (HLO, StableHLO, Shardy), a folder of XLA's dumps, a function of a Python file, a "
    "report of --save, a profile of jax.profiler, a model's config.json or safetensors, a machine's TOML "
    "file, with --mesh, --target or --machine after it as after a command; or a sharding in any notation, a "
    "shardviz command line, a string that somebody has sent."
)
GUEST = "Type a sharding in any notation, a shardviz command line, or a string that somebody has sent."
(COMPLETE,) = TABLES["OPEN"]


class ReadingList(ReadingDialog, FilteredList):
    """A list whose lines are read away from the screen's thread."""

    def describe(self, text: Text) -> None:
        FilteredList.describe(self, text)


class OpenDialog(ReadingList):
    """Leaves with what was read, or, where nothing has to be read for it, with what was chosen.

    Without `has_files` only texts are opened.
    """

    title_text = "Open"
    placeholder = "a file, a folder/, a sharding, a command line"
    nothing = "No file has this name, and it is in no notation."
    typed_first = False  # the beginning of a file's name may be a sharding
    advice = HELP
    commands = (OPEN, COMPLETE, MOVES[0], CLOSE)
    taken = (COMPLETE,)
    DEFAULT_CSS = """
    OpenDialog #about { max-height: 9; }
    OpenDialog.-broad.-high OptionList { width: 60; }
    """

    def __init__(self, state: EditorState, has_files: bool) -> None:
        super().__init__()
        self.state, self._has_files = state, has_files
        self._folder = ""

    def on_mount(self) -> None:
        self.show_rows(self._rows_of(""))
        if not self.rows:
            self.describe(Text(self.advice if self._has_files else GUEST, "dim"))

    def _rows_of(self, folder: str) -> tuple[ListRow, ...]:
        found = openables(folder) if self._has_files else ()
        return tuple(_row(kind) for kind in found if self.takes(kind.kind))

    def takes(self, _kind: Kind) -> bool:
        """Return whether files of a kind are listed."""
        return True

    def rows_for(self, typed: str) -> tuple[ListRow, ...]:
        folder = listed_folder(typed.strip())
        if folder == self._folder:
            return self.rows
        self._folder = folder
        rows = self._rows_of(folder)
        if self._has_files and not rows:
            self.describe(Text(why_empty(folder)))
        return rows

    def row_of(self, text: str) -> ListRow | None:
        kind = typed(text, self._has_files)
        return None if kind is None or not self.takes(kind.kind) else _row(kind)

    def about(self, row: ListRow) -> Text:
        kind: Openable = row.value
        name = printable(kind.name)
        return Text.assemble((f"{name}\n", "bold"), WORDS[kind.kind], (f"\n\n{self.advice}", "dim"))

    def action_complete(self) -> None:
        """Write out the beginning that all listed names share which begin as what is typed, or the name under
        the cursor."""
        field, chosen = self.query_one(Input), self.chosen
        text = field.value.strip()
        names = [row.value.name for row in self.rows if row.value.name.startswith(text)]
        shared = os.path.commonprefix(names)  # noqa: RUF071 – of characters
        if len(shared) > len(text):
            self._write(shared)
        elif chosen is not None and chosen in self.rows:
            self._write(chosen.value.name)

    def _write(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)

    def leave_with(self, row: ListRow) -> None:
        kind: Openable = row.value
        if kind.kind == "folder":
            self._write(kind.name)
        elif kind.kind == "source":
            self._write(f"{kind.name}:")
        elif kind.kind in READ:
            self.open(kind)
        else:
            self.dismiss(kind)


class CompareDialog(OpenDialog):
    """Leaves with the changes from the program that is open to another one."""

    placeholder = "a file, a folder/, FILE.py:FUNCTION"
    nothing = "No file has this name."
    advice = (
        "Another compiled program, a function, a report of --save, a folder of XLA's dumps: the one that is "
        "open is the old one, this the new one."
    )

    def __init__(self, state: EditorState, old: OpenedProgram) -> None:
        super().__init__(state, has_files=True)
        self._old = old
        self.title_text = f"Compare {old.found.name} with"

    def takes(self, kind: Kind) -> bool:
        return kind in ("program", "saved", "source", "function", "modules", "folder")

    def open(self, kind: Openable) -> None:
        self.read(kind.name, lambda reader: reader.changes_from(self._old, kind))


def _row(kind: Openable) -> ListRow:
    line = Text.assemble((printable(kind.label), "bold"), "  ", (WORDS[kind.kind], "dim"))
    return ListRow(line, kind.label, kind)
