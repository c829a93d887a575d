"""How the application talks to the terminal that it was opened in, also when that vanishes or stops it."""

from __future__ import annotations

import os
import select
import signal

from textual.drivers.linux_driver import LinuxDriver

from shardviz.cli.interrupt import end_by
from shardviz.tui.terminal_input import NoParser, TerminalInput

LOOK_S = 0.1
"""How often it is looked whether input is wanted no more, or a key is complete."""


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

    def _sigcont_application(self, *_: object) -> None:
        """Go on where SIGTSTP had the application leave its terminal first. SIGSTOP gives no notice: the
        terminal is entered afresh, but not from here, where what draws may stand anywhere."""
        if getattr(self, "_must_signal_resume", True):
            super()._sigcont_application()
        elif self._auto_restart:
            self._loop.call_soon_threadsafe(self._enter_again)

    def _enter_again(self) -> None:
        # Else two threads would read the keys, and the terminal would be given back as it is now.
        if self._app.is_running:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()
