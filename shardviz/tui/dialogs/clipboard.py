"""The dialogs to copy from: the JAX code of what is on screen, the command lines that show or open it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from shardviz.errors import QuestionError
from shardviz.forms.share import Shared, to_string
from shardviz.forms.wording import error_words
from shardviz.render.page import highlighted
from shardviz.tui.dialogs.dialog import CLOSE, Dialog
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import bindings, commands_of
from shardviz.tui.themes import code_style_of

CODE = commands_of(
    "dialog",
    ("copy", "y", "Copy", "Copy the code.", "copy"),
    ("save", "s", "Save", "Write the code to a file.", "save"),
)
COPIES = commands_of(
    "dialog",
    ("copy", "y", "Copy", "Copy the command line again.", "copy"),
    ("copy_string", "s", "Copy string", "Copy the line that opens it.", "copy string"),
)
WHERE = ", where the terminal lets programs copy; else select it here."
COPIED = f"The command line is copied{WHERE}"
STRING_COPIED = f"The line with the string is copied{WHERE}"
OPENS = "shardviz tui --from"


class CodeDialog(Dialog):
    """A program that runs as it is; `y` copies it, `s` writes it to a file."""

    title_text = "JAX code: runs as it is"
    commands = (*CODE, CLOSE)
    BINDINGS = bindings(CODE)

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def content(self) -> Sequence[Widget]:
        return [LinesView(TextLines(highlighted(self._code, code_style_of(self.app))))]

    def on_mount(self) -> None:
        self.query_one(LinesView).focus()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._code)
        self.notify("The code is copied, where the terminal lets programs copy.", markup=False)

    async def action_save(self) -> None:
        self.dismiss()
        await self.app.run_action("app.export('py')")


class CommandLineDialog(Dialog):
    """Copies the command line when it opens; `s` copies what opens the same screen elsewhere."""

    title_text = "The same on the command line"
    commands = (*COPIES, CLOSE)
    BINDINGS = bindings(COPIES)
    DEFAULT_CSS = """
    CommandLineDialog.-wide.-high.fitted > #window, CommandLineDialog.-broad.-high.fitted > #window {
        width: 100%; max-width: 100%; border-left: none; border-right: none; padding: 0;
    }
    CommandLineDialog VerticalScroll { height: auto; max-height: 1fr; }
    CommandLineDialog .line { height: auto; padding: 0 0 1 0; }
    CommandLineDialog .about { height: 1; text-style: bold; }
    CommandLineDialog #said { height: auto; color: $foreground; text-style: dim; }
    """

    def __init__(self, words: str, shared: Shared) -> None:
        super().__init__(classes="fitted")
        self._words = words
        self._problem = ""
        try:
            self._string = to_string(shared)
        except QuestionError as error:
            self._string, self._problem = "", error_words(error)

    def content(self) -> Sequence[Widget]:
        return [
            VerticalScroll(
                Static(id="line", classes="line"),
                Static(Text("To open it as it stands, elsewhere", no_wrap=True), classes="about"),
                Static(id="string", classes="line"),
                Static(id="said"),
            )
        ]

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.action_copy()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        line, string = self.query_one("#line", Static), self.query_one("#string", Static)
        line.update(Text(wrapped_command(self._words, max(20, line.size.width)), no_wrap=True))
        shown = self._problem or wrapped_string(self._string, max(20, string.size.width))
        string.update(Text(shown, no_wrap=not self._problem))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._words)
        self.query_one("#said", Static).update(Text(COPIED))

    def action_copy_string(self) -> None:
        if self._string:
            self.app.copy_to_clipboard(f"{OPENS} {self._string}")
            self.query_one("#said", Static).update(Text(STRING_COPIED))


def wrapped_string(string: str, width: int) -> str:
    """The line that opens a shared string. Over several lines it is in quotes, since a line break inside does
    not matter then: what is selected on screen can be pasted."""
    if len(OPENS) + 1 + len(string) <= width:
        return f"{OPENS} {string}"
    text = f"{OPENS} '{string}'"
    return "\n".join(text[start : start + width] for start in range(0, len(text), width))


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
