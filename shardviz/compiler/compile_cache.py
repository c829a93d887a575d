"""Compiled programs on disk, for hardware that is not here: what the child answered, without an error, under
a name that hashes all that it depends on."""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from shardviz.compiler.messages import ModuleQuestion, Output, Question, Versions
from shardviz.errors import QuestionError, quote
from shardviz.targets import Target, installed_versions
from shardviz.user_files import replace_file

LIMIT_BYTES = 2**30
"""Of all answers on disk together; beyond it those go first that were not used for longest."""


class CacheEntry:
    """The place on disk of one answer. `versions` are those of what computed it, once it was loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.versions: Versions = ()

    def load(self) -> Output | None:
        """The answer; None where there is none, or only a damaged one."""
        try:
            self.versions, output = pickle.loads(zlib.decompress(self._path.read_bytes()))
            os.utime(self._path)
        except Exception:  # pickle raises anything for a damaged file
            return None
        if not isinstance(output, Output):
            return None
        return replace(output, result=replace(output.result, is_cached=True))

    def save(self, output: Output, versions: Versions) -> None:
        """Keep an answer, where the disk has room for it."""
        self.versions = versions
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, zlib.compress(pickle.dumps((versions, output)), 1), 0o600)
            files = _files(self._path.parent)
            total = sum(size for _, size, _ in files)
            for _, size, path in files:
                if total <= LIMIT_BYTES:
                    return
                path.unlink(missing_ok=True)
                total -= size


def entry(
    function: str, asked: Question | ModuleQuestion, target: Target, environment: Mapping[str, str]
) -> CacheEntry | None:
    """The place of the answer to a call; None for one that is not kept: of devices that are here, of Shardy,
    of each pass, and where the user has XLA write files."""
    # What changes what a compiler does.
    flags = {key: value for key, value in environment.items() if key.startswith(("LIBTPU_", "TPU_", "XLA_"))}
    if target.machine is None or asked.dumps == "passes" or any("dump" in value for value in flags.values()):
        return None
    with suppress(KeyError, OSError):  # a libtpu beside the one whose version we know
        flags["TPU_LIBRARY_PATH"] += f" {Path(flags['TPU_LIBRARY_PATH']).stat().st_mtime_ns}"
    key = hashlib.sha256()
    if isinstance(asked, ModuleQuestion):
        key.update(asked.code)
        asked = replace(asked, code=b"")
    key.update(repr((function, asked, sorted(flags.items()), _versions())).encode())
    return CacheEntry(folder() / key.hexdigest())


def folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("shardviz", appauthor=False) / "compiled"


def usage() -> tuple[str, int, int]:
    """The folder, how many answers are kept there, and their bytes."""
    sizes = [size for _, size, _ in _files(folder())]
    return str(folder()), len(sizes), sum(sizes)


def clear() -> None:
    """Remove all answers. Raises `QuestionError` where one cannot be removed."""
    for _, _, path in _files(folder()):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problem = f"{quote(str(path))} cannot be removed: {error.strerror or error}"
            raise QuestionError(problem, "remove it by hand") from None


@cache
def _versions() -> tuple[object, ...]:
    """The versions of all that computes an answer, and when shardviz itself was changed last."""
    ours = Path(__file__).parents[1].rglob("*.py")
    return installed_versions(), max(file.stat().st_mtime_ns for file in ours)


def _files(within: Path) -> list[tuple[float, int, Path]]:
    """When each answer was used last, its bytes, its place; the oldest first."""
    entries = []
    with suppress(OSError):
        for path in within.iterdir():
            with suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
    return sorted(entries)
