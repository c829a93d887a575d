"""Files that a user names: opened without waiting for a pipe or a device."""

from __future__ import annotations

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG


def open_file(path: Path) -> BufferedReader:
    """The file, opened to read bytes.

    Raises `OSError`, also for an impossible name and for anything but a regular file: opening a pipe waits
    for its writer, and a device may never end.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file")
    return file


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def is_folder(path: Path) -> bool:
    """Return whether a folder stands there; not where the name is too long, or cannot be looked at."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Return whether anything stands there; not where the name is too long, or cannot be looked at."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
