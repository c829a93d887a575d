"""The windows of `o`, what a command prints, the arrays of its program and a sharding in every notation, and
which of them, or which screen, shows what is opened."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.ansi import AnsiDecoder
from rich.text import Text
from textual import on, work
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.errors import QuestionError
from shardviz.forms import enter as entering
from shardviz.forms.share import Shared, from_string
from shardviz.lazy_names import LazyImports
from shardviz.notation.notations import write_all
from shardviz.render.caption import translate_view
from shardviz.render.lines import printable
from shardviz.tui.dialogs.dialog import CLOSE, HELP, CommandPage, Dialog
from shardviz.tui.dialogs.filtered_list import MOVES, FilteredList, ListRow
from shardviz.tui.lines_view import LinesView
from shardviz.tui.opening.kinds import Openable
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.state import EditorState

with LazyImports():
    from shardviz.documents import programs as documents
    from shardviz.render.programs import array_table
    from shardviz.reports import arrays as program_arrays

if TYPE_CHECKING:
    from shardviz.reports.arrays import ProgramArray

AGAIN, KEEP, ARRAYS = TABLES["COMMAND"]


def shown_by(opened: Openable, state: EditorState) -> Dialog | Shared:
    """The window that shows something, or the problem or lesson that it is, with its screen, empty for the
    one that is shown. Raises `ShardvizError` for what cannot be read."""
    name = opened.name
    if opened.kind == "notation":
        return TranslationDialog(name)
    hardware = (target.name for target in state.resolved.targets if target.machine is not None)
    if line := opened.command(str(state.resolved.problem.mesh), next(hardware, "cpu")):
        return ProgramDialog(line) if opened.kind == "function" else CommandDialog(line)
    if opened.kind == "line":
        form = entering.enter(state.history.draft, "einsum", name)
        return Shared(form, "" if form.collective is None else "step")
    return from_string(name)


class TranslationDialog(CommandPage):
    """A sharding in every notation."""

    title_text = "In every notation"

    def __init__(self, text: str) -> None:
        super().__init__(shlex.join(["shardviz", "translate", text]))
        self._text = text

    def lines(self, width: int) -> list[Text]:
        notation, readings, context = entering.read_any(self._text)
        written = [write_all(reading, context) for reading in readings]
        return translate_view(readings, notation, written, context.mesh, width, self.palette)


class CommandDialog(CommandPage):
    """The page of a command, whose line `enter` edits."""

    title_text = "Output of the command"
    commands = (HELP, AGAIN, *TABLES["PAGE"], CLOSE)
    BINDINGS = bindings([AGAIN])

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self._printed = [Text()]
        self._process: subprocess.Popen[bytes] | None = None

    def lines(self, width: int) -> list[Text]:
        head = Text(printable(self.line), "bold", overflow="ellipsis", no_wrap=True)
        head.truncate(width, overflow="ellipsis")
        lines = (line.wrap(self.app.console, width) for line in self._printed)
        return [head, Text(), *chain.from_iterable(lines)]

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self._run, self.line)

    def action_again(self) -> None:
        self.app.push_screen(LineEntry(self.line), self._run)

    def _run(self, line: str | None) -> None:
        """Run a line, and no longer the one before."""
        if line is None:
            return
        self.line = line
        self._stop()
        self._show("running …")
        try:
            words = shlex.split(self.line)
        except ValueError as error:
            self._show(f"✗ The command line cannot be read: {error}.")
            return
        # Of the themes on a bright ground the terminal's sixteen colours are the ones that are told apart.
        bright = {} if self.app.current_theme.dark else {"COLORTERM": "", "TERM": "xterm"}
        size = {"COLUMNS": str(max(40, self.query_one(LinesView).size.width - 1)), "FORCE_COLOR": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "shardviz", *words[words[:1] == ["shardviz"] :]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **bright, **size},
        )
        self._wait(self._process)

    @work(thread=True)
    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        said = [text.decode("utf-8", "replace").rstrip() for text in process.communicate() if text]
        if process is self._process:
            self.call_later(self._show, "\n".join(said))

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def on_unmount(self) -> None:
        self._stop()

    def _show(self, text: str) -> None:
        self._printed = [*AnsiDecoder().decode(text)]
        self._draw()


class ProgramDialog(CommandDialog):
    """The page of a user's function."""

    commands = (HELP, AGAIN, ARRAYS, *TABLES["PAGE"], CLOSE)
    BINDINGS = bindings([ARRAYS])

    def action_arrays(self) -> None:
        self.app.push_screen(ArraysDialog(shlex.split(self.line)[1:]))


class LineEntry(Dialog):
    """Leaves with another command line, or another text under a `title`."""

    title_text = "Command line"
    commands = (KEEP, CLOSE)

    def __init__(self, line: str, title: str = "") -> None:
        super().__init__(classes="fitted")
        self._line, self.title_text = line, title or self.title_text

    def content(self) -> Sequence[Widget]:
        return [Input(self._line, compact=True, select_on_focus=False)]

    @on(Input.Submitted)
    def action_keep(self) -> None:
        self.dismiss(self.query_one(Input).value)


(SORT,) = TABLES["ARRAYS"]
ORDERS: dict[str, Callable[[Sequence[ProgramArray]], Any]] = {
    "bytes": lambda group: -sum(one.bytes for one in group),
    "waste": lambda group: -sum(mark.bytes for one in group for mark in one.marks),
    "copies": lambda group: -(group[0].copies or 0),
    "kind": lambda group: group[0].kind,
    "name": lambda group: group[0].name,
}
"""What rows are sorted by, in turn."""


class ArraysDialog(FilteredList):
    """Every array of the program of a command line, alike ones of several layers in one row."""

    title_text = "Arrays"
    placeholder = "a name, a spec, a dtype, replicated, padded, host, …"
    nothing = "No array matches; remove some words."
    searching = "compiling …"
    commands = (MOVES[0], SORT, CLOSE)
    taken = (SORT,)
    is_table = True

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self._words, self._orders = words, [*ORDERS]
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: Sequence[Sequence[ProgramArray]] = ()

    def find(self) -> Iterator[Callable[[], object]]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", "-m", "shardviz", *self._words, "--arrays", "--json"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        out, error = self._process.communicate()
        try:
            arrays, self._mesh = documents.read_arrays(json.loads(out))
        except (ValueError, StopIteration):
            raise QuestionError(error.decode(errors="replace").strip() or "it has no program") from None
        self._groups = program_arrays.alike_arrays(arrays)
        yield self._show

    def _show(self) -> None:
        groups = sorted(self._groups, key=ORDERS[self._orders[0]])
        self.query_one(".title", Static).update(Text(f"Arrays by {self._orders[0]}"))
        lines = array_table.array_rows(groups, self._mesh, self.palette, self.size.width)
        self.show_table(lines, groups, self.chosen and self.chosen.value)

    def action_sort(self) -> None:
        if self._groups:
            self._orders.append(self._orders.pop(0))
            self._show()

    def about(self, row: ListRow) -> Text:
        width = self.query_one("#choice").content_size.width
        return Text("\n").join(array_table.array_details(row.value, width))

    def leave_with(self, _row: ListRow) -> None:
        """Stay: all of an array is shown."""

    def on_unmount(self) -> None:
        if self._process is not None:
            self._process.kill()
