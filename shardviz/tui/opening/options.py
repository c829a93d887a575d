"""The options after a path that is typed, as after a command: the mesh and its order, the target of a
function, the machine for times; of a profile the text of its program, and the step and device of its
timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace

from shardviz.errors import QuestionError, did_you_mean, quote


@dataclass(frozen=True)
class ReadingOptions:
    """Each as it is typed; empty where it is not given."""

    mesh: str = ""
    device_order: str = ""
    target: str = ""
    machine: str = ""
    hlo: str = ""
    step: str = ""
    device: str = ""

    @property
    def words(self) -> list[str]:
        """``["--mesh", "X=4"]``: the options that are given."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [word for name, value in named if value for word in (_option(name), value)]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def option_words(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words before the options, and those from the first option on, without views of a command."""
    first = next((number for number, word in enumerate(words) if word.startswith("--")), len(words))
    kept = (word for word in words[first:] if word not in ("--time", "--picture", "--why", "--tui"))
    return [*words[:first]], tuple(kept)


def read_options(words: Sequence[str], allowed: Collection[str]) -> ReadingOptions:
    """The options in words such as ``--mesh X=4`` or ``--mesh=X=4``.

    Raises `QuestionError` for others than the `allowed`, and for one without its value.
    """
    found, left = ReadingOptions(), [*words]
    known = {_option(each): each for each in allowed}
    while left:
        name, equals, value = left.pop(0).partition("=")
        if name not in known:
            told = ", ".join(known) or "none"
            hint = did_you_mean(name, known)
            raise QuestionError(f"{quote(name)} is not an option here", f"{hint}the options here: {told}")
        value = value if equals else left.pop(0) if left else ""
        if not value:
            raise QuestionError(f"{name} has no value", f"write {name} and what it is")
        found = replace(found, **{known[name]: value})
    return found
