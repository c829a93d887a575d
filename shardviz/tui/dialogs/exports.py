"""What an export writes: the screen as a picture or as text, what it shows as a page, data or a program."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.segment import Segment, Segments
from textual.strip import Strip

from shardviz.render.exports.cast import cast
from shardviz.render.exports.html import html
from shardviz.render.exports.script import notebook
from shardviz.render.exports.subject import JaxProgram, Subject, title_of
from shardviz.render.exports.svg import recorded_svg
from shardviz.render.page import recorder
from shardviz.stepping.collective_run import CollectiveRun

if TYPE_CHECKING:
    from textual.screen import Screen

    from shardviz.tui.pane import Pane


@dataclass(frozen=True)
class Export:
    """One form: the ending of its files, its name, what is in it, and the text when it is asked for.

    `text` raises `ShardvizError` where the screen has no such form.
    """

    suffix: str
    name: str
    about: str
    text: Callable[[], str]


def exports_of(screen: Screen[Any], pane: Pane, jax_code: Callable[[], str]) -> tuple[Export, ...]:
    """All forms of the screen as it stands now, without what a dialog covers later, or is said in passing.

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


def _notebook(pane: Pane, code: str) -> str:
    """A program, cell by cell."""
    return notebook(replace(_subject(pane), shown=JaxProgram(code)))


def _document(pane: Pane) -> str:
    return json.dumps(pane.document(), indent=2, ensure_ascii=False) + "\n"
