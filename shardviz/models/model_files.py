"""Files that say a model or its rules: opened without waiting, read up to a limit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import BinaryIO, NoReturn

from shardviz.errors import QuestionError, quote
from shardviz.strict_table import StrictTable
from shardviz.user_files import open_file

READ = "shardviz.model_file"
"""The audit event of a model's file that is about to be read: who may read none refuses it there."""
MAX_BYTES = 100_000_000
"""Bytes of a text, as much as `safetensors` allows a header."""


class ModelFileError(QuestionError):
    """An error of a model's file `name`: at `key` (empty: the whole), with a `reason`."""

    def __init__(self, name: str, key: str, reason: str, hint: str = "") -> None:
        super().__init__(": ".join(filter(None, (quote(name, 200), key, reason))), hint)
        self.name, self.key, self.reason = name, key, reason


def announce(path: Path) -> None:
    """Say that a path is about to be looked at. Raises `ModelFileError` where that is refused."""
    try:
        sys.audit(READ, str(path))
    except OSError as error:
        fail_reading(path, error)


def opened(path: Path) -> BinaryIO:
    """The file, opened to read bytes. Raises `ModelFileError` where it cannot be opened, or is none."""
    announce(path)
    try:
        return open_file(path.expanduser())
    except FileNotFoundError:
        raise ModelFileError(str(path), "", "the file does not exist", "look at its path") from None
    except (OSError, RuntimeError) as error:
        fail_reading(path, error)


def text_of(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a file of at most so many bytes. Raises `ModelFileError` for one that cannot be read, and
    for no text in UTF-8."""
    try:
        with opened(path) as file:
            read = file.read(most + 1)
    except OSError as error:
        fail_reading(path, error)
    if len(read) > most:
        raise ModelFileError(str(path), "", f"it has more than {most:,} bytes", "give the right file")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelFileError(str(path), "", "it is not text in UTF-8", "give the right file") from None


def json_table(text: str | bytes, name: str) -> StrictTable:
    """The object that a JSON text holds. Raises `ModelFileError` for text that is not one."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "its lists are too deep"
        raise ModelFileError(
            name,
            "",
            f"it is not JSON: {quote(reason, 100)[1:-1]}",
            "check the commas, quotes and brackets there",
        ) from None
    return StrictTable(values, lambda key, reason, hint: ModelFileError(name, key, reason, hint))


def fail_reading(path: Path, error: Exception) -> NoReturn:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    raise ModelFileError(str(path), "", f"it cannot be read: {reason}", "look at its path") from None
