"""Keeps a visitor's process from the files of this machine, whatever part of the program would touch them.

The application offers a guest nothing that reads or writes a file. This is the second lock: Python tells it
of every file, program and connection that is about to be opened, and it refuses what the application itself
does not need. (The compilers' own process has no such lock: it takes no text of a visitor for a path. And
Python does not tell of `os.stat`, of `os.mkfifo`, or of what C libraries do by themselves.)
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shardviz
from shardviz.compiler.worker_process import PROGRAM

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
"""What Python's own library reads."""
_LISTS = {"os.listdir", "os.scandir"}
_CHANGES = {f"os.{name}" for name in ("chmod", "chown", "mkdir", "remove", "rmdir", "truncate", "utime")}
_PAIRS = {f"os.{name}" for name in ("link", "rename", "symlink")}
_STARTS = {
    f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "startfile", "system")
}
_CONNECTS = {f"socket.{name}" for name in ("bind", "connect", "getaddrinfo", "sendmsg", "sendto")}
_CONNECTS |= {"sqlite3.connect", "webbrowser.open"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse_files() -> None:
    """From now on this process opens no file but Python's own and those in the folder where it stands, and
    starts no program but the compilers'. There is no way back. What is refused raises `PermissionError`."""
    sys.dont_write_bytecode = True
    own = os.path.realpath(".")
    roots = (*sys.path, sys.prefix, sys.base_prefix, str(Path(shardviz.__file__).parents[1]), *SYSTEM)
    sys.addaudithook(_hook(own, {own, *(os.path.realpath(root) for root in roots if root)}))


def _hook(own: str, readable: set[str]) -> Callable[[str, tuple[Any, ...]], None]:
    changed, read = (own + os.sep, os.devnull + os.sep), tuple(root + os.sep for root in readable)

    def look(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            is_fine = _is_in(args[0], changed if args[2] & _WRITES else read)
        elif event in _LISTS:
            is_fine = _is_in(args[0] or ".", read)
        elif event in _CHANGES:
            is_fine = _is_in(args[0], changed)
        elif event in _PAIRS:
            is_fine = _is_in(args[0], changed) and _is_in(args[1], changed)
        elif event == "subprocess.Popen":
            is_fine = args[1][:4] == [sys.executable, "-P", "-c", PROGRAM]
        else:
            is_fine = event not in _STARTS and event not in _CONNECTS
        if not is_fine:
            raise PermissionError(errno.EACCES, "a visitor's session may not do this", f"{event} {args[:1]}")

    return look


def _is_in(path: Any, roots: tuple[str, ...]) -> bool:
    """Whether a path is below one of the roots; what is open already (a number) may be used."""
    return isinstance(path, int) or f"{os.path.realpath(os.fsdecode(path))}{os.sep}".startswith(roots)
