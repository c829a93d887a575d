"""One visitor's process, as the server sees it: started, sent keys, ended with all that belongs to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from aiohttp.web import WebSocketResponse
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from shardviz.forms.form import one_line
from shardviz.serve.driver import PATIENCE_S
from shardviz.serve.lecture import PagePointer, Predictions

KILL_AFTER_S = PATIENCE_S + 2
"""The longest that a process takes to end; it ends by itself before that, with its compilers."""
COLUMNS, LINES = (20, 400), (5, 200)
"""The smallest and the largest picture that a browser gets."""
_DRIVER = "shardviz.serve.driver:VisitorDriver"
_PASSED = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|VIRTUAL_ENV|PYTHON(PATH|HOME|USERBASE|UTF8)|(LD|DYLD)_LIBRARY_PATH|XLA_FLAGS"
)
"""Variables that Python and the compilers need; the rest may be secrets, or change what a visitor sees."""
MAX_NOTES = 100
FAILED = 4002
"""The code with which a websocket is closed when its process failed (server.py has the other codes)."""


class Notes:
    """Notes on the server's terminal, of one line each, and each once: visitors can cause many."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Print a line, unless it has been printed."""
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


class Session(AppService):
    """textual-serve's service without a shell: the words of its command go to no interpreter. The process
    leads a session of its own, in an empty folder of its own that goes with it."""

    def __init__(
        self,
        words: Sequence[str],
        websocket: WebSocketResponse,
        notes: Notes,
        hear: Callable[[Session, object], None],
    ) -> None:
        """`hear` is called with what the application says of itself in a class."""
        super().__init__(
            "",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=self._close,
            download_manager=DownloadManager(),
        )
        self._words = words
        self._websocket = websocket
        self._notes = notes
        self._hear = hear
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def _close(self) -> None:
        await self._websocket.close()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        assert self._folder is not None
        passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
        return passed | {
            "TEXTUAL_DRIVER": _DRIVER,
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "COLUMNS": str(within(width, COLUMNS)),
            "ROWS": str(within(height, LINES)),
            "TMPDIR": self._folder.name,
            "XDG_STATE_HOME": self._folder.name,
        }

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._folder = tempfile.TemporaryDirectory(prefix="shardviz-visitor-", ignore_cleanup_errors=True)
        # -P keeps the current directory off the path.
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "shardviz.serve.visitor", *self._words),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            cwd=self._folder.name,
            start_new_session=True,
        )
        self._stdin = process.stdin
        return process

    async def send_bytes(self, data: bytes) -> bool:
        """Pass on what is typed. Neither this nor `send_meta` waits: a server that waits for a busy process
        does not hear what its browser sends meanwhile."""
        return self._send(b"D", data)

    async def send_meta(self, data: dict[str, Any]) -> bool:
        return self._tell(data)

    @property
    def unread(self) -> int:
        """Bytes for the process that its pipe does not hold yet."""
        return 0 if self._stdin is None else self._stdin.transport.get_write_buffer_size()

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(within(width, COLUMNS), within(height, LINES))

    async def run(self) -> None:
        """Pass on pictures until there are no more; a process that is killed does not say that it ends."""
        await super().run()
        assert self._process is not None
        assert self._process.stdout is not None
        if self._process.stdout.at_eof() and not self._websocket.closed:
            await self._fail("its process died")

    async def on_meta(self, data: bytes) -> None:
        """The application says that it has ended, and what went wrong; in a class, where it is."""
        match json.loads(data):
            case {"type": "failed", "reason": str(reason)}:
                await self._fail(reason)
            case {"type": "exit"}:
                await self._close()
            case said:
                self._hear(self, said)

    def follow(self, string: str, pointer: PagePointer) -> None:
        """Tell a pupil's application where the teacher is. This never waits: one that is busy reads the
        last such string when it comes to it."""
        self._tell({"type": "follow", "shared": string, **asdict(pointer)})

    def remember(self, predictions: Predictions) -> None:
        """Tell a pupil's application what was predicted in the same tab, before its connection broke."""
        said = [(place.lesson, place.number, choice) for place, choice in predictions.items()]
        if said:
            self._tell({"type": "remember", "predictions": said})

    def _tell(self, said: dict[str, Any]) -> bool:
        return self._send(b"M", json.dumps(said).encode())

    def _send(self, kind: Literal[b"D", b"M"], data: bytes) -> bool:
        if self._stdin is None:
            return False
        try:
            self._stdin.write(self.encode_packet(kind, data))
        except RuntimeError:  # the process has ended
            return False
        return True

    async def _fail(self, reason: str) -> None:
        if self._ending is None:
            self._notes.say(f"a visitor's session failed: {reason}")
        await self._websocket.close(code=FAILED)

    async def on_packed(self, payload: bytes) -> None:
        """Files are not handed out."""

    async def stop(self) -> None:
        """End the process: asked first, then killed. Returns when it is gone, and its folder with it, also
        to the second who asks."""
        if self._process is None:
            return
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(self._process))
        await asyncio.shield(self._ending)

    def kill(self) -> None:
        """Kill the process, with what it has not read."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _end(self, process: Process) -> None:
        """Read what the process still shows to the end, for nobody: it would wait for that, and its pipes
        would stay open."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._tell({"type": "quit"})
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_AFTER_S):
                await process.communicate()
        if process.returncode is None:
            self.kill()
            await process.communicate()
        if self._folder is not None:
            self._folder.cleanup()


def within(value: int, limits: tuple[int, int]) -> int:
    """The nearest value between two limits."""
    return min(max(value, limits[0]), limits[1])
