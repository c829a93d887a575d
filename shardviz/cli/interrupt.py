"""Ctrl-C ends the process at once, wherever it stands, and the compilers' processes with it; so does a
terminal that closes, and whoever asks the process to end.

Python's own way, an exception at the next instruction, may land inside an import and leave its lock held, so
that a thread which needs the same module waits for ever.
"""

from __future__ import annotations

import os
import signal
import sys

from shardviz.cli.exit_code import ExitCode

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

CLEAR_LINE = "\r\x1b[2K"
"""Empties the terminal's line, where narration may stand."""

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals by name: not every system has all."""

_last_acts: list[Callable[[], None]] = []


def end_when_interrupted() -> None:
    """From now on SIGINT ends this process with exit code 130, SIGTERM with 143 and SIGHUP with 129; what is
    ignored stays so."""
    for number in (getattr(signal, name) for name in _ENDING if hasattr(signal, name)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_by)


def before_the_end(act: Callable[[], None]) -> None:
    """Have `act` called on an interrupt. It must neither wait nor take a lock."""
    _last_acts.append(act)


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
    try:
        for act in _last_acts:
            act()
        if os.isatty(2):
            os.write(2, CLEAR_LINE.encode())
    finally:
        os._exit(ExitCode.INTERRUPTED - signal.SIGINT + number)
