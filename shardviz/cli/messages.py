"""Messages on stderr: errors with their hints, notes, and one line of progress, on a terminal only, which is
gone when the work is over."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from shardviz.cli.process import CLEAR_LINE

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest

T = TypeVar("T")

TICK_S = 0.1
PATIENCE_S = 0.5
"""Shorter work shows no progress."""
_OURS = "…·"
"""Marks of our own sentences, for which stand-ins do."""


def print_error(message: str, hint: str = "") -> None:
    """``shardviz: error: …`` and, where there is one, ``hint: …``; an ``io.StringIO`` has no encoding."""
    for line in (f"shardviz: error: {message}", *([f"hint: {hint}"] if hint else [])):
        click.echo(_recognisable(line, sys.stderr.encoding or "utf-8"), err=True)


def print_note(text: str) -> None:
    """``shardviz: note: …``."""
    click.echo(f"shardviz: note: {text}", err=True)


def _recognisable(text: str, encoding: str) -> str:
    """The text with ``\\u03b2`` and the like for what an encoding lacks: a stand-in would not be what was
    typed."""
    return "".join(
        char if char in _OURS else char.encode(encoding, "backslashreplace").decode(encoding) for char in text
    )


def wait_for(
    pending: CompilerRequest[T], name: str, others: Sequence[tuple[str, CompilerRequest[T]]] = ()
) -> T:
    """Wait for an answer; the line shows the target, the stage and the seconds.

    `others` are waited for later: those without an answer are listed after it, as many as the line holds.
    """
    started = time.monotonic()
    shows = sys.stderr.isatty()
    try:
        while True:
            try:
                answer = pending.result(TICK_S if shows else None)
            except TimeoutError:
                words = f"{name}: {pending.stage or 'waiting'} … {time.monotonic() - started:.1f} s"
                later = [other for other, each in others if not each.done()]
                while later and len(words) + len(_then(later)) >= shutil.get_terminal_size().columns:
                    later.pop()
                _rewrite(words + _then(later))
            else:
                return answer
    finally:
        if shows:
            _rewrite("")


def _then(names: Sequence[str]) -> str:
    return f"; not ready: {', '.join(names)}" if names else ""


@contextmanager
def working(words: str) -> Iterator[None]:
    """Show `words` and the seconds while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    started = time.monotonic()

    def show() -> None:
        wait = PATIENCE_S
        while not done.wait(wait):
            _rewrite(f"{words} … {time.monotonic() - started:.1f} s")
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
    """Replace the line of progress."""
    sys.stderr.write(f"{CLEAR_LINE}{line}")
    sys.stderr.flush()
