"""A visitor's process: the application for a guest, kept from the files and the memory of this machine.

The fork server calls `run` in a process and a folder of its own. The application offers a guest nothing that
writes a file, and one text that may name one, a machine's. `refuse_files` is the lock: Python announces every
file, program and connection that is about to be opened, and all that the application does not need is
refused, and a machine's file wherever it lies. (The compilers' own process has no such lock: it takes no text
of a visitor for a path. And Python does not announce `os.stat`, `os.mkfifo`, or calls that C libraries make
by themselves.)"""

from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path
from typing import Any, NoReturn

import shardviz
from shardviz.compiler import CompilerRequest
from shardviz.compiler.child_process import COMPILERS_CHILD, PROGRAM
from shardviz.compiler.worker import Worker
from shardviz.errors import TargetError
from shardviz.forms.share import from_string
from shardviz.serve.apps import APPS
from shardviz.targets import Target
from shardviz.tui.planning import PLANNERS_CHILD

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


def run(string: str, role: str, seat: str) -> NoReturn:
    """Run the application until the visitor or the server leaves; choices are in the order of a seat."""
    from shardviz.serve.driver import leave, say_end

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
