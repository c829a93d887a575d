"""The kind of a file, a folder or a typed text, by its name and its beginning; no program is read for it, and
none is run."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from shardviz.compiler.user_file import functions_of, spec_axes
from shardviz.documents.summaries import HEAD, says_summary
from shardviz.errors import QuestionError, ShardvizError, did_you_mean, quote
from shardviz.forms.parsing import looks_like_command
from shardviz.forms.share import from_string
from shardviz.hlo.dumps import final_files
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.text_tables import rows_beside
from shardviz.user_files import example_program, is_folder, named_path, open_file

with LazyImports():
    from shardviz.forms import enter as entering
    from shardviz.models import checkpoint


def option_words(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words before the options, and those from the first option on."""
    first = next((number for number, word in enumerate(words) if word.startswith("--")), len(words))
    return [*words[:first]], tuple(words[first:])


def read_options(words: Sequence[str], allowed: Collection[str]) -> dict[str, str]:
    """The values of options in words such as ``--mesh X=4`` or ``--mesh=X=4``. Raises `QuestionError` for
    others than the `allowed`, and for one without its value."""
    options: dict[str, str] = {}
    left = [*words]
    while left:
        name, equals, value = left.pop(0).partition("=")
        if name not in allowed:
            hint = f"{did_you_mean(name, allowed)}the options here: {', '.join(allowed)}"
            raise QuestionError(f"{quote(name)} is not an option here", hint)
        value = value if equals else left.pop(0) if left else ""
        if not value:
            raise QuestionError(f"{name} has no value", f"write {name} and its value")
        options[name] = value
    return options


class _Kind(NamedTuple):
    """A line of `kinds.txt`."""

    words: str
    page: str = ""
    endings: str = ""


KINDS = {name: _Kind(*words) for name, *words in rows_beside(__file__, "kinds.txt")}
"""What can be opened, by the name of its kind."""
TOLD: dict[str | None, Callable[[str], object]] = {
    "saved": says_summary,
    "machine": re.compile(r"^\s*(base\s*=|\[(device|torus|cores|node|network)\b)", re.MULTILINE).search,
}
"""The kinds of which a file's name is not enough: its beginning tells whether it is one."""
COMMANDS = {"hlo": "program", "program": "function", "checkpoint": "checkpoint"}
COMMANDS |= {"profile": "profile", "model": "model"}
"""The kind of what a command names; where its own name says otherwise, that is it."""
PRINTED = ("diff", "info", "machine", "search", "targets", "translate")
"""Commands of which all else is shown as they print it."""
SIGNS = frozenset("()[]{}<>,_*")
"""What every sharding but the plainest has one of."""
MOST = 2000
"""Files of a folder that are listed."""


@dataclass(frozen=True)
class Openable:
    """Something to open: a path as it is typed, or a text. `options` are the words after a path, as after a
    command."""

    name: str
    kind: str
    options: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path that the name means, from the folder of a home where it begins with ``~``."""
        return str(typed_path(self.name))

    @property
    def label(self) -> str:
        return " ".join((self.name, shlex.join(self.options))).rstrip()

    def command(self, mesh: str, target: str) -> str:
        """The command line whose page shows it; empty where it has a screen of its own. A function is called
        with the `mesh`, and compiled for the `target`, of the problem; where its specs name other axes, these
        have the sizes of the mesh's."""
        if not KINDS[self.kind].page:
            return self.name if self.kind == "command" else ""
        if self.kind == "function":
            file = self.path.rpartition(":")[0]
            mesh = _mesh_of(example_program(self.name) or Path(file), mesh)
        page = KINDS[self.kind].page.split()
        name, *usual = [word.format(mesh=mesh, target=target) for word in page]
        given = {option.partition("=")[0] for option in self.options}
        pairs = zip(usual[::2], usual[1::2], strict=True)
        more = [word for pair in pairs if pair[0] not in given for word in pair]
        return shlex.join(["shardviz", name, self.path, *self.options, *more])


def _mesh_of(file: Path, mesh: str) -> str:
    """A mesh with the axes that a file's specs name, if it lacks one: its sizes in order, the last axis with
    all that is left over."""
    names, shape = spec_axes(file), parse_mesh(mesh).shape
    if {*names} <= {*shape}:
        return mesh
    sizes = [*shape.values(), *[1] * len(names)]
    last = len(names) - 1
    return ",".join(
        f"{name}={math.prod(sizes[last:]) if index == last else sizes[index]}"
        for index, name in enumerate(names)
    )


