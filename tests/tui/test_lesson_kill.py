"""What is kept of a lesson when the process is killed in the middle of it."""

from __future__ import annotations

import json
import platform
import signal
import sys
import time

from shardviz.lessons.course import find
from shardviz.render.lesson_view import stage_facts
from tests.cli.test_tui import Terminal

PATIENCE_S = 30


def kept(path):
    """The stage that the file knows of; it is there in full, or as it was."""
    return (
        json.loads(path.read_text())["lessons"]["mesh-and-axes"]["attempt"]["stage"] if path.exists() else -1
    )


def test_a_killed_lesson_goes_on_where_it_was(tmp_path):
    path = tmp_path / "shardviz" / "progress.json"
    terminal = Terminal([sys.executable, "-m", "shardviz", "lesson", "1"], XDG_STATE_HOME=str(tmp_path))
    terminal.until("Mesh and axes")
    facts = stage_facts(find("1").predictions[0], f"{path} {platform.node()}")
    down = "\x1b[B" * facts.choices.index(facts.answer)
    for stage, keys in enumerate(("n", f"{down}\r", "n"), 1):
        terminal.type(keys)
        end = time.monotonic() + PATIENCE_S
        # Nothing but the key itself makes it be written: no pause, and no leaving.
        while kept(path) != stage:
            assert time.monotonic() < end
            time.sleep(0.01)
    terminal.process.send_signal(signal.SIGKILL)
    terminal.exit_code()
    again = Terminal([sys.executable, "-m", "shardviz", "lesson", "1"], XDG_STATE_HOME=str(tmp_path))
    again.until("Predict 2 of")
    again.process.send_signal(signal.SIGKILL)
    again.exit_code()
