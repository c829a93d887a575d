"""Open the application in its terminal: its keys, also when the terminal vanishes, and its state, which is
restored also when a signal ends the application."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.drivers.linux_driver import LinuxDriver

from shardviz.cli.process import ExitCode, end_at_once, end_by, on_signal
from shardviz.tui.terminal_input import NoParser, TerminalInput

if TYPE_CHECKING:
    from typing import NoReturn

    from shardviz.forms.form import History, ProblemForm
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson

RESET = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # the mouse
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l"  # pasted text, sizes, focus
    "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h"  # keys, wrapping, the first screen, the cursor
)
LOOK_S = 0.1
"""The interval at which the thread looks for its end and for a complete key."""


def open_app(
    draft: ProblemForm | History | None = None,
    screen: str = "layout",
    lesson: Lesson | Attempt | None = None,
    present: bool = False,
    warning: str = "",
) -> NoReturn:
    """Open the application, in a lesson if one is given, and end the process when it is left.

    A lesson opens where it was left, an attempt where its sender was; with `present` it is shown to a class.
    A `warning` is shown first.
    """
    gc.disable()  # until the first frame: what loads now stays, and looking for garbage in it only delays
    from shardviz.tui.app import ShardvizApp
    from shardviz.tui.own_keys import keys_path

    app = ShardvizApp(draft, screen, lesson=lesson, present=present, warning=warning, keys=keys_path())
    app.driver_class = TerminalDriver
    on_signal(app.state.kill_children)
    # Last: until then the application may still draw.
    on_signal(restorer())
    # A loop of its own: the one that `run` makes by itself waits for whatever a thread still reads.
    app.run(loop=asyncio.new_event_loop())
    end_at_once(app.return_code or ExitCode.FINE)


def restorer() -> Callable[[], None]:
    """A function that restores the terminal's present state; it takes no lock and waits for nothing."""
    keys, screen = sys.__stdin__, sys.__stderr__
    assert keys is not None
    assert screen is not None
    before = termios.tcgetattr(keys.fileno())
    terminal, nowhere = os.dup(screen.fileno()), os.open(os.devnull, os.O_WRONLY)

    def restore() -> None:
        with suppress(OSError, termios.error):
            # What a thread still draws must not land on the screen that is given back.
            os.dup2(nowhere, screen.fileno())
            os.write(terminal, RESET.encode())
            termios.tcsetattr(keys.fileno(), termios.TCSANOW, before)

    return restore


class TerminalDriver(LinuxDriver):
    """Textual's driver, for which the end of the input is a hangup, as nobody may have sent a SIGHUP: a
    container's terminal goes without one, and under nohup it is ignored."""

    def run_input_thread(self) -> None:
        try:
            typed = TerminalInput()
        except NoParser:
            super().run_input_thread()
            return
        while not self.exit_event.is_set():
            if select.select([self.fileno], [], [], LOOK_S)[0]:
                for message in typed.feed(self._read()):
                    self.process_message(message)
            for message in typed.tick():
                self.process_message(message)

    def _read(self) -> bytes:
        try:
            data = os.read(self.fileno, 4096)
        except BlockingIOError:
            return b""  # somebody else who reads from here was faster
        except OSError:
            data = b""
        return data or end_by(signal.SIGHUP)
