"""The JAX code that builds what is on screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widget import Widget

from shardviz.render.highlighted import highlighted
from shardviz.tui.dialogs.dialog import CLOSE, Dialog
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import Command, bindings
from shardviz.tui.themes import code_style_of

COPY = Command("dialog", "copy", ("y",), "Copy", "Copy the code.", "copy")
SAVE = Command("dialog", "save", ("s",), "Save", "Write the code to a file.", "save")


class CodeDialog(Dialog):
    """A program that runs as it is; `y` copies it, `s` writes it to a file."""

    title_text = "JAX code: runs as it is"
    commands = (COPY, SAVE, CLOSE)
    BINDINGS = bindings([COPY, SAVE])

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
