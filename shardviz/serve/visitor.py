"""A visitor's process: the application for a guest, kept from the files and the memory of this machine, and
its terminal: keys come in, pictures go out, and nothing else.

The fork server calls `run` in a process and a folder of its own. The application offers a guest nothing that
writes a file, and one text that may name one, a machine's. `refuse_files` is the lock: Python announces every
file, program and connection that is about to be opened, and all that the application does not need is
refused, and a machine's file wherever it lies. (The compilers' own process has no such lock: it takes no text
of a visitor for a path. And Python does not announce `os.stat`, `os.mkfifo`, or calls that C libraries make
by themselves.)"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from textual import events, messages
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.message import Message

import shardviz
from shardviz.compiler import CompilerRequest
from shardviz.compiler.child_process import COMPILERS_CHILD, PROGRAM
from shardviz.compiler.worker import Worker
from shardviz.errors import TargetError
from shardviz.forms.share import from_string
from shardviz.serve import PATIENCE_S
from shardviz.serve.apps import APPS
from shardviz.serve.lecture import pointer_in
from shardviz.targets import Target
from shardviz.tui.planning import PLANNERS_CHILD
from shardviz.tui.resilient_app import TerminalInput

MAX_REASON = 300
"""Characters of an error that the server gets."""

CHILDREN = (COMPILERS_CHILD, PLANNERS_CHILD)
"""The modules that a process of a visitor's session may run."""
PROCESS = "simulated"
"""The one compilers' process that a visitor may have: Shardy and XLA for simulated devices."""
MEMORY, MEMORY_OF_A_CORE = 2**30, 2**27
"""Bytes; XLA starts threads for every core, each of which has a stack."""
SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/proc/self",
    "/proc/cpuinfo",
    "/sys/devices",
    os.devnull,
    "/dev/urandom",
    "/etc/os-release",
)
"""Read by Python's own library."""
_LISTS = {"os.listdir", "os.scandir", "os.getxattr", "os.listxattr"}
_CHANGES = {f"os.{name}" for name in ("chmod", "chown", "mkdir", "remove", "rmdir", "truncate", "utime")}
_PAIRS = {f"os.{name}" for name in ("link", "rename", "symlink")}
_STARTS = {
    f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "startfile", "system")
}
_CONNECTS = {f"socket.{name}" for name in ("bind", "connect", "getaddrinfo", "sendmsg", "sendto")}
_CONNECTS |= {"sqlite3.connect", "webbrowser.open"}
_NEVER = {"os.kill", "os.setxattr", "os.removexattr", "os.chflags"}
_FILES = {"shardviz.machine_file", "shardviz.model_file"}
"""What `hardware/machine_file.py` and `models/sources.py` announce before they read a file."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class VisitorsWorker(Worker):
    """Starts the compilers when they are first asked, not before, and only those that need no hardware."""

    def start(self, *_targets: Target) -> None:
        """A class that looks at layouts needs no compiler."""

    def submit(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[1])
        return super().submit(*args, **named)

    def trace(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[1])
        return super().trace(*args, **named)

    def run(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[3])
        return super().run(*args, **named)


def _check(target: Target) -> None:
    if target.process != PROCESS:
        problem = f"a visitor cannot ask {target.name} on the server's machine"
        raise TargetError(problem, "ask shardy or cpu, or run shardviz yourself")


def limit_memory() -> None:
    """Limit the memory of this process, and of the compilers', which inherits the limit."""
    most = MEMORY + MEMORY_OF_A_CORE * (os.cpu_count() or 1)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


