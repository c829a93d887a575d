"""Paths of files as a user writes them: short below the current folder."""

from __future__ import annotations

from pathlib import Path


def short_path(path: Path) -> str:
    """The path from the current folder on; of a file elsewhere the whole path."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def short_place(source: str) -> str:
    """``layer.py:12`` of a line of a file; the name of an operation stays as it is."""
    path, _, line = source.rpartition(":")
    return f"{short_path(Path(path))}:{line}" if line.isdecimal() else source
