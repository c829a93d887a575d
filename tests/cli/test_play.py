"""`--play` in a terminal of its own: it draws in place, stops on a key, and leaves the terminal as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from shardviz.cli.play import CLEAR_REST, ENTER, HOME, LEAVE, check_terminal
from shardviz.errors import QuestionError

WORDS = ("step", "psum", "--mesh", "i=4", "--on", "none", "--play")
OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, '-m', 'shardviz', *sys.argv[1:]])"
)
"""Makes standard input the terminal that signals of keys come from, then becomes the command."""


class Terminal:
    """A command that has a terminal to itself."""

    def __init__(self, *words: str, lines: int = 24, columns: int = 80) -> None:
        # Sizes in the environment would stand for the terminal's own.
        environ = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        environ["TERM"] = "xterm-256color"
        self.screen, inside = pty.openpty()
        # Not pty.fork, which is not safe in a process where JAX has started its threads.
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *WORDS, *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env=environ,
        )
        os.close(inside)
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.screen)
        self.said = ""

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text: str, since: int = 0, limit: float = 20.0) -> None:
        end = time.monotonic() + limit
        while text not in self.said[since:]:
            assert time.monotonic() < end, self.said
            self._read(0.1)

    def press(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def exit_code(self, limit: float = 20.0) -> int:
        """The exit code (negative for a signal), once all is read and the terminal is looked at."""
        end = time.monotonic() + limit
        while True:
            self._read(0.05)
            if (code := self.process.poll()) is not None:
                self._read(0.05)
                return code
            assert time.monotonic() < end, self.said

    def _read(self, patience: float) -> None:
        while select.select([self.screen], [], [], patience)[0]:
            try:
                read = os.read(self.screen, 65536)
            except OSError:
                return
            if not read:
                return
            self.said += read.decode(errors="replace")
            patience = 0

    def check_restored(self) -> None:
        """The first screen is back, with its cursor, and echo and modes are as they were."""
        assert self.said.count(ENTER) == self.said.count(LEAVE) == 1
        assert self.said.index(ENTER) < self.said.index(LEAVE)
        assert termios.tcgetattr(self.screen) == self.before


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.screen)


def test_every_round_is_drawn_in_place(opened: list[Terminal]) -> None:
    terminal = Terminal("--speed", "20")
    opened.append(terminal)
    assert terminal.exit_code() == 0
    terminal.check_restored()
    played, _, after = terminal.said.partition(LEAVE)
    assert played.count(HOME) == 7
    assert [played.index(f"round {number} of 6") for number in range(7)] == sorted(
        played.index(f"round {number} of 6") for number in range(7)
    )
    assert "round 6 of 6" in after
    assert "rounds" in after


@pytest.mark.parametrize("key", ["x", " ", "\r", "\x1b", "\x1a", "\x1c", "\x1b[A"], ids=repr)
def test_any_key_stops(key: str, opened: list[Terminal]) -> None:
    terminal = Terminal("--speed", "0.01")
    opened.append(terminal)
    terminal.wait_for("round 0 of 6")
    terminal.press(key)
    assert terminal.exit_code() == 0
    terminal.check_restored()
    assert "before any round" in terminal.said.partition(LEAVE)[2]


@pytest.mark.parametrize("how", ["key", "signal"])
def test_an_interrupt_restores_the_terminal(how: str, opened: list[Terminal]) -> None:
    terminal = Terminal("--speed", "0.01")
    opened.append(terminal)
    terminal.wait_for("round 0 of 6")
    if how == "key":
        terminal.press("\x03")
    else:
        terminal.process.send_signal(signal.SIGINT)
    assert terminal.exit_code() == 130
    terminal.check_restored()
    assert "Traceback" not in terminal.said


def test_an_end_from_outside_restores_the_terminal(opened: list[Terminal]) -> None:
    terminal = Terminal("--speed", "0.01")
    opened.append(terminal)
    terminal.wait_for("round 0 of 6")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.exit_code() == -signal.SIGTERM
    terminal.check_restored()


def test_a_terminal_that_changes_its_size_is_drawn_anew(opened: list[Terminal]) -> None:
    terminal = Terminal("--speed", "0.01")
    opened.append(terminal)
    terminal.wait_for("round 0 of 6")
    terminal.wait_for(CLEAR_REST)
    seen = len(terminal.said)
    terminal.resize(15, 40)
    terminal.wait_for(CLEAR_REST, since=seen)
    terminal.press("q")
    assert terminal.exit_code() == 0
    terminal.check_restored()
    drawn = terminal.said[seen:].partition(HOME)[2].partition(LEAVE)[0]
    rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).split("\r\n")
    assert len(rows) <= 15
    assert max(map(len, rows)) <= 40
    assert rows[1] == "  s32[16] P('i') → 4 a device"


@pytest.mark.parametrize(
    ("is_terminal", "term", "problem"),
    [
        (False, "xterm", "standard output is not one"),
        (False, "dumb", "standard output is not one"),
        (True, "dumb", "this one draws nothing in place: TERM is dumb"),
    ],
)
def test_where_nothing_can_be_played(
    is_terminal: bool, term: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)
    with pytest.raises(QuestionError) as caught:
        check_terminal()
    assert caught.value.message == f"--play needs a terminal, and {problem}"
