"""The progress of reading a file, and its end where nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from shardviz.compiler.requests import Cancelled
from shardviz.units import human_bytes


class ReadingProgress:
    """Something that is being read in a thread, which tells here how far it is."""

    def __init__(self, show: Callable[[Text], object]) -> None:
        self.is_stopped = False
        self._show = show
        self._ends: list[Callable[[], object]] = []

    def say(self, words: str) -> None:
        """Show what is being done. Raises `Cancelled` where nobody waits for it any more."""
        if self.is_stopped:
            raise Cancelled("the reading was stopped")
        self._show(Text(f"{words} …", "dim"))

    def say_bytes(self, name: str, done: int, size: int) -> None:
        """``reading traces: 12 MiB of 40 MiB …``; otherwise as `say`."""
        self.say(f"reading {name}: {human_bytes(done)} of {human_bytes(size)}")

    def end_by(self, end: Callable[[], object]) -> None:
        """Have `stop` call this too: it ends a process, or a request."""
        self._ends.append(end)
        if self.is_stopped:
            end()

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self.is_stopped = True
        for end in self._ends:
            end()
