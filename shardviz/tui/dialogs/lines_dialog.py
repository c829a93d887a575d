"""The base of the windows with a page of lines, and of those that copy a command line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from shardviz.tui.dialogs.dialog import CLOSE, HELP, Dialog
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import bindings, commands_of

LINES = commands_of("dialog", ("copy", "y", "Copy", "Copy the command line that prints the same.", "copy"))


class LinesDialog(Dialog):
    """A page of lines, which follow the width."""

    commands = (HELP, *LINES, CLOSE)
    BINDINGS = bindings(LINES)

    def content(self) -> Sequence[Widget]:
        return [LinesView()]

    def on_mount(self) -> None:
        self.query_one(LinesView).focus()
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.query_one(LinesView)
        view.show(TextLines(self.lines(max(20, view.size.width - 1))))

    def lines(self, _width: int) -> list[Text]:
        """The page at a width."""
        raise NotImplementedError

    @property
    def line(self) -> str:
        """The command line that prints the same."""
        raise NotImplementedError

    def action_copy(self) -> None:
        copy_line(self, self.line)


def copy_line(dialog: Dialog, line: str) -> None:
    """Copy a command line, and notify that."""
    dialog.app.copy_to_clipboard(line)
    dialog.notify("The command line is copied, where the terminal lets programs copy.", markup=False)
