"""The bytes that draw a process's screen, for all who look at it, also for those who come late."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

MAX_BYTES = 64 * 1024
"""The bytes after which the process is asked to draw the whole screen again."""
PAUSE_S = 0.01
"""The seconds in which several writes become one: a frame is written in pieces."""
Position = tuple[int, int]
"""The number of the drawing, from 1, and the bytes of it that a page has."""
NOTHING: Position = (0, 0)
ERASE = b"\x1bc"
"""Takes the picture of another process off a terminal, and its modes."""


class Picture:
    """The bytes that a process has written since it last drew the whole screen: a page that has all of them
    shows the same. Nobody who reads slowly makes it longer: they skip to the last whole drawing."""

    def __init__(self) -> None:
        self.watchers: set[Callable[[], object]] = set()
        """Called after something was added."""
        self._drawing, self._written = 1, bytearray()
        self._is_due = False
        self._last = NOTHING, NOTHING, b""

    def add(self, data: bytes) -> None:
        """Note what the process writes."""
        self._written += data
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(PAUSE_S, self._tell)

    def begin(self) -> None:
        """Begin anew: all that is added from now on draws the whole screen."""
        self._drawing += 1
        self._written.clear()

    @property
    def is_long(self) -> bool:
        return len(self._written) > MAX_BYTES

    def since(self, position: Position) -> tuple[bytes, Position]:
        """The bytes that a page at this position lacks, compressed (RFC 1950), and the position after them.
        For many pages at one position they are compressed once."""
        now = self._drawing, len(self._written)
        if self._last[:2] != (position, now):
            drawing, count = position
            data = self._written[count:] if drawing == self._drawing else self._written
            self._last = position, now, zlib.compress(ERASE + data if position == NOTHING else data, 1)
        return self._last[2], now

    def _tell(self) -> None:
        self._is_due = False
        for watcher in self.watchers:
            watcher()
