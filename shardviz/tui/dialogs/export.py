"""The dialog that writes what is on screen to a file, and the forms in which it can be written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.segment import Segment, Segments
from rich.text import Text
from textual import on
from textual.content import Content
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.share import Shared, to_string
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.command_lines import command_lines
from shardviz.render.exports import Subject, title_of
from shardviz.render.exports.pictures import html, recorded_svg, recorder
from shardviz.render.exports.script import notebook
from shardviz.render.lines import highlighted, sentence
from shardviz.tui.dialogs.dialog import CLOSE, Dialog, LinesDialog
from shardviz.tui.pane import Pane
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.themes import code_style_of
from shardviz.user_files import free_name, target_path, write_file

with LazyImports():
    from shardviz.render.times import timeline_rows


WRITE, *KEYS = TABLES["EXPORT"]


class ExportDialog(Dialog):
    """The form, a free file name, and the result. An existing file needs a second `enter`."""

    title_text = "Export"
    commands = (WRITE, *KEYS)
    BINDINGS = bindings(KEYS)

    def __init__(self, exports: Sequence[Export], stem: str, suffix: str = "svg") -> None:
        super().__init__(classes="fitted")
        self._exports = {export.suffix: export for export in exports}
        self._stem, self._suffix = stem, suffix
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
        suffixes = [*self._exports]
        index = suffixes.index(self._suffix) + step
        self._suffix = suffixes[index % len(suffixes)]
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
        if ending in self._exports:
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
                self._say(f"{path} already exists: press enter again to overwrite it.", "$warning")
                return
            export = self._exports[self._suffix]
            write_file(path, export.text())
        except ShardvizError as error:
            self._say(f"✗ {error_words(error)}", "$error")
            return
        self.app.notify(f"{export.name} written to {path.resolve()}")
        self.dismiss()

    def _say(self, text: str, colour: str = "$foreground") -> None:
        self.query_one("#said", Static).update(Content.styled(text, colour))

    def _draw(self) -> None:
        lines = Text(no_wrap=True, overflow="ellipsis")
        for suffix, export in self._exports.items():
            chosen = suffix == self._suffix
            lines.append(f"{'▸' if chosen else ' '} {export.name:<10}", "bold" if chosen else "")
            lines.append(f"{export.about}\n", "" if chosen else "dim")
        lines.rstrip()
        self.query_one("#forms", Static).update(lines)


@dataclass(frozen=True)
class Export:
    """One form: the ending of its files, its name, a description, and the text on demand, which raises
    `ShardvizError` where the screen has no such form."""

    suffix: str
    name: str
    about: str
    text: Callable[[], str]


def exports_of(screen: Screen[Any], pane: Pane, jax_code: Callable[[], str]) -> tuple[Export, ...]:
    """All forms of a screen as it stands, without dialogs and notifications; `jax_code` is its program."""
    said = screen.query("ToastRack").set(display=False)
    screen._compositor.reflow(screen, screen.size)
    strips = strips_of(screen)
    said.set(display=True)

    def page() -> str:
        shown: Any = pane.exported()
        title = title_of(shown)
        if pane.timelines:
            shown, title = tuple(pane.timelines), f"{title}: what runs when"
        return html(Subject(shown, title, pane.command_line(), placed=pane.state.resolved.placed))

    def jupyter() -> str:
        return notebook(Subject(jax_code(), title_of(pane.exported()), pane.command_line()))

    plain = "\n".join(strip.text.rstrip() for strip in strips).rstrip() + "\n"

    def data() -> str:
        return json.dumps(pane.document(), indent=2, ensure_ascii=False) + "\n"

    forms = [
        Export("svg", "SVG", "the screen, in colour", lambda: screen_svg(strips, pane.area)),
        Export("txt", "Text", "the screen, as text", lambda: plain),
        Export("html", "HTML", "a page for browsers", page),
    ]
    if pane.timelines:
        trace = partial(timeline_rows.trace, pane.timelines)
        forms.append(Export("trace", "Trace", "a trace, for ui.perfetto.dev", trace))
    return (
        *forms,
        Export("json", "JSON", "its data, as JSON", data),
        Export("py", "Python", "its JAX code, to run", jax_code),
        Export("ipynb", "Notebook", "its JAX code, for Jupyter", jupyter),
    )


def strips_of(screen: Screen[Any]) -> list[Strip]:
    """The lines of a screen as they stand. The one place that asks Textual's compositor, which is its own."""
    return screen._compositor.render_strips()


def screen_svg(strips: Sequence[Strip], name: str) -> str:
    """Lines of a screen as one SVG file; `name` sets its styles apart from other pictures' on a page."""
    console = recorder(max(strip.cell_length for strip in strips))
    lines = (segment for strip in strips for segment in (*strip, Segment.line()))
    console.print(Segments(lines), end="")
    return recorded_svg(console, name)


CODE, COPIES = TABLES["CODE"], TABLES["COPIES"]
WHERE = "; otherwise select it here."
OPENS = "shardviz tui --from"


class CodeDialog(LinesDialog):
    """A program that runs as it is; `y` copies it, `s` writes it to a file."""

    title_text = "JAX code: runs unchanged"
    commands = (*CODE, CLOSE)
    BINDINGS = bindings(CODE)

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def lines(self, _width: int) -> list[Text]:
        return highlighted(self._code, code_style_of(self.app))

    def action_copy(self) -> None:
        self.copy("Code", self._code)

    async def action_save(self) -> None:
        self.dismiss()
        await self.app.run_action("app.window('export', 'py')")


class CommandLineDialog(LinesDialog):
    """Copies the command line when it opens; `s` copies what opens the same screen elsewhere."""

    title_text = "The same on the command line"
    commands = (*COPIES, CLOSE)
    BINDINGS = bindings(COPIES)

    def __init__(self, words: str, shared: Shared) -> None:
        super().__init__()
        self._words = words
        try:
            self._string, self._problem = to_string(shared), ""
        except QuestionError as error:
            self._string, self._problem = "", error_words(error)

    def on_mount(self) -> None:
        super().on_mount()
        self.action_copy()

    def lines(self, width: int) -> list[Text]:
        own = sentence(self._problem, width) or [*Text(wrapped_string(self._string, width)).split()]
        line = [Text(words) for words in command_lines(self._words, width)]
        return [*line, Text(), Text("To open it elsewhere", "bold"), *own]

    def action_copy(self) -> None:
        self.copy("Command line", self._words, WHERE)

    def action_copy_string(self) -> None:
        if self._string:
            self.copy("Command line with the string", f"{OPENS} {self._string}", WHERE)


def wrapped_string(string: str, width: int) -> str:
    """The line that opens a shared string. Over several lines it is in quotes, since a line break inside does
    not matter then: what is selected on screen can be pasted."""
    if len(OPENS) + 1 + len(string) <= width:
        return f"{OPENS} {string}"
    text = f"{OPENS} '{string}'"
    return "\n".join(text[start : start + width] for start in range(0, len(text), width))
