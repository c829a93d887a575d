"""The lessons that come with shardviz, in order, and how one is found."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from shardviz.errors import most_like, quote
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.lesson_file import MAX_TEXT, LessonError, read_lesson
from shardviz.user_files import is_folder, open_file

_LOOK = "look at its path"


def course() -> tuple[Lesson, ...]:
    """All lessons that can be read."""
    return tuple(entry for entry in _read_all() if isinstance(entry, Lesson))


def faults() -> tuple[LessonError, ...]:
    """The errors of the files that `course` leaves out."""
    return tuple(entry for entry in _read_all() if isinstance(entry, LessonError))


def following(lesson: Lesson) -> Lesson | None:
    """The lesson of the course that comes after one; None after the last, and after a file of one's own."""
    later = range(lesson.number + 1, len(file_names()) + 1) if lesson.number else ()
    for number in later:
        with suppress(LessonError):
            return _lesson(number)
    return None


def lesson_names() -> tuple[str, ...]:
    """The names of all lessons, without reading them."""
    return tuple(re.sub(r"^\d+-|\.toml$", "", name) for name in file_names())


def find(text: str, may_read_files: bool = True) -> Lesson:
    """The lesson of a number, a name, or the path of a file that ends in ``.toml``. Raises `LessonError` for
    one that there is not, and for a file that is not a lesson, or may not be read."""
    wanted = text.strip()
    if wanted.endswith(".toml"):
        if not may_read_files:
            raise LessonError("", "", "files cannot be opened here", "take a lesson of the course")
        return read_file(Path(wanted))
    names = lesson_names()
    if wanted.isascii() and wanted.isdigit():
        if not 1 <= int(wanted[:9]) <= len(names):
            number = wanted if len(wanted) < 10 else quote(wanted, 20)
            reason = f"there is no lesson {number}: the course has {len(names)}"
            raise LessonError("", "", reason, "shardviz lesson lists them")
        return _lesson(int(wanted))
    if wanted not in names:
        near = next((name for name in names if wanted and wanted in name), most_like(wanted, names))
        hint = f"did you mean {near}?" if near else "shardviz lesson lists them"
        raise LessonError("", "", f"there is no lesson {quote(wanted, 40)}", hint)
    return _lesson(names.index(wanted) + 1)


def read_file(path: Path) -> Lesson:
    """The lesson of a file. Raises `LessonError` as `read_lesson` does, and where it cannot be read."""
    name = path.name or str(path)
    try:
        if path.exists() and not path.is_file():
            raise LessonError(name, "", "it is not a file", _LOOK)
        with open_file(path) as file:
            content = file.read(4 * MAX_TEXT + 1)
        if len(content) > 4 * MAX_TEXT:
            reason, hint = f"it has more than {4 * MAX_TEXT:,} bytes", f"a lesson has at most {MAX_TEXT:,}"
            raise LessonError(name, "", reason, f"{hint} characters")
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise LessonError(name, "", "it is not text in UTF-8", "save it in that encoding") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LessonError(name, "", f"it cannot be read: {reason}", _LOOK) from None
    return replace(read_lesson(text, path.name), source=str(path.resolve()))


def teach(path: str) -> None:
    """Make the course of this process that of a lesson file, or of those in a folder by their names, and read
    it, so that it is there for forks that may open no files. Raises `LessonError` where none can be read."""
    global taught
    taught = path
    for kept in (file_names, _lesson, _read_all):
        kept.cache_clear()
    if not course():
        fault = next(
            iter(faults()), LessonError("", "", f"{quote(path)} has no lesson", "write NAME.toml there")
        )
        teach("")
        raise fault


taught = ""
"""The path of the course that is not the one that ships."""


@cache
def _lesson(number: int) -> Lesson:
    name = file_names()[number - 1]
    if taught:
        path = Path(taught, name) if is_folder(Path(taught)) else Path(taught)
        return replace(read_file(path), number=number, source="")
    return read_lesson((files("shardviz.lessons") / name).read_text(encoding="utf-8"), name, number)


@cache
def _read_all() -> tuple[Lesson | LessonError, ...]:
    read: list[Lesson | LessonError] = []
    for number, _ in enumerate(file_names(), 1):
        try:
            read.append(_lesson(number))
        except LessonError as error:
            read.append(error)
    return tuple(read)


@cache
def file_names() -> tuple[str, ...]:
    if taught and not is_folder(Path(taught)):
        return (Path(taught).name,)
    names = (entry.name for entry in (Path(taught) if taught else files("shardviz.lessons")).iterdir())
    return tuple(sorted(name for name in names if name.endswith(".toml")))
