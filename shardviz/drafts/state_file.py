"""A JSON file in the platform's state directory: written as a whole or not at all, read with suspicion."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardviz.errors import ShardvizError, quote

MAX_BYTES = 1_000_000
LOCK_SECONDS = 2.0
"""How long to wait for another session that reads and writes the same file."""


class StateError(ShardvizError):
    """A file that cannot be written, or that cannot be read."""


def state_path(name: str) -> Path:
    """Where the file stands: `$XDG_STATE_HOME/shardviz` on Linux, and its like elsewhere."""
    from platformdirs import user_state_path

    return user_state_path("shardviz", appauthor=False) / name


def write_state(path: Path, document: dict[str, Any]) -> None:
    """Replace the file at once, so that a crash leaves the old one or the new one; of a link, the file to
    which it leads. Raises `StateError`."""
    text = json.dumps(document, indent=1)
    target = Path(os.path.realpath(path))
    # Two sessions that end together must not write into one another's file.
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        if len(text) > MAX_BYTES:
            raise OSError(f"it would have more than {MAX_BYTES:,} bytes")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritten(path, error) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other sessions from the file meanwhile, for whoever reads it and writes it back.

    The lock is gone with the process that has it. Raises `StateError` where another session keeps it for
    long, and where the folder cannot be written to. Where there are no such locks, as on Windows and on some
    network file systems, nobody waits.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = path.with_name(f"{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w", encoding="utf-8")
    except OSError as error:
        raise _unwritten(path, error) from None
    with file:
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StateError(
                        f"{quote(str(path), 120)} is in use by another shardviz", "try again"
                    ) from None
                time.sleep(0.01)
            except OSError:
                break
        yield


def _unwritten(path: Path, error: OSError) -> StateError:
    return StateError(
        f"{quote(str(path), 120)} cannot be written: {error.strerror or error}",
        "set XDG_STATE_HOME to a folder that you may write to",
    )


def read_state(path: Path) -> object | None:
    """What the file says; None where there is none.

    Raises `StateError` for a file that cannot be read. What is no file, and a file that is no JSON, is set
    aside, as `set_aside` says.
    """
    try:
        if path.exists() and not path.is_file():
            raise set_aside(path, "it is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(
            f"{quote(str(path), 120)} cannot be read: {error.strerror or error}", "look at its permissions"
        ) from None
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        document: object = json.loads(content.decode("utf-8"))
        if document is None:
            raise ValueError("it says nothing")
    except (ValueError, RecursionError) as error:
        raise set_aside(path, "it is no JSON" if isinstance(error, RecursionError) else str(error)) from None
    return document


def set_aside(path: Path, reason: str) -> StateError:
    """Move a damaged file out of the way, over the one before it; the error that says so."""
    damaged = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(damaged)
    except OSError as error:
        return StateError(
            f"{quote(str(path), 120)} is damaged, {reason}, and stays: {error.strerror or error}", "remove it"
        )
    return StateError(
        f"{quote(str(path), 120)} was damaged: {reason}", f"it is now {damaged.name}; shardviz begins anew"
    )
