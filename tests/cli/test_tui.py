"""`shardviz tui` and `shardviz` alone: in a terminal, where there is none, and when they are ended."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from typing import ClassVar

import pytest

from shardviz.cli.group import run
from shardviz.cli.streams import no_terminal
from shardviz.lessons.attempt import begin
from shardviz.lessons.course import course
from shardviz.lessons.progress import load

SHARDVIZ = [sys.executable, "-m", "shardviz"]
IGNORING = (
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    "os.execv(sys.executable, sys.argv[1:])"
)
"""Runs the words as nohup does."""
LEFT = "\x1b[?1049l"
"""What brings the terminal to its second screen, and back to the first."""
PATIENCE_S = 60.0


class Terminal:
    """A program in a terminal of its own, and all that it has drawn."""

    started: ClassVar = []

    def __init__(self, words, **environment):
        environment = {**os.environ, "TERM": "xterm-256color", **environment}
        self._file, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        streams = {"stdin": its_end, "stdout": its_end, "stderr": its_end}
        self.process = subprocess.Popen(words, env=environment, start_new_session=True, **streams)
        os.close(its_end)
        self.started.append(self.process)
        self.drawn = ""

    def until(self, text, times=1):
        while self.drawn.count(text) < times:
            assert select.select([self._file], [], [], PATIENCE_S)[0], self.drawn[-2000:]
            self.drawn += os.read(self._file, 65536).decode(errors="replace")

    def type(self, keys):
        os.write(self._file, keys.encode())

    def vanish(self):
        os.close(self._file)

    def exit_code(self):
        """Read to the end, and how it ended."""
        try:
            while select.select([self._file], [], [], PATIENCE_S)[0]:
                self.drawn += os.read(self._file, 65536).decode(errors="replace")
        except OSError:
            pass  # the terminal is closed
        os.close(self._file)
        return self.process.wait(PATIENCE_S)


@pytest.fixture(autouse=True)
def _none_is_left():
    """Where a test fails before its program ends, another would be blamed for it."""
    yield
    while Terminal.started:
        process = Terminal.started.pop()
        process.kill()
        process.wait()


def test_it_opens_in_a_terminal_and_leaves_it_as_it_was(tmp_path):
    words = ["tui", "bd,df->bf", "--specs", "X_,_Y", "--target", "none"]
    terminal = Terminal([*SHARDVIZ, *words], XDG_STATE_HOME=str(tmp_path))
    terminal.until("bd,df->bf")
    terminal.type("q")
    assert terminal.exit_code() == 0
    assert LEFT in terminal.drawn
    assert "Traceback" not in terminal.drawn


@pytest.mark.parametrize("content", ["{", "{}", '{"schema": "shardviz-session/2", "screen": 3, "draft": {}}'])
def test_in_place_of_a_damaged_last_session_another_begins(content, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("shardviz.cli.tui.no_terminal", lambda: "")
    opened = []
    monkeypatch.setattr(
        "shardviz.cli.open_app.open_app", lambda *words, **more: opened.append((words, more)) or 0
    )
    file = tmp_path / "shardviz" / "session.json"
    file.parent.mkdir()
    file.write_text(content)
    assert run(["tui", "--last", "--screen", "plan"]) == 0
    ((words, more),) = opened
    assert words == (None, "plan")
    assert "was damaged" in more["warning"]
    assert file.with_name("session.json.damaged").read_text() == content
    # What another version has kept is not for this one to replace.
    file.write_text('{"schema": "shardviz-session/99"}')
    assert run(["tui", "--last"]) == 2
    assert "shardviz-session/99" in capsys.readouterr().err


def test_a_lesson_opens_where_it_was_left(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lesson = course()[1]
    load().save(begin(lesson).next())
    terminal = Terminal([*SHARDVIZ, "lesson", lesson.name])
    terminal.until("Predict 1")
    terminal.type("q")
    assert terminal.exit_code() == 0
    assert LEFT in terminal.drawn


def test_a_signal_gives_the_terminal_back(tmp_path):
    terminal = Terminal(SHARDVIZ, XDG_STATE_HOME=str(tmp_path))
    terminal.until("bd,df->bf")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.exit_code() == 143
    assert terminal.drawn.rindex(LEFT) > terminal.drawn.rindex("bd,df->bf")


def test_on_a_slow_line_frames_are_dropped_and_q_leaves_at_once(tmp_path):
    words = [*SHARDVIZ, "tui", "bd,df->bf", "--target", "none", "--screen", "step"]
    terminal = Terminal(words, XDG_STATE_HOME=str(tmp_path))
    terminal.until("bd,df->bf")
    # Nothing more is read while it plays: what the terminal has not taken is never drawn.
    terminal.type(" ++")
    with pytest.raises(subprocess.TimeoutExpired):
        terminal.process.wait(3)
    terminal.type("q")
    assert terminal.process.wait(PATIENCE_S) == 0
    terminal.drawn = ""
    assert terminal.exit_code() == 0
    assert LEFT in terminal.drawn
    assert len(terminal.drawn.encode()) < 8192


def test_a_terminal_that_vanishes_ends_it_also_where_hangups_are_ignored(tmp_path):
    terminal = Terminal([sys.executable, "-c", IGNORING, *SHARDVIZ], XDG_STATE_HOME=str(tmp_path))
    terminal.until("bd,df->bf")
    terminal.vanish()
    assert terminal.process.wait(PATIENCE_S) == 129


def test_what_was_on_screen_is_drawn_again_after_a_stop(tmp_path):
    terminal = Terminal(SHARDVIZ, XDG_STATE_HOME=str(tmp_path))
    terminal.until("bd,df->bf")
    terminal.type("x")
    terminal.until("Examples")
    terminal.type("\x1a")
    terminal.until(LEFT)
    assert os.WIFSTOPPED(os.waitpid(terminal.process.pid, os.WUNTRACED)[1])
    terminal.drawn = ""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until("Examples")
    terminal.type("\x11")
    assert terminal.exit_code() == 0


def test_without_a_terminal_there_is_help():
    done = subprocess.run(SHARDVIZ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage:")


@pytest.mark.parametrize("words", [[], ["--last"], ["--from", "shardviz1-Fb_FN6uuBQA"]])
def test_the_application_without_a_terminal_is_a_wrong_question(words, capsys):
    assert run(["tui", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "error: the application needs a terminal" in said.err
    assert "hint: open it in a terminal" in said.err


@pytest.mark.parametrize(
    ("term", "said"), [("dumb", "TERM is dumb"), ("", "TERM is not set"), (None, "TERM is not set")]
)
def test_why_a_terminal_is_none(term, said, monkeypatch):
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    assert no_terminal().endswith(said)


def test_a_terminal_that_places_nothing_gets_help(tmp_path):
    terminal = Terminal(SHARDVIZ, TERM="dumb", XDG_STATE_HOME=str(tmp_path))
    assert terminal.exit_code() == 0
    assert "Usage:" in terminal.drawn
    assert LEFT not in terminal.drawn


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--last"], "no session is saved"),
        (["bd,df->bf", "--last"], "--last and EINSUM cannot be combined"),
        (["--mesh", "X=2", "--last"], "--last and --mesh cannot be combined"),
        (["bd,df->?"], "bd,df->?"),
        (["bd,df->bf", "--specs", "XZ,__"], "unknown mesh axis"),
        (["--target", "v9:2x2"], "v9"),
    ],
)
def test_what_cannot_be_opened_is_said(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("shardviz.cli.tui.no_terminal", lambda: "")
    assert run(["tui", *words]) == 2
    assert message in capsys.readouterr().err