def typed_path(text: str) -> Path:
    """The path of a text; one that no home is known for stays as it is."""
    try:
        return named_path(str(Path(text).expanduser()))
    except RuntimeError:
        return named_path(text)


def kind_of_file(path: Path) -> str | None:
    """The kind of a file by its name, and by its beginning where others are named so; None where neither
    tells it."""
    name = path.name.lower()
    fits = {end: kind for kind, one in KINDS.items() for end in one.endings.split() if name.endswith(end)}
    kind = fits[max(fits, key=len)] if fits else None
    if kind not in TOLD:
        return kind
    try:
        with open_file(path) as file:
            return kind if TOLD[kind](file.read(HEAD).decode("utf-8", "replace")) else None
    except OSError:
        return None


def listed_folder(text: str) -> str:
    """The beginning of a typed path whose contents are listed: a folder, or a Python file with a colon."""
    file, colon, _ = text.rpartition(":")
    return f"{file}:" if colon and file.endswith(".py") else text[: text.rfind("/") + 1]


def openables(folder: str) -> list[Openable]:
    """The contents of a folder that can be opened, folders last, or the functions of a Python file; none of
    what cannot be read. `folder` is as it is typed, empty or with a slash or a colon at its end, and the
    names begin with it. What all files of a folder make together comes first."""
    here = typed_path(folder.removesuffix(":") or ".")
    if folder.endswith(":"):
        return [Openable(f"{folder}{name}", "function") for name in functions_of(here, of_mesh=True)]
    try:
        with os.scandir(here) as entries:
            kept = sorted((entry.name, entry) for entry in entries if not entry.name.startswith("."))[:MOST]
    except (OSError, ValueError):
        return []
    kinds = [Openable(folder or "./", "modules")] if final_files(name for name, _ in kept) else []
    if is_folder(here / "plugins" / "profile"):  # where jax.profiler puts them
        kinds.append(Openable(folder or "./", "profile"))
    if checkpoint.is_checkpoint(here):
        kinds.append(Openable(folder or "./", "checkpoint"))
    files = ((name, kind_of_file(here / name)) for name, item in kept if _is(item, os.DirEntry.is_file))
    kinds += [Openable(f"{folder}{name}", kind) for name, kind in files if kind is not None]
    inner = (name for name, item in kept if _is(item, os.DirEntry.is_dir))
    return kinds + [Openable(f"{folder}{name}/", "folder") for name in inner]


def _is(entry: os.DirEntry[str], of_kind: Callable[[os.DirEntry[str]], bool]) -> bool:
    """A link may lead in a circle."""
    try:
        return of_kind(entry)
    except OSError:
        return False


def typed(text: str, has_files: bool) -> Openable | None:
    """The kind of a typed text; None where it may still become anything. Without `has_files` it is no
    path."""
    if not text:
        return None
    if has_files and (kind := _file(text) or _with_options(text)) is not None:
        return kind
    if looks_like_command(text):
        return Openable(text, "line")
    with suppress(ShardvizError):
        from_string(text)
        return Openable(text, "string")
    # A plain word, or a path that is not finished, would be a sharding in some notation.
    if "/" not in text and SIGNS & set(text):
        with suppress(ShardvizError):
            entering.read_any(text)
            return Openable(text, "notation")
    return None


def _file(text: str) -> Openable | None:
    """A file that is there, a function of one, an example of a function."""
    file, _, name = text.rpartition(":")
    try:
        path = typed_path(text)
        if path.is_file():
            return Openable(text, kind_of_file(path) or "program")
        if file.endswith(".py") and name.isidentifier() and typed_path(file).is_file():
            return Openable(text, "function")
    except (OSError, ValueError):
        return None
    return Openable(text, "function") if example_program(text) else None


def _with_options(text: str) -> Openable | None:
    """A path with options after it, or a command line but that of a problem."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    is_line = words[:1] == ["shardviz"]
    command, words = (words[1], words[2:]) if is_line and len(words) > 1 else ("", words)
    paths, options = option_words(words)
    if command in PRINTED:
        return Openable(text, "command")
    if len(paths) != 1 or (is_line and command not in COMMANDS) or not (is_line or options):
        return None
    openable = _file(paths[0])
    if openable is None and is_folder(typed_path(paths[0])):
        is_saved = checkpoint.is_checkpoint(typed_path(paths[0]))
        openable = Openable(paths[0], "checkpoint" if is_saved else "modules")
    kind = openable.kind if openable is not None else COMMANDS.get(command)
    if command in ("profile", "checkpoint"):
        kind = COMMANDS[command]
    return Openable(paths[0], kind, options) if kind is not None else None
