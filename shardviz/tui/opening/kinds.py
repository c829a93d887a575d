"""The kind of a file, a folder or a typed text, by its name and its beginning; no file is read for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shardviz.errors import ShardvizError
from shardviz.forms.parsing import looks_like_command
from shardviz.forms.share import from_string
from shardviz.hlo.passes.dump_files import final_files

Kind = Literal["folder", "modules", "profile", "program", "model", "machine", "line", "string", "notation"]

ENDINGS: dict[str, Kind] = {
    ".xplane.pb": "profile",
    ".trace.json.gz": "profile",
    ".trace.json": "profile",
    "config.json": "model",
    ".safetensors": "model",
    ".safetensors.index.json": "model",
    ".toml": "machine",
    ".txt": "program",
    ".txt.gz": "program",
    ".hlo": "program",
    ".mlir": "program",
    ".log": "program",
}
"""The kind by the end of a file's name."""
WORDS: dict[Kind, str] = {
    "folder": "folder",
    "modules": "the final programs of this folder of dumps",
    "profile": "profile",
    "program": "compiled program or log",
    "model": "model",
    "machine": "machine",
    "line": "the problem of this command line",
    "string": "what this string shares",
    "notation": "this sharding in every notation",
}
"""What a kind is called."""
PROFILES = Path("plugins", "profile")
"""Where jax.profiler puts profiles within its folder."""
SIGNS = frozenset("()[]{}<>,_*")
"""What every sharding but the plainest has one of."""
MOST = 2000
"""Files of a folder that are listed."""


@dataclass(frozen=True)
class Openable:
    """Something to open: a path as it is typed, or a text."""

    name: str
    kind: Kind


def kind_of_file(path: Path) -> Kind | None:
    """The kind of a file by its name; None where its name says nothing."""
    name = path.name.lower()
    found = [ending for ending in ENDINGS if name.endswith(ending)]
    return ENDINGS[max(found, key=len)] if found else None


def openables(folder: str) -> list[Openable]:
    """The contents of a folder that can be opened, folders last; none of one that cannot be read.

    `folder` is as it is typed, empty or with a slash at its end, and the names begin with it. What all files
    of a folder make together comes first.
    """
    try:
        with os.scandir(folder or ".") as entries:
            named = sorted((each.name, each.is_dir()) for each in entries if not each.name.startswith("."))
    except (OSError, ValueError):
        return []
    named = named[:MOST]
    found = [Openable(folder or "./", "modules")] if final_files(name for name, _ in named) else []
    if Path(folder, PROFILES).is_dir():
        found.append(Openable(folder or "./", "profile"))
    files = ((name, kind_of_file(Path(name))) for name, is_folder in named if not is_folder)
    found += [Openable(f"{folder}{name}", kind) for name, kind in files if kind is not None]
    return found + [Openable(f"{folder}{name}/", "folder") for name, is_folder in named if is_folder]


def typed(text: str, has_files: bool) -> Openable | None:
    """The kind of a typed text; None where it may still become anything. Without `has_files` it is no
    path."""
    if not text:
        return None
    path = Path(text).expanduser()
    try:
        if has_files and path.is_file():
            return Openable(str(path), kind_of_file(path) or "program")
    except (OSError, ValueError):
        pass
    if looks_like_command(text):
        return Openable(text, "line")
    try:
        from_string(text)
    except ShardvizError:
        return _notation(text)
    return Openable(text, "string")


def _notation(text: str) -> Openable | None:
    """A sharding; a plain word or a path that is not finished would be one in some notation, and is none."""
    if "/" in text or not SIGNS & set(text):
        return None
    from shardviz.forms.any_notation import read_any

    try:
        read_any(text)
    except ShardvizError:
        return None
    return Openable(text, "notation")
