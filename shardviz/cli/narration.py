"""One line on stderr while something takes its time; on a terminal only, and gone when it is over."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from shardviz.cli.interrupt import CLEAR_LINE

if TYPE_CHECKING:
    from shardviz.compiler import Pending

T = TypeVar("T")

TICK_S = 0.1
PATIENCE_S = 0.5
"""Work that is done by then needs no words."""


def narrated(pending: Pending[T], name: str, others: Sequence[tuple[str, Pending[T]]] = ()) -> T:
    """Wait for an answer; the line tells who is at work and for how long.

    `others` are waited for later: those without an answer are told after it, as many as the line holds.
    """
    started = time.monotonic()
    narrate = sys.stderr.isatty()
    try:
        while True:
            try:
                answer = pending.result(TICK_S if narrate else None)
            except TimeoutError:
                words = f"{name}: {pending.stage or 'waiting'} … {time.monotonic() - started:.1f} s"
                later = [other for other, each in others if not each.done()]
                while later and len(words) + len(_then(later)) >= shutil.get_terminal_size().columns:
                    later.pop()
                _rewrite(words + _then(later))
            else:
                return answer
    finally:
        if narrate:
            _rewrite("")


def _then(names: Sequence[str]) -> str:
    return f"; not ready: {', '.join(names)}" if names else ""


@contextmanager
def working(words: str) -> Iterator[None]:
    """Tell what is being done, and for how long, while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        wait = PATIENCE_S
        while not done.wait(wait):
            _rewrite(f"{words} … {time.monotonic() - started:.1f} s")
            wait = TICK_S
        if wait < PATIENCE_S:
            _rewrite("")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _rewrite(line: str) -> None:
    """Replace the line of narration."""
    sys.stderr.write(f"{CLEAR_LINE}{line}")
    sys.stderr.flush()
