"""Where output goes: how wide the screen is and which colours it has."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli.options import MIN_WIDTH

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette

PIPE_WIDTH = 100
"""Columns where there is no terminal to ask."""


@dataclass(frozen=True)
class Screen:
    """Standard output as a page of `width` columns; `color_system` is Rich's word for its colours."""

    width: int
    color_system: str | None

    @property
    def palette(self) -> Palette:
        from shardviz.render.palette import palette_for

        return palette_for(self.color_system)

    def show(self, lines: Sequence[Text]) -> None:
        """Print lines as they are: no markup, no wrapping, no trailing blanks."""
        sys.stdout.write(self.drawn(lines))
        sys.stdout.flush()

    def drawn(self, lines: Sequence[Text]) -> str:
        """The lines as the characters that a terminal takes; none of theirs moves its cursor."""
        from rich.console import Console
        from rich.text import Text

        from shardviz.render.sanitize import printable_line

        console = Console(
            width=self.width,
            color_system=self.color_system,  # type: ignore[arg-type]
            force_terminal=self.color_system is not None,
            force_jupyter=False,
            no_color=False,
            legacy_windows=False,
        )
        with console.capture() as captured:
            console.print(Text("\n").join(map(printable_line, lines)), soft_wrap=True)
        return captured.get()


def print_json(document: Mapping[str, Any]) -> None:
    """A JSON document on stdout, one object, indented."""
    import json

    from shardviz.cli.streams import escaped_json

    ascii_only = not sys.stdout.encoding.lower().startswith("utf")
    click.echo(escaped_json(json.dumps(document, indent=2, ensure_ascii=ascii_only)))


def screen(width: int | None, color: str) -> Screen:
    """The screen as `--width` and `--color` ask, else as the terminal and the environment say."""
    if width is None:
        width = max(shutil.get_terminal_size((PIPE_WIDTH, 24)).columns, MIN_WIDTH)
    return Screen(width, color_system(color, _is_terminal(), os.environ))


def color_system(choice: str, is_terminal: bool, environ: Mapping[str, str]) -> str | None:
    """Rich's name for the colours to use, or None for none.

    `always` colours a pipe too; `auto` follows https://no-color.org, `FORCE_COLOR` and `TERM=dumb`.
    """
    term = environ.get("TERM", "")
    if choice == "never":
        return None
    if choice == "auto":
        if environ.get("NO_COLOR"):
            return None
        if not environ.get("FORCE_COLOR") and (not is_terminal or term == "dumb"):
            return None
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    if "256color" in term or term in ("xterm-kitty", "xterm-ghostty", "alacritty"):
        return "256"
    return "standard" if term and term != "dumb" else "truecolor"


def _is_terminal() -> bool:
    return sys.stdout.isatty()
