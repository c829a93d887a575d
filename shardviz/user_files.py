"""Files that a user names: opened without waiting for a pipe or a device; written in full or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from io import BufferedReader
from itertools import count
from pathlib import Path
from stat import S_ISREG

from shardviz.errors import QuestionError, quote

EXAMPLES = Path(__file__).parent / "examples"
"""Files that ship: programs in JAX, each with a function of its name, compiled programs and a profile."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def named_path(name: str) -> Path:
    """The file or folder of a name; if neither exists, the example of that name, such as ``mlp.txt``."""
    path, example = Path(name), EXAMPLES / Path(name).name
    return example if path.name == name and not is_there(path) and is_there(example) else path


def example_program(name: str) -> Path | None:
    """The file of the function of that name that ships; None where there is none."""
    file = EXAMPLES / f"{name}.py"
    return file if name.isidentifier() and is_there(file) else None


def open_file(path: Path) -> BufferedReader:
    """The file, opened to read bytes. Raises `OSError`, also for an impossible name and for anything but a
    regular file: opening a pipe waits for its writer, and a device may never end."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE))  # noqa: SIM115
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file")
    return file


def is_folder(path: Path) -> bool:
    """Return whether a folder stands there; not where the name is too long, or cannot be looked at."""
    return os.path.isdir(path)  # noqa: PTH112


def is_there(path: Path) -> bool:
    """Return whether anything stands there; not where the name is too long, or cannot be looked at."""
    return os.path.exists(path)  # noqa: PTH110


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
        problem = f"{quote(name)} cannot be the name of a file: {_reason(error)}"
        raise QuestionError(problem, "use another") from None
    return path


def new_path(text: str, force: bool | None = None) -> Path:
    """`target_path`, of a file that is not there yet, or that `force` replaces; None where nothing can.
    Raises `QuestionError` for one that is there."""
    path = target_path(text)
    if os.path.lexists(path) and not force:
        way = "remove it first" if force is None else "add --force to overwrite it"
        hint = f"choose another name, or {way}"
        raise QuestionError(f"the file {quote(str(path))} already exists", hint)
    return path


def write_file(path: Path, text: str) -> None:
    """Write a file in one step, as `replace_file` does. Raises `QuestionError` where that cannot be, and for
    a device or a pipe, which a file must not replace."""
    try:
        _check_regular(path)
        replace_file(path, text, path.stat().st_mode if path.exists() else None)
    except (OSError, RuntimeError, ValueError) as error:
        problem = f"{quote(str(path))} cannot be written: {_reason(error)}"
        raise QuestionError(problem, "use another name or folder") from None


def replace_file(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file in one step: it is there in full, or as it was; of a link, the file to which it leads. It
    gets the rights of `mode`, else the usual ones. Raises what opening and writing files raises."""
    path = path.resolve()
    unfinished = path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        unfinished.touch(0o666 if mode is None else 0o600, exist_ok=False)
        with unfinished.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            unfinished.chmod(mode)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _check_regular(path: Path) -> None:
    """Raise `QuestionError` for the name of something other than a file, such as ``/dev/null`` or a FIFO."""
    if path.exists() and not path.is_file():
        raise QuestionError(f"{quote(str(path))} is a device or a pipe, not a file", "use the name of a file")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def short_path(path: Path) -> str:
    """The path from the current folder on; of a file elsewhere the whole path."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
