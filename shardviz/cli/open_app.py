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
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from textual.drivers.linux_driver import LinuxDriver

from shardviz.cli.process import ExitCode, end_at_once, end_by, on_signal

if TYPE_CHECKING:
    from shardviz.forms.form import History, ProblemForm
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.app import ShardvizApp

CUT = "\x18\x1b[?2026l"
"""Ends a sequence that was cut, and a frame of which the rest is dropped."""
RESET = (
    CUT + "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # the mouse
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l"  # pasted text, sizes, focus
    "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h"  # keys, wrapping, the first screen, the cursor
)
LOOK_S = 0.1
"""The interval at which the thread looks for its end and for a complete key."""
PIECE = 512
"""Bytes that are written at once: what waits behind them can still be dropped."""
SLOW_S = 0.02
"""The time after which a terminal that takes nothing holds up the frames."""


def open_app(
    draft: ProblemForm | History | None = None,
    screen: str = "layout",
    lesson: Lesson | Attempt | None = None,
    present: bool = False,
    warning: str = "",
) -> NoReturn:
    """Open the application, in a lesson if one is given, and end the process when it is left.

    A lesson opens where it was left, an attempt where its sender was; with `present` it is shown to a class.
    A `warning` is shown first."""
    gc.disable()  # until the first frame: what loads now stays, and looking for garbage in it only delays
    from shardviz.tui.app import ShardvizApp
    from shardviz.tui.registry import keys_path

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
            termios.tcflush(terminal, termios.TCOFLUSH)
            os.write(terminal, RESET.encode())
            termios.tcsetattr(keys.fileno(), termios.TCSANOW, before)

    return restore


class PiecewiseOutput:
    """The file to which Textual's thread writes what is drawn, in pieces, as fast as the terminal takes them.

    `on_slow` is called with True when it takes none for a while, and with False when it has all. After `cut`
    what is not written yet is dropped, up to `CUT`."""

    def __init__(self, file: TextIO, on_slow: Callable[[bool], object]) -> None:
        self.fileno, self._encoding, self._on_slow = file.fileno, file.encoding, on_slow
        self._is_slow = self._is_cut = False

    def cut(self) -> None:
        self._is_cut = True
        with suppress(termios.error):
            termios.tcflush(self.fileno(), termios.TCOFLUSH)

    def write(self, text: str) -> None:
        if text == CUT:
            self._is_cut = False
        data = text.encode(self._encoding, "backslashreplace")
        for start in range(0, len(data), PIECE):
            while not select.select([], [self.fileno()], [], SLOW_S)[1] and not self._is_cut:
                self._say_slow(True)
            if self._is_cut:
                return
            os.write(self.fileno(), data[start : start + PIECE])

    def flush(self) -> None:
        """The thread has nothing more to write."""
        self._say_slow(False)

    def _say_slow(self, is_slow: bool) -> None:
        if is_slow != self._is_slow:
            self._is_slow = is_slow
            self._on_slow(is_slow)


class TerminalDriver(LinuxDriver):
    """Textual's driver, which draws no frame while the terminal has not taken the one before, and drops what
    waits when the application is left. The end of the input is a hangup, as nobody may have sent a SIGHUP: a
    container's terminal goes without one, and under nohup it is ignored."""

    def __init__(self, app: ShardvizApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._file: Any = PiecewiseOutput(self._file, partial(app.call_later, app.hold_frames))

    def stop_application_mode(self) -> None:
        self._file.cut()
        self.write(CUT)
        super().stop_application_mode()

    def run_input_thread(self) -> None:
        from shardviz.tui.resilient_app import TerminalInput  # loaded with the application

        typed = TerminalInput()
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
