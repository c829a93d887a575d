"""The dialog that writes what is on screen to a file, and the forms in which it can be written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.segment import Segment, Segments
from rich.text import Text
from textual import on
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.errors import ShardvizError
from shardviz.forms.wording import error_words
from shardviz.render.exports import JaxProgram, Subject, Timelines, title_of
from shardviz.render.exports.html import html
from shardviz.render.exports.recorded import cast, recorded_svg
from shardviz.render.exports.script import notebook
from shardviz.render.exports.writing import free_name, target_path, write_file
from shardviz.render.page import recorder
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.tui.dialogs.dialog import Dialog
from shardviz.tui.registry import bindings, commands_of

if TYPE_CHECKING:
    from textual.screen import Screen

    from shardviz.tui.pane import Pane


WRITE, *KEYS = commands_of(
    "dialog",
    ("write", "enter", "Write", "Write the file.", "write"),
    ("form(1)", "down", "Form", "The next form.", "form", "↑↓"),
    ("form(-1)", "up", "Form", "The form before."),
    ("close", "escape", "Close", "Back to the screen.", "close", "esc"),
)


class ExportDialog(Dialog):
    """The form, a free file name, and the result. An existing file needs a second `enter`."""

    title_text = "Export"
    commands = (WRITE, *KEYS)
    BINDINGS = bindings(KEYS)
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


@dataclass(frozen=True)
class Export:
    """One form: the ending of its files, its name, a description, and the text on demand.

    `text` raises `ShardvizError` where the screen has no such form.
    """

    suffix: str
    name: str
    about: str
    text: Callable[[], str]


def exports_of(screen: Screen[Any], pane: Pane, jax_code: Callable[[], str]) -> tuple[Export, ...]:
    """All forms of the screen as it stands now, without dialogs and notifications.

    `jax_code` is the program of what is on screen.
    """
    said = screen.query("ToastRack").set(display=False)
    screen._compositor.reflow(screen, screen.size)
    strips = strips_of(screen)
    said.set(display=True)
    forms = [
        Export("svg", "SVG", "the screen, in colour", lambda: screen_svg(strips, pane.area)),
        Export("txt", "Text", "the screen, as text", lambda: _plain(strips)),
        Export("html", "HTML", "a page for browsers", lambda: html(_subject(pane))),
        Export("json", "JSON", "what it shows, as data", lambda: _document(pane)),
        Export("py", "Python", "its JAX code, to run", jax_code),
        Export("ipynb", "Notebook", "its JAX code, for Jupyter", lambda: _notebook(pane, jax_code())),
    ]
    if isinstance(pane.exported(), CollectiveRun):
        record = Export("cast", "Cast", "a recording for asciinema", lambda: cast(_subject(pane)))
        forms.insert(3, record)
    if pane.timelines:
        trace = Export("trace", "Trace", "a trace, for ui.perfetto.dev", lambda: _trace(pane))
        forms[2:3] = [replace(forms[2], text=lambda: _timeline_page(pane)), trace]
    return tuple(forms)


def strips_of(screen: Screen[Any]) -> list[Strip]:
    """The lines of a screen as they stand. The one place that asks Textual's compositor, which is its own."""
    return screen._compositor.render_strips()


def screen_svg(strips: Sequence[Strip], name: str) -> str:
    """Lines of a screen as one SVG file; `name` sets its styles apart from other pictures' on a page."""
    console = recorder(max(strip.cell_length for strip in strips))
    lines = (segment for strip in strips for segment in (*strip, Segment.line()))
    console.print(Segments(lines), end="")
    return recorded_svg(console, name)


def _plain(strips: Sequence[Strip]) -> str:
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip() + "\n"


def _subject(pane: Pane) -> Subject:
    """The subject of the pane's pages."""
    shown = pane.exported()
    return Subject(shown, title_of(shown), pane.command_line())


def _timeline_page(pane: Pane) -> str:
    """The pane's timelines as a page."""
    title = f"{title_of(pane.exported())}: what runs when"
    return html(Subject(Timelines(tuple(pane.timelines)), title, pane.command_line()))


def _trace(pane: Pane) -> str:
    from shardviz.render.times.timeline_rows import trace

    return trace(pane.timelines)


def _notebook(pane: Pane, code: str) -> str:
    """A program, cell by cell."""
    return notebook(replace(_subject(pane), shown=JaxProgram(code)))


def _document(pane: Pane) -> str:
    return json.dumps(pane.document(), indent=2, ensure_ascii=False) + "\n"
