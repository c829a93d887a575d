"""The answers of commands: on stdout pages and JSON; on stderr errors with their hints, notes, and one line
of progress, on a terminal only, which is gone when the work is over."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shardviz.cli.process import CLEAR_LINE
from shardviz.cli.streams import escaped_json
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.render import lines as render_lines, palette as palettes

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.compiler import CompilerRequest

T = TypeVar("T")

MIN_WIDTH = 40
"""Columns below which pictures cannot be drawn."""
PIPE_WIDTH = 100
"""Columns where there is no terminal to ask."""
TICK_S = 0.1
PATIENCE_S = 0.5
"""Shorter work shows no progress."""


@dataclass(frozen=True)
class CommandOutput:
    """Standard output as a command's options ask for it: one JSON document if `as_json`, else a page, with
    everything if it is `verbose`. `columns` is None for those of the terminal; `color` is auto, always or
    never."""

    as_json: bool = False
    columns: int | None = None
    color: str = "auto"
    verbose: bool = False

    @property
    def width(self) -> int:
        """The columns of a page, as they are now: a terminal may change its size."""
        return self.columns or max(shutil.get_terminal_size((PIPE_WIDTH, 24)).columns, MIN_WIDTH)

    @property
    def page(self) -> tuple[int, palettes.Palette]:
        """The columns and the colours, which every picture takes."""
        return self.width, palettes.palette_for(color_system(self.color, sys.stdout.isatty(), os.environ))

    def answer(
        self, document: Callable[[], Mapping[str, Any]], view: Callable[[], Sequence[Text]], more: str = ""
    ) -> None:
        """Print the JSON document, or the page; `more` is what a short page leaves out."""
        if self.as_json:
            print_json(document())
            return
        if lines := view():
            self.show(lines)
        if more:
            self.show_more(more)

    def show_more(self, what: str) -> None:
        """Say what of a page is left out, where it is."""
        if not self.verbose:
            self.show(render_lines.sentence(f"-v shows {what}.", self.width, style="dim"))

    def show(self, lines: Sequence[Text]) -> None:
        """Print lines as they are: no markup, no wrapping, no trailing blanks, no control characters."""
        from rich.console import Console
        from rich.text import Text

        colors = color_system(self.color, sys.stdout.isatty(), os.environ)
        console = Console(
            width=self.width,
            color_system=colors,  # type: ignore[arg-type]
            force_terminal=colors is not None,
            force_jupyter=False,
            no_color=False,
            legacy_windows=False,
        )
        with console.capture() as captured:
            console.print(Text("\n").join(map(render_lines.printable_line, lines)), soft_wrap=True)
        sys.stdout.write(captured.get())
        sys.stdout.flush()

    def show_below(self, lines: Sequence[Text]) -> None:
        sys.stdout.write("\n")
        self.show(lines)


def color_system(choice: str, is_terminal: bool, environ: Mapping[str, str]) -> str | None:
    """Rich's name for the colours to use, or None for none. `always` colours a pipe too; `auto` follows
    https://no-color.org, `FORCE_COLOR` and `TERM=dumb`."""
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


def print_json(document: Mapping[str, Any]) -> None:
    """A JSON document on stdout, one object, indented."""
    ascii_only = not sys.stdout.encoding.lower().startswith("utf")
    click.echo(escaped_json(json.dumps(document, indent=2, ensure_ascii=ascii_only)))


def print_error(message: str, hint: str = "") -> None:
    """``shardviz: error: …`` and, where there is one, ``hint: …``. What the encoding lacks is written as
    ``\\u03b2`` and the like: a stand-in would not be what was typed."""
    encoding = sys.stderr.encoding or "utf-8"  # an `io.StringIO` has none
    for line in (f"shardviz: error: {message}", *([f"hint: {hint}"] if hint else [])):
        # For the marks of our own sentences stand-ins do.
        said = (c if c in "…·" else c.encode(encoding, "backslashreplace").decode(encoding) for c in line)
        click.echo("".join(said), err=True)


_is_quiet = False


def print_errors_alone() -> None:
    """From now on pages, JSON and notes go nowhere."""
    global _is_quiet
    _is_quiet = True
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_note(text: str) -> None:
    if not _is_quiet:
        click.echo(f"shardviz: note: {text}", err=True)


def wait_for(pending: CompilerRequest[T], name: str) -> T:
    """Wait for an answer; the line shows the target, the stage and the seconds."""
    with working(lambda: f"{name}: {pending.stage or 'waiting'}"):
        return pending.result()


@contextmanager
def working(words: str | Callable[[], str]) -> Iterator[None]:
    """Show `words`, or what they say by then, and the seconds while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    started = time.monotonic()

    def show() -> None:
        wait = PATIENCE_S
        while not done.wait(wait):
            said = words if isinstance(words, str) else words()
            line = f"{said} … {time.monotonic() - started:.1f} s"
            _rewrite(line[: shutil.get_terminal_size().columns - 1])
            wait = TICK_S
        if wait < PATIENCE_S:
            _rewrite("")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _rewrite(line: str) -> None:
    sys.stderr.write(f"{CLEAR_LINE}{line}")
    sys.stderr.flush()
