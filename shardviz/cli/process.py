"""The process of one command: its exit codes, and the signals that end it at once, with the compilers'
processes.

Python's own way, an exception at the next instruction, may land inside an import and leave its lock held, so
that a thread which needs the same module waits for ever."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from enum import IntEnum

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

COMPLETION = "_SHARDVIZ_COMPLETE"
"""The environment variable with which a shell asks for completions; click names it after the program."""
CLEAR_LINE = "\r\x1b[2K"
"""Empties the terminal's line, where progress may be shown."""
ONE_INTERRUPT_S = 1.0
"""Signals within this time are one: Ctrl-C goes to all processes of a terminal, and launchers pass it on."""


class ExitCode(IntEnum):
    """0 fine, 1 a check failed, 2 a wrong question or damaged text, 3 a compiler failed, 130 interrupted."""

    FINE = 0
    CHECK_FAILED = 1
    QUESTION = 2
    COMPILER = 3
    INTERRUPTED = 130


SIGNALLED = ExitCode.INTERRUPTED - signal.SIGINT
"""The exit code after a signal is so much more than its number."""
_on_signal: list[Callable[[], None]] = []
_codes: list[int] = []
"""Those it was ended with, of which the first counts: a terminal that is given back ends its input."""


def end_when_interrupted() -> None:
    """From now on SIGINT ends with exit code 130, SIGTERM with 143, SIGHUP with 129; ignored ones stay so."""
    for number in _ending_signals():
        signal.signal(number, end_by)


def _ending_signals() -> list[signal.Signals]:
    """Those that end a process and are not ignored; not every system has all."""
    found = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    return [one for one in found if one is not None and signal.getsignal(one) is not signal.SIG_IGN]


def on_signal(act: Callable[[], None]) -> None:
    """Have `act` called when a signal ends the process. It must neither wait nor take a lock."""
    _on_signal.append(act)


def end_undisturbed() -> None:
    """From now on an interrupt is ignored: all is said, and the exit code stands."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_at_once(code: int) -> NoReturn:
    """End this process with all written that was said; threads that are still at work are not waited for."""
    end_undisturbed()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def end_by(number: int, _frame: object = None) -> NoReturn:
    """End this process at once, as the signal of that number does."""
    end_all(SIGNALLED + number)


def end_all(code: int) -> NoReturn:
    """End this process and its children at once, from any thread."""
    _codes.append(code)
    try:
        for act in _on_signal:
            act()
        if os.isatty(2):
            os.write(2, CLEAR_LINE.encode())
    finally:
        os._exit(_codes[0])


@contextmanager
def first_interrupt() -> Iterator[Callable[[], int]]:
    """A context in which the first signal that would end the process does not, and the next one does; yield a
    function that tells the exit code of the one that came, or 0."""
    before = {number: signal.getsignal(number) for number in _ending_signals()}
    came, came_at = 0, 0.0

    def note(number: int, frame: object) -> None:
        nonlocal came, came_at
        if came and time.monotonic() - came_at > ONE_INTERRUPT_S:
            end_by(number, frame)
        if not came:
            came, came_at = SIGNALLED + number, time.monotonic()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
