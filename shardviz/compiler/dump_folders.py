"""Folders that compilers dump into; nothing of them stays, however a process ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from shardviz.errors import CompilerError

PREFIX = "shardviz-dumps-"
MAX_TRIES = 10


class DumpFolders:
    """Folders for dumps, all in one temporary folder that goes when `remove_all` is called; where the process
    is killed before, it goes when another starts a compiler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root, self._held = "", -1

    def make(self) -> str:
        """A new folder. Raises `CompilerError` where none can be made."""
        try:
            with self._lock:
                if not self._root:
                    self._root, self._held = _held_folder()
                return tempfile.mkdtemp(dir=self._root)
        except OSError as error:
            raise CompilerError(
                f"the compiler has no folder to write to: {error}",
                "set TMPDIR to a folder that can be written",
            ) from error

    def remove(self, folder: str) -> None:
        """Remove one folder and all that is in it; what cannot be removed now is left to `remove_all`."""
        shutil.rmtree(folder, ignore_errors=True)

    def remove_all(self) -> None:
        """Remove everything. Takes no lock, for a signal handler."""
        root, self._root = self._root, ""
        # A compiler that was killed just now may still have written a file into it.
        for _ in range(MAX_TRIES):
            if root and Path(root).exists():
                shutil.rmtree(root, ignore_errors=True)
        if root:
            os.close(self._held)


def _held_folder() -> tuple[str, int]:
    """A new folder, and the descriptor by which this process holds it as long as it lives."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        # Between two of these steps another process may take it for a dead one's, and remove it.
        with suppress(FileNotFoundError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks: nobody can take it for a dead one's
                fcntl.flock(held, fcntl.LOCK_EX)
            if Path(folder).exists():
                return folder, held
            os.close(held)


def remove_unheld() -> None:
    """Remove the folders of processes that have died. Who holds one is seen by its lock, as process ids mean
    nothing to a container that has the same temporary folder."""
    with suppress(OSError):  # there is no temporary folder, or it cannot be listed
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):  # it is in use, another user's, or has just gone
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(held)
