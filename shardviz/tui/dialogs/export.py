"""Write what is on screen to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.drafts.wording import error_words
from shardviz.errors import ShardvizError
from shardviz.render.exports.writing import free_name, target_path, write_file
from shardviz.tui.dialogs.dialog import Dialog
from shardviz.tui.dialogs.exports import Export
from shardviz.tui.registry import Command, bindings

NEXT = Command("dialog", "form(1)", ("down",), "Form", "The next form.", "form", "↑↓")
PREVIOUS = Command("dialog", "form(-1)", ("up",), "Form", "The form before.")
WRITE = Command("dialog", "write", ("enter",), "Write", "Write the file.", "write")
CLOSE = Command("dialog", "close", ("escape",), "Close", "Back to the screen.", "close", "esc")


class ExportDialog(Dialog):
    """A form, a file name that is free, and what became of it. An existing file needs a second `enter`."""

    title_text = "Export"
    commands = (WRITE, NEXT, CLOSE)
    BINDINGS = bindings([NEXT, PREVIOUS, CLOSE])
    DEFAULT_CSS = """
    ExportDialog #forms { height: auto; padding-bottom: 1; }
    ExportDialog Input { border: none; height: 1; padding: 0; background: $panel; }
    ExportDialog #said { height: auto; min-height: 1; }
    """

    def __init__(self, exports: Sequence[Export], stem: str, suffix: str = "svg") -> None:
        super().__init__(classes="fitted")
        self._exports, self._stem = exports, stem
        self._suffix = suffix
        self._confirmed: Path | None = None

    def content(self) -> Sequence[Widget]:
        return [
            Static(id="forms"),
            Input(free_name(self._stem, self._suffix), select_on_focus=False, compact=True),
            Static(id="said"),
        ]

    def on_mount(self) -> None:
        self._draw()
        self.query_one(Input).focus()

    def action_form(self, step: int) -> None:
        """Another form, and its ending on the name."""
        suffixes = [export.suffix for export in self._exports]
        place = suffixes.index(self._suffix) + step
        self._suffix = suffixes[place % len(suffixes)]
        field = self.query_one(Input)
        name, dot, ending = field.value.rpartition(".")
        is_proposed = field.value == free_name(self._stem, ending)
        base = name if dot and ending in suffixes else field.value
        field.value = free_name(self._stem, self._suffix) if is_proposed else f"{base}.{self._suffix}"
        field.cursor_position = len(field.value)
        self._draw()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        """The ending that is typed chooses the form."""
        ending = event.value.rpartition(".")[2]
        if ending in [export.suffix for export in self._exports]:
            self._suffix = ending
        self._confirmed = None
        self._say("")
        self._draw()

    @on(Input.Submitted)
    def _write(self, event: Input.Submitted) -> None:
        try:
            path = target_path(event.value)
            if os.path.lexists(path) and path != self._confirmed:
                self._confirmed = path
                self._say(f"{path} is there already: enter again to overwrite it.", "$warning")
                return
            export = next(each for each in self._exports if each.suffix == self._suffix)
            write_file(path, export.text())
        except ShardvizError as error:
            self._say(f"✗ {error_words(error)}", "$error")
            return
        self.app.notify(f"{export.name} written to {path.resolve()}", markup=False)
        self.dismiss()

    def _say(self, text: str, colour: str = "$foreground") -> None:
        said = self.query_one("#said", Static)
        said.styles.color = self.app.theme_variables[colour[1:]]
        said.update(Text(text))

    def _draw(self) -> None:
        lines = Text(no_wrap=True, overflow="ellipsis")
        for export in self._exports:
            chosen = export.suffix == self._suffix
            style = "bold" if chosen else ""
            lines.append(f"{'▸' if chosen else ' '} {export.name:<10}", style)
            lines.append(f"{export.about}\n", "" if chosen else "dim")
        lines.rstrip()
        self.query_one("#forms", Static).update(lines)
