"""The first picture against the first frame of an empty Textual application, in terminals of their own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import time
from collections.abc import Sequence

from timing import line

EMPTY = """
from textual.app import App
from textual.widgets import Footer, Header

class Empty(App):
    TITLE = 'an empty application'
    def compose(self):
        yield Header()
        yield Footer()

Empty().run()
"""
PICTURE = "───┬"
"""In the terminal when the arrays are drawn."""
RUNS = 9
LINES, COLUMNS = 36, 120
PATIENCE_S = 20.0


def first_frame(argv: Sequence[str], seen: str) -> float:
    """Seconds from starting a program in a terminal until the text `seen` has been drawn."""
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        # As everywhere else: what is compiled once stays so.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execv(argv[0], argv)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    drawn = b""
    try:
        while seen.encode() not in drawn:
            if not select.select([terminal], [], [], PATIENCE_S)[0]:
                raise TimeoutError(f"{argv}: no {seen!r} in {drawn[-2000:]!r}")
            drawn += os.read(terminal, 65536)
        return time.perf_counter() - start
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def report() -> None:
    ours = [sys.executable, "-m", "shardviz"]
    empty = [sys.executable, "-c", EMPTY]
    taken: list[list[float]] = [[], []]
    for turn in range(RUNS + 1):
        for runs, (argv, seen) in zip(taken, ((ours, PICTURE), (empty, "an empty application")), strict=True):
            seconds = first_frame(argv, seen)
            if turn:
                runs.append(seconds)
    app, bare = map(statistics.median, taken)
    ratio = f"{app / bare:.2f}  ({app * 1e3:.0f} ms / {bare * 1e3:.0f} ms)"
    line("the first picture / the first frame of an empty Textual app", ratio, "1.4")


if __name__ == "__main__":
    report()
