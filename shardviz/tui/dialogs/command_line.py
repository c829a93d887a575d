"""The command line that shows the same as the screen: copied, and here to be selected."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Static

from shardviz.tui.command import Command, bindings
from shardviz.tui.dialogs.dialog import CLOSE, Dialog

COPY = Command("dialog", "copy", ("y",), "Copy", "Copy it again.", "copy again")
SAID = "Copied, where the terminal lets programs copy; else select it here."


class CommandLineDialog(Dialog):
    """Copies the line when it opens, and shows it."""

    title_text = "The same on the command line"
    commands = (COPY, CLOSE)
    BINDINGS = bindings([COPY])
    DEFAULT_CSS = """
    CommandLineDialog #line { height: auto; padding: 0 0 1 0; }
    CommandLineDialog #said { height: auto; color: $foreground; text-style: dim; }
    """

    def __init__(self, words: str) -> None:
        super().__init__(classes="fitted")
        self._words = words

    def content(self) -> Sequence[Widget]:
        return [Static(id="line"), Static(Text(SAID), id="said")]

    def on_mount(self) -> None:
        self.action_copy()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        line = self.query_one("#line", Static)
        line.update(Text(wrapped_command(self._words, max(20, line.size.width)), no_wrap=True))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._words)


def wrapped_command(words: str, width: int) -> str:
    """The command over several lines where it is too long for one, with a backslash at each break.

    An option stays beside its value, and what is longer than a line stays whole.
    """
    lines = [""]
    for piece in _pieces(words):
        if lines[-1] and len(lines[-1]) + len(piece) + 3 > width:
            lines[-1] += " \\"
            lines.append(f"  {piece}")
        else:
            lines[-1] += f" {piece}" if lines[-1] else piece
    return "\n".join(lines)


def _pieces(words: str) -> list[str]:
    """Words in quotes where they need them, options with their values."""
    found: list[str] = []
    waiting = False
    for word in shlex.split(words):
        quoted = shlex.quote(word)
        is_option = word.startswith("--")
        if waiting and not is_option:
            found[-1] += f" {quoted}"
        else:
            found.append(quoted)
        waiting = is_option and "=" not in word
    return found
