"""One process of the application, as the server sees it: started, sent keys, ended with all that belongs to
it; and the bytes that draw its screen, for all who look at it, also for those who come late."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from shardviz.forms.form import one_line
from shardviz.serve import PATIENCE_S
from shardviz.serve.fork_server import ForkServer
from shardviz.serve.lecture import PagePointer

KILL_AFTER_S = PATIENCE_S + 2
"""The longest that a process takes to end; it ends by itself before that, with its compilers."""
COLUMNS, LINES = (20, 400), (5, 200)
"""The smallest and the largest picture that a browser gets."""
MAX_NOTES = 100
LEFT, FAILED = 1000, 4002
"""The codes with which a websocket is closed when its process ended or failed (server.py has the others)."""


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

    def add(self, data: bytes) -> bool:
        """Add what was written; return whether it has become too long."""
        self._written += data
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(PAUSE_S, self._tell)
        return len(self._written) > MAX_BYTES

    def begin(self) -> None:
        """Begin anew: all that is added from now on draws the whole screen."""
        self._drawing += 1
        self._written.clear()

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


class Notes:
    """Notes on the server's terminal, of one line each, and each once: visitors can cause many."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        line = one_line(text)
        if line not in self._said and len(self._said) < MAX_NOTES:
            self._said.add(line)
            print(f"shardviz: note: {line}", file=sys.stderr, flush=True)

    def say_of_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note an error in the event loop, which itself would print a traceback for each connection that
        finds no descriptor."""
        error = context.get("exception")
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        self.say(f"{context['message']}: {reason}")


class Session:
    """A process with `picture`, what it draws. It leads a session of its own, in an empty folder of its own
    that goes with it."""

    def __init__(
        self,
        string: str,
        role: str,
        seat: str,
        forks: ForkServer,
        notes: Notes,
        hear: Callable[[Session, object], None],
        ended: Callable[[Session, int], None],
    ) -> None:
        """Begin with a shared string, for a `seat`, empty for all who follow. `hear` is called with what the
        application says of itself in a class, `ended` with the code that says why when the process ends
        unasked."""
        self.picture = Picture()
        self._words = (string, role, seat)
        self._forks, self._notes, self._hear, self._ended = forks, notes, hear, ended
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pid = 0
        self._input: asyncio.StreamWriter | None = None
        self._output: asyncio.StreamReader | None = None
        self._has_started = asyncio.Event()
        self._early = bytearray()
        """What the process is to be sent as soon as it has been started."""
        self._reading: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_asked = False
        """True from when the whole screen was asked for until it is drawn."""

    def start(self, width: int, height: int) -> None:
        """Start the process, for a terminal of this size; what it is sent meanwhile reaches it."""
        self._reading = asyncio.create_task(self._run(width, height))

    async def _run(self, width: int, height: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="shardviz-visitor-", ignore_cleanup_errors=True)
        size = within(width, COLUMNS), within(height, LINES)
        try:
            self._pid, self._output, self._input = await self._forks.fork(
                self._words, size, self._folder.name
            )
        except OSError as error:
            self._fail(f"it did not start: {error.strerror}")
            return
        finally:
            self._has_started.set()
        self._input.write(bytes(self._early))
        await self._read(self._output)

    async def _read(self, output: asyncio.StreamReader) -> None:
        """Read what the process writes, until its end; one that is killed does not say that it ends."""
        with suppress(asyncio.IncompleteReadError, ConnectionResetError):
            await output.readuntil(b"__GANGLION__\n")
            while True:
                kind = await output.readexactly(1)
                data = await output.readexactly(int.from_bytes(await output.readexactly(4), "big"))
                if kind == b"D":
                    self._draw(data)
                elif kind == b"M" and not self._take(json.loads(data)):
                    return
        self._fail("its process died")

    def _draw(self, data: bytes) -> None:
        if self.picture.add(data) and not self._is_asked:
            self._is_asked = True
            self._tell({"type": "repaint"})

    def _take(self, said: object) -> bool:
        """Take what the application says: that it draws the whole screen, or that it has ended, and what went
        wrong; in a class, where it is. Return whether it goes on."""
        match said:
            case {"type": "repaints"}:
                self._is_asked = False
                self.picture.begin()
            case {"type": "failed", "reason": str(reason)}:
                self._fail(reason)
                return False
            case {"type": "exit"}:
                self._ended(self, LEFT)
                return False
            case _:
                self._hear(self, said)
        return True

    def _fail(self, reason: str) -> None:
        if self._ending is None:
            self._notes.say(f"a visitor's session failed: {reason}")
            self._ended(self, FAILED)

    @property
    def unread(self) -> int:
        """Bytes for the process that its socket does not hold yet."""
        return len(self._early) if self._input is None else self._input.transport.get_write_buffer_size()

    def type(self, data: bytes) -> None:
        """Pass on what is typed. No message to a process waits: a server that waits for a busy process does
        not hear what its browser sends meanwhile."""
        self._send(b"D", data)

    def resize(self, width: int, height: int) -> None:
        self._tell({"type": "resize", "width": within(width, COLUMNS), "height": within(height, LINES)})

    def focus(self, has_focus: bool) -> None:
        self._tell({"type": "focus" if has_focus else "blur"})

    def follow(self, string: str, pointer: PagePointer) -> None:
        self._tell({"type": "follow", "shared": string, **asdict(pointer)})

    def _tell(self, said: dict[str, Any]) -> None:
        self._send(b"M", json.dumps(said).encode())

    def _send(self, kind: Literal[b"D", b"M"], data: bytes) -> None:
        packet = b"%s%s%s" % (kind, len(data).to_bytes(4, "big"), data)
        if self._input is None:
            self._early += packet
        elif not self._input.is_closing():
            self._input.write(packet)

    async def stop(self) -> None:
        """End the process: asked first, then killed. Returns when it is gone, and its folder with it, also
        to the second who asks."""
        self._ending = self._ending or asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    def kill(self) -> None:
        """Kill the process, with what it has not read."""
        if self._output is not None and not self._output.at_eof():
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
        self._ending = self._ending or asyncio.create_task(self._end())

    async def _end(self) -> None:
        """Read what the process still shows to the end, for nobody: it would wait for that."""
        if self._reading is not None:
            await self._has_started.wait()
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._input is not None and self._output is not None:
            self._tell({"type": "quit"})
            with suppress(OSError):
                try:
                    async with asyncio.timeout(KILL_AFTER_S):
                        await self._output.read()
                except TimeoutError:
                    self.kill()
                    await self._output.read()
            self._input.close()
        if self._folder is not None:
            self._folder.cleanup()


def within(value: int, limits: tuple[int, int]) -> int:
    """The nearest value between two limits."""
    return min(max(value, limits[0]), limits[1])
