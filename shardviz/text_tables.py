"""Tables and texts in a file beside a module: rows of cells between bars, or texts below their names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path


def rows_beside(module: str, name: str) -> Iterator[list[str]]:
    """The rows of a file in the folder of the module's `__file__`; a line after ``#`` is none."""
    return rows_of(Path(module).with_name(name).read_text(encoding="utf-8"))


def rows_of(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line and line[0] != "#":
            yield [cell.strip() for cell in line.split("|")]


@cache
def sections_beside(module: str, name: str) -> dict[str, str]:
    """The texts of a file in the folder of the module's `__file__`, by the names behind ``===``."""
    text = Path(module).with_name(name).read_text(encoding="utf-8").removesuffix("\n")
    return dict(section.split("\n", 1) for section in f"\n{text}".split("\n=== ")[1:])
