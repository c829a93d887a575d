"""The file that an export writes: a name that is free, all of it or nothing, errors in one sentence."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

from shardviz.errors import QuestionError, quote


def free_name(stem: str, suffix: str) -> str:
    """A name in the current folder that no file has: ``stem.svg``, then ``stem-2.svg``, …"""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.{suffix}" for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def target_path(text: str) -> Path:
    """The file that a typed name means. Raises `QuestionError` for a name that no file can have, and for a
    folder, a device or a pipe."""
    name = text.strip()
    if not name:
        raise QuestionError("the file has no name", "type one, such as layout.svg")
    if not name.isprintable():
        raise QuestionError(f"{quote(name)} cannot be the name of a file", "use letters, digits and -")
    try:
        path = Path(name).expanduser()
        if path.is_dir():
            raise QuestionError(f"{quote(name)} is a folder", "add the name of a file")
        _check_regular(path)
    except (OSError, RuntimeError, ValueError) as error:
        raise QuestionError(
            f"{quote(name)} cannot be the name of a file: {_reason(error)}", "use another"
        ) from None
    return path


def write_file(path: Path, text: str) -> None:
    """Write a file in one step: it is there in full, or as it was. Raises `QuestionError` where that cannot
    be, and for a device or a pipe, which a file must not replace."""
    beside = None
    try:
        # Through a link, not in its place.
        path = path.resolve()
        _check_regular(path)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".", delete=False
        ) as file:
            beside = Path(file.name)
            file.write(text)
        beside.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        beside.replace(path)
    except (OSError, RuntimeError, ValueError) as error:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise QuestionError(
            f"{quote(str(path))} cannot be written: {_reason(error)}", "use another name or folder"
        ) from None


def _check_regular(path: Path) -> None:
    """Raise `QuestionError` for the name of something other than a file, such as ``/dev/null`` or a FIFO."""
    if path.exists() and not path.is_file():
        raise QuestionError(f"{quote(str(path))} is a device or a pipe, not a file", "use the name of a file")


def _umask() -> int:
    """The rights that new files do not get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