def refuse_files() -> None:
    """From now on this process opens no file but Python's own and those in its current folder, starts no
    program but the compilers' and the planner's, and signals no process but these. There is no way back.
    Anything else raises `PermissionError`."""
    sys.dont_write_bytecode = True
    own = os.path.realpath(".")
    roots = (*sys.path, sys.prefix, sys.base_prefix, str(Path(shardviz.__file__).parents[1]), *SYSTEM)
    changed = own + os.sep, os.devnull + os.sep
    read = own + os.sep, *(os.path.realpath(root) + os.sep for root in roots if root)

    def look(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            is_fine = _is_in(args[0], changed if args[2] & _WRITES else read)
        elif event in _LISTS:
            is_fine = _is_in(args[0] or ".", read)
        elif event in _CHANGES:
            is_fine = _is_in(args[0], changed)
        elif event in _PAIRS:
            is_fine = _is_in(args[0], changed) and _is_in(args[1], changed)
        elif event == "os.killpg":
            is_fine = _is_child(args[0])
        elif event == "subprocess.Popen":
            is_fine = args[1][:4] == [sys.executable, "-P", "-c", PROGRAM] and args[1][7] in CHILDREN
        else:
            is_fine = event not in _STARTS and event not in _CONNECTS | _FILES | _NEVER
        if not is_fine:
            raise PermissionError(errno.EACCES, "a visitor's session may not do this", f"{event} {args[:1]}")

    sys.addaudithook(look)


def _is_child(pid: int) -> bool:
    """Return whether a process, which leads its group, is one that this process has started."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return pid > 0


def _is_in(path: Any, roots: tuple[str, ...]) -> bool:
    """Return whether a path is below one of the roots, or is a number, of a file that is open already."""
    return isinstance(path, int) or f"{os.path.realpath(os.fsdecode(path))}{os.sep}".startswith(roots)


class VisitorDriver(WebDriver):
    """Textual's driver for the web without its ways to hand out files and open links. The process ends with
    the server's pipe, however the server ends."""

    def run_input_thread(self) -> None:
        packets, typed = ByteStream(), TerminalInput()
        with suppress(ConnectionError):  # of a server that died with pictures unread
            for data in self._input_reader:
                for kind, payload in packets.feed(data) if data else ():
                    if kind == "D":
                        self._process(typed.feed(payload))
                    else:
                        self._on_meta(kind, payload)
                self._process(typed.tick())
        self._end_soon()

    def _process(self, typed: Iterable[Message]) -> None:
        for message in typed:
            self.process_message(message)

    def stop_application_mode(self) -> None:
        """Leave it to `say_end` to tell the server how the application has ended."""
        self.exit_event.set()
        self._input_reader.close()

    def process_message(self, message: Message) -> None:
        """Pass over sizes of the terminal in what is typed: the server sends them, within its limits."""
        if not isinstance(message, (events.Resize, messages.InBandWindowResize)):
            super().process_message(message)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "quit":
            self._end_soon()
        elif packet_type == "follow":
            self._app.led = payload["shared"], pointer_in(payload)  # type: ignore[attr-defined]
            self._ask(self._app.follow)  # type: ignore[attr-defined]
        elif packet_type == "repaint":
            self._ask(self._repaint)
        elif packet_type in ("resize", "focus", "blur"):
            super().on_meta(packet_type, payload)

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """A visitor opens links in a browser."""

    def deliver_binary(self, *_args: Any, **_named: Any) -> None:
        """A visitor gets no files."""

    def _repaint(self) -> None:
        """Draw the whole screen, in a terminal of whose modes nothing is known."""
        self.write_meta({"type": "repaints"})
        self.write("\x1b[?1049h\x1b[?25l")  # its other screen, without the cursor
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._app.refresh(layout=True)

    def _ask(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the application's loop may have ended already
            self._app.call_later(what)

    def _end_soon(self) -> None:
        self._ask(self._app.exit)
        timer = threading.Timer(PATIENCE_S, leave, (1,))
        timer.daemon = True
        timer.start()


def say_end(error: Exception | None) -> None:
    """Tell the server that the application has ended, and why where it has failed."""
    said = {"type": "exit"}
    if error is not None:
        said = {"type": "failed", "reason": f"{type(error).__name__}: {error}"[:MAX_REASON]}
    packet = json.dumps(said).encode()
    with suppress(OSError):  # the server may have gone
        os.write(1, b"M%s%s" % (len(packet).to_bytes(4, "big"), packet))


def leave(code: int) -> NoReturn:
    """End the process, also while it computes, and remove its folder: the server, which would remove that as
    well, may have been killed."""
    with suppress(OSError):
        Path.cwd().rmdir()
    os._exit(code)


def run(string: str, role: str, seat: str) -> NoReturn:
    """Run the application until the visitor or the server leaves; choices are in the order of a seat."""
    # What goes wrong here is not for the page, and not for the server's terminal either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    code = 1
    try:
        shared = from_string(string)
        limit_memory()
        refuse_files()
        with VisitorsWorker() as worker:
            app = APPS[role](shared, worker)
            app.progress.seed = seat
            app.run()
            say_end(app._exception if app.return_code else None)
        code = app.return_code or 0
    finally:
        leave(code)
