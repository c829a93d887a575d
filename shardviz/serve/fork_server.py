"""The process that has loaded the application and opened it once, and forks the others, which begin at once
and share its memory."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pkgutil
import re
import signal
import socket
import sys
import tempfile
import threading
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from shardviz import garbage
from shardviz.lessons import course

_DRIVER = "shardviz.serve.visitor:VisitorDriver"
_PASSED = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|VIRTUAL_ENV|PYTHON(PATH|HOME|USERBASE|UTF8)|(LD|DYLD)_LIBRARY_PATH|XLA_FLAGS"
)
"""Variables that Python and the compilers need; the rest may be secrets, or change what a visitor sees."""
_REQUEST_BYTES = 65_536
_OPEN_S, _THREADS_S = 1.0, 2.0
"""The seconds for which the application is open, and the longest that a thread of it takes to end."""


class ForkServer:
    """Forks processes, one after another; started with the first, and again where it has died. `begin` is the
    shared string with which most processes begin."""

    def __init__(self, begin: str) -> None:
        self._begin = begin
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._control: socket.socket | None = None

    async def start(self) -> None:
        if self._process is not None and self._process.returncode is None:
            return
        self.close()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        environment = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
        environment |= {"TEXTUAL_DRIVER": _DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor"}
        with theirs:
            # -P keeps the current directory off the path.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", __name__, str(theirs.fileno()), self._begin, course.taught),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    async def fork(
        self, words: tuple[str, ...], size: tuple[int, int], folder: str
    ) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
        """Fork a visitor's process in a folder: its number, and its output and input. Raises `OSError`."""
        async with self._turn:
            await self.start()
            assert self._control is not None
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    asked = json.dumps({"words": words, "size": size, "folder": folder}).encode()
                    socket.send_fds(self._control, [asked], [theirs.fileno()])
                number = await asyncio.get_running_loop().sock_recv(self._control, 8)
                if not number:
                    raise ConnectionError(0, "the process that forks others died")
                reader, writer = await asyncio.open_connection(sock=ours)
            except BaseException:
                ours.close()
                raise
        return int.from_bytes(number, "big"), reader, writer

    def close(self) -> None:
        """End the process that forks, not those that it has forked."""
        if self._control is not None:
            self._control.close()


def main(descriptor: int, begin: str, taught: str) -> None:
    """Fork a process for each request, until the server is gone; `taught` is the path of a course."""
    control = socket.socket(fileno=descriptor)
    if taught:
        course.teach(taught)
    _load(begin)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    gc.collect()
    garbage.freeze()
    gc.disable()  # until an application has begun
    while True:
        asked, (*descriptors,), *_ = socket.recv_fds(control, _REQUEST_BYTES, 1)
        if not asked:
            return
        number = os.fork()
        if not number:
            control.close()
            _become(descriptors[0], **json.loads(asked))
        os.close(descriptors[0])
        control.sendall(number.to_bytes(8, "big"))


def _become(descriptor: int, words: tuple[str, str, str], size: tuple[int, int], folder: str) -> NoReturn:
    from shardviz.serve.visitor import run

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(folder)
    os.dup2(descriptor, 0)
    os.dup2(descriptor, 1)
    os.close(descriptor)
    os.environ.update(COLUMNS=str(size[0]), ROWS=str(size[1]), TMPDIR=folder, XDG_STATE_HOME=folder)
    tempfile.tempdir = None
    run(*words)


def _load(begin: str) -> None:
    """Load all of the application, and open it once: what that computes, a fork knows."""
    import shardviz.tui

    for module in pkgutil.walk_packages(shardviz.tui.__path__, "shardviz.tui."):
        import_module(module.name)
    with suppress(Exception):  # each visitor's own process says what is wrong
        asyncio.run(_open(begin))
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        thread.join(_THREADS_S)


async def _open(begin: str) -> None:
    from shardviz.forms.share import from_string
    from shardviz.serve.apps import VisitorApp
    from shardviz.serve.visitor import VisitorsWorker

    with VisitorsWorker() as worker:
        app = VisitorApp(from_string(begin), worker)
        asyncio.get_running_loop().call_later(_OPEN_S, app.call_later, app.exit)
        app.ask = lambda: None  # type: ignore[method-assign]  # no compiler
        await app.run_async(headless=True, size=(100, 30))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
