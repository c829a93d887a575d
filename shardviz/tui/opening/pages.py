"""The windows of `o`, what a command prints and a sharding in every notation, and which of them, or which
screen, shows what is opened."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain

from rich.ansi import AnsiDecoder
from rich.text import Text
from textual import on, work
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.forms import enter as entering
from shardviz.forms.share import Shared, from_string
from shardviz.notation.notations import write_all
from shardviz.render.caption import translate_view
from shardviz.render.lines import printable
from shardviz.tui.dialogs.dialog import CLOSE, HELP, CommandPage, Dialog
from shardviz.tui.lines_view import LinesView
from shardviz.tui.opening.kinds import Openable
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.state import EditorState

AGAIN, KEEP, ARRAYS = TABLES["COMMAND"]
ARRAYS_OPTION = "--arrays"


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
    """The page of a user's function, or of the program's arrays."""

    commands = (HELP, AGAIN, ARRAYS, *TABLES["PAGE"], CLOSE)
    BINDINGS = bindings([ARRAYS])

    def action_arrays(self) -> None:
        words = shlex.split(self.line)
        others = [word for word in words if word != ARRAYS_OPTION]
        self._run(shlex.join(others if others != words else [*words, ARRAYS_OPTION]))


class LineEntry(Dialog):
    """Leaves with another command line, or another text under a `title`; a `hint` stands below."""

    title_text = "Command line"
    commands = (KEEP, CLOSE)

    def __init__(self, line: str, title: str = "", hint: str = "") -> None:
        super().__init__(classes="fitted")
        self._line, self.title_text, self._hint = line, title or self.title_text, hint

    def content(self) -> Sequence[Widget]:
        field = Input(self._line, compact=True, select_on_focus=False)
        return [field, *[Static(Text(self._hint, "dim"))] * bool(self._hint)]

    @on(Input.Submitted)
    def action_keep(self) -> None:
        self.dismiss(self.query_one(Input).value)
