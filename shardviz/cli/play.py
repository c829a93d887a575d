"""Pictures one after another in the same place of a terminal, until the last one or a key.

The terminal's second screen is used, so that a resize leaves nothing behind. The first one always comes back
as it was: cursor, echo and modes.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIGHUP, SIGTERM, raise_signal, signal
from types import FrameType
from typing import Any

from shardviz.cli.process import on_signal
from shardviz.errors import QuestionError

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The second screen, no cursor, no wrapping."""
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
CLEAR_REST_OF_LINE = "\x1b[K"
CLEAR_REST = "\x1b[J"

GLANCE_S = 0.05
"""The interval at which the size of the terminal is read."""

Size = tuple[int, int]
Picture = Callable[[int, Size], str]


def check_terminal() -> None:
    """Raise `QuestionError` where there is no terminal to play in."""
    problem = ""
    if not sys.stdout.isatty():
        problem = "standard output is not one"
    elif os.environ.get("TERM") == "dumb":
        problem = "this one draws nothing in place: TERM is dumb"
    if problem:
        raise QuestionError(
            f"--play needs a terminal, and {problem}",
            "leave out --play to print every round one below another",
        )


def play(picture: Picture, count: int, per_second: float) -> int:
    """Show pictures 0 to `count` - 1, so many a second, and return the number of the last one shown.
    `picture` draws one as text for a (columns, lines) terminal; it is asked again when the size changes. Any
    key ends the show at once."""
    with _second_screen() as keys:
        for number in range(count):
            if _key_while_shown(picture, number, 1 / per_second, keys):
                return number
    return count - 1


def _key_while_shown(picture: Picture, number: int, duration: float, keys: int | None) -> bool:
    end = time.monotonic() + duration
    drawn: Size | None = None
    while True:
        size = _size()
        if size != drawn:
            _draw(picture(number, size), size)
            drawn = size
        left = end - time.monotonic()
        if left <= 0:
            return False
        waiting = [] if keys is None else [keys]
        if select.select(waiting, [], [], min(left, GLANCE_S))[0]:
            return True


def _size() -> Size:
    columns, lines = shutil.get_terminal_size()
    return columns, lines


def _draw(text: str, size: Size) -> None:
    lines = text.rstrip("\n").split("\n")[: size[1]]
    body = f"{CLEAR_REST_OF_LINE}\n".join(lines)
    sys.stdout.write(f"{HOME}{body}{CLEAR_REST_OF_LINE}{CLEAR_REST}")
    sys.stdout.flush()


@contextmanager
def _second_screen() -> Iterator[int | None]:
    """The second screen, and the file descriptor on which keys arrive as they are pressed."""
    keys = _keyboard()
    before = None if keys is None else termios.tcgetattr(keys)
    inside = True

    def restore() -> None:
        nonlocal inside
        if inside:
            inside = False
            os.write(sys.stdout.fileno(), LEAVE.encode())
            if keys is not None and before is not None:
                termios.tcsetattr(keys, termios.TCSANOW, before)

    def end(number: int, _frame: FrameType | None) -> None:
        restore()
        signal(number, SIG_DFL)
        raise_signal(number)

    on_signal(restore)
    handlers = {number: signal(number, end) for number in (SIGTERM, SIGHUP)}
    try:
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSANOW, _without_echo(keys, before))
        sys.stdout.write(ENTER)
        sys.stdout.flush()
        yield keys
        if keys is not None:
            # The key that ended the show is not for the shell.
            termios.tcflush(keys, termios.TCIFLUSH)
    finally:
        restore()
        for number, handler in handlers.items():
            signal(number, handler)


def _keyboard() -> int | None:
    """Where keys come from, also when standard input is a pipe; None where there is no keyboard."""
    if os.isatty(0):
        return 0
    try:
        return os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return None


def _without_echo(keys: int, before: list[Any]) -> list[Any]:
    """Keys at once and unseen. Ctrl-C still interrupts; what would suspend or quit is a key like others."""
    flags, characters = before[3], [*before[6]]
    for place in (termios.VSUSP, termios.VQUIT):
        characters[place] = bytes([os.fpathconf(keys, "PC_VDISABLE")])
    return [*before[:3], flags & ~(termios.ICANON | termios.ECHO), *before[4:6], characters]
