"""The dialog of `o`: the files of a folder, and a field that takes a path, a command line, a string or a
sharding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.widgets import Input
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.opening.kinds import WORDS, Openable, openables, typed
from shardviz.units import human_bytes

if TYPE_CHECKING:
    from shardviz.tui.opening.reading import Opened
    from shardviz.tui.state import EditorState

    Progress = Callable[[int, int], None]

HELP = (
    "A compiled program (HLO, StableHLO, Shardy), a folder of XLA's dumps, a profile of jax.profiler, a "
    "model's config.json or safetensors, a machine's TOML file; or type a sharding in any notation, a "
    "shardviz command line, a string that somebody has sent."
)
GUEST = "Type a sharding in any notation, a shardviz command line, or a string that somebody has sent."


class ReadingList(FilteredList):
    """A list whose lines are read away from the screen's thread; what cannot be read leaves it open."""

    @work(thread=True, exclusive=True, exit_on_error=False)
    def read(self, name: str, reader: Callable[[Progress], Opened]) -> None:
        """Leave with what the reader returns."""
        worker = get_current_worker()

        def show(text: Text) -> None:
            if not worker.is_cancelled:
                self.app.call_from_thread(self.describe, text)

        show(Text(f"reading {name} …", "dim"))
        try:
            opened = reader(lambda done, size: show(Text(progress_words(name, done, size), "dim")))
        except ShardvizError as error:
            show(Text(f"✗ {error_words(error)}"))
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self.dismiss, opened)


def progress_words(name: str, done: int, size: int) -> str:
    """``reading traces: 12 MiB of 40 MiB …``."""
    return f"reading {name}: {human_bytes(done)} of {human_bytes(size)} …"


class OpenDialog(ReadingList):
    """Leaves with what was read, or, where nothing has to be read for it, with what was chosen.

    Without `has_files` only texts are opened.
    """

    title_text = "Open"
    placeholder = "a file, a folder/, a sharding, a command line"
    nothing = "No file has this name, and it is in no notation."
    DEFAULT_CSS = """
    OpenDialog #about { max-height: 8; }
    OpenDialog.-broad.-high OptionList { width: 60; }
    """

    def __init__(self, state: EditorState, has_files: bool) -> None:
        super().__init__()
        self._state, self._has_files = state, has_files
        self._folder = ""

    def on_mount(self) -> None:
        self.show_rows(self._rows_of(""))
        if not self.rows:
            self.describe(Text(HELP if self._has_files else GUEST, "dim"))

    def _rows_of(self, folder: str) -> tuple[ListRow, ...]:
        return tuple(_row(each) for each in openables(folder)) if self._has_files else ()

    def rows_for(self, typed: str) -> tuple[ListRow, ...]:
        folder = typed[: typed.rfind("/") + 1]
        if folder == self._folder:
            return self.rows
        self._folder = folder
        return self._rows_of(folder)

    def row_of(self, text: str) -> ListRow | None:
        found = typed(text, self._has_files)
        return None if found is None else _row(found)

    def about(self, row: ListRow) -> Text:
        return Text.assemble((f"{row.value.name}\n", "bold"), WORDS[row.value.kind], ("\n\n" + HELP, "dim"))

    def leave_with(self, row: ListRow) -> None:
        found: Openable = row.value
        field = self.query_one(Input)
        if found.kind == "folder":
            field.value = found.name
            field.cursor_position = len(found.name)
        elif found.kind in ("program", "modules", "profile"):
            self.read(found.name, partial(self._opened, found))
        else:
            self.dismiss(found)

    def _opened(self, found: Openable, tell: Progress) -> Opened:
        from shardviz.tui.opening.reading import open_modules, open_profile, open_program

        resolved = self._state.resolved
        if found.kind == "program":
            return open_program(found.name, resolved.machine)
        if found.kind == "modules":
            return open_modules(found.name, resolved.machine)
        named = resolved.machine if resolved.named is not None else None
        return open_profile(found.name, named, self._state.queries.worker, tell)


def _row(found: Openable) -> ListRow:
    return ListRow(Text.assemble((found.name, "bold"), "  ", (WORDS[found.kind], "dim")), found.name, found)
