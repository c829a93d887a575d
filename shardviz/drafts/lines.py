"""A pasted command line → the draft that it asks about."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shardviz.drafts.draft import FLAG, CollectiveDraft, Draft, parameter_names
from shardviz.drafts.edits.mesh_axes import enter_mesh
from shardviz.drafts.parsing import mesh_of
from shardviz.errors import QuestionError, quote

MAX_LINE = 100_000
"""Characters; a longer text is no command line that a person has."""

_COMMAND = re.compile(r"\s*(?:\$\s+)?(?:shardviz(?:\s|$)|(?:explain|tui|step)\s+\S)")
_PROBLEM = {"mesh", "device_order", "specs", "sizes", "dtype", "axis_types", "target"}
_COLLECTIVE = {"mesh", "axis", "data", "shape", "spec", "dtype", "algorithm"}
_FLAGS = {"untiled", "json", "play", "compare", "hlo", "last"}
_OF_THE_VIEW = {"json", "play", "compare", "hlo", "last", "limit", "step", "round", "speed", "timeout"}
_OF_THE_VIEW |= {"width", "color", "screen", "topology", "latency", "bandwidth", "on", "algorithm"}
"""Options that choose how a problem is seen: they are passed over."""


@dataclass
class _Line:
    """Words of a command: those without a dash, and the options' values by their names."""

    words: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


def looks_like_command(text: str) -> bool:
    """Whether a text begins as the command line of a problem does."""
    return len(text) <= MAX_LINE and _COMMAND.match(text) is not None


def draft_from_line(text: str, draft: Draft) -> Draft:
    """The draft that a command line asks about: ``shardviz explain 'bd,df->bf' --mesh X=2 …``.

    The line of ``step`` puts its collective, on its mesh, beside the problem that `draft` has. Options that
    choose a view are passed over. Raises `ShardvizError` for text that is no such line, and as the command
    does.
    """
    return draft_from_words(_split(text), draft)


def draft_from_words(words: Sequence[str], draft: Draft) -> Draft:
    """As `draft_from_line`, from words that a shell has taken apart already."""
    left = [word for word in words if word != "$"]
    if left[:1] == ["shardviz"]:
        del left[0]
    name = left.pop(0) if left else "tui"
    if name == "step":
        line = _read(left, {*_COLLECTIVE, *parameter_names()})
        mesh = line.options.get("mesh", Draft().mesh)
        return _on_mesh(replace(draft, collective=_collective(line)), mesh)
    if name not in ("explain", "tui"):
        raise QuestionError(
            f"{quote(name, 30)} is not a command that has a problem", "paste the line of explain, tui or step"
        )
    from shardviz.drafts.options import draft_from_options

    line = _read(left, _PROBLEM)
    if len(line.words) > 1 or (name == "explain" and not line.words):
        given = " ".join(map(quote, line.words)) or "nothing"
        raise QuestionError(f"{name} takes one einsum, not {given}", "put the einsum in quotes: 'bd,df->bf'")
    types = line.options.get("axis_types", "auto")
    if types not in ("auto", "explicit"):
        raise QuestionError(f"{quote(types, 30)} is not an axis type", "the axis types are auto and explicit")
    einsum = line.words[0] if line.words else None
    return draft_from_options(einsum, **line.options)  # type: ignore[arg-type]


def collective_from_line(text: str, draft: Draft) -> Draft:
    """The draft with a collective in the words of ``step``, with that word or without: ``psum --axis X``.

    It is on the draft's mesh unless the line has another. Raises `ShardvizError`.
    """
    words = _split(text)
    line = _read(words[1:] if words[:1] == ["step"] else words, {*_COLLECTIVE, *parameter_names()})
    entered = replace(draft, collective=_collective(line))
    return _on_mesh(entered, line.options["mesh"]) if "mesh" in line.options else entered


def _collective(line: _Line) -> CollectiveDraft:
    if len(line.words) != 1:
        given = " ".join(map(quote, line.words)) or "nothing"
        raise QuestionError(
            f"step takes one operation, not {given}", "write for example: all_gather --axis X"
        )
    options = line.options
    fields = {name: value for name, value in options.items() if name in _COLLECTIVE - {"mesh"}}
    parameters = tuple((name, options[name]) for name in parameter_names() if name in options)
    return CollectiveDraft(line.words[0], parameters=parameters, **fields)


def _on_mesh(draft: Draft, mesh: str) -> Draft:
    """The draft on the mesh of a collective; on another than its own nothing is split, so that it fits."""
    from shardviz.notation import parse_mesh

    asked = str(parse_mesh(mesh))
    before = mesh_of(draft)
    if before is not None and asked == str(before):
        return draft
    entered = enter_mesh(replace(draft, device_order=""), asked)
    return _unsplit(entered)


def _unsplit(draft: Draft) -> Draft:
    from shardviz.drafts.parsing import einsums_of, spec_texts, specs_of
    from shardviz.sharding import PartitionSpec

    mesh = mesh_of(draft)
    specs = specs_of(draft, mesh, einsums_of(draft, mesh))
    whole = [PartitionSpec.replicated(s.rank) if isinstance(s, PartitionSpec) else s for s in specs]
    return replace(draft, specs=spec_texts(whole))


def _split(text: str) -> list[str]:
    try:
        # A backslash before a blank continued the line when it was several.
        return shlex.split(re.sub(r"\\(?=\s)", "", text))
    except ValueError:
        raise QuestionError(f"a quote in {quote(text)} is not closed", "close it") from None


def _read(words: Sequence[str], known: set[str]) -> _Line:
    line = _Line()
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            line.words.append(word)
            continue
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("-", "_")
        if name not in known | _OF_THE_VIEW:
            takes = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(known))
            raise QuestionError(f"there is no option {quote(flag, 30)} here", f"a problem has {takes}")
        if not equals and name in _FLAGS:
            value = FLAG
        elif not equals and left and not (left[0].startswith("--") and len(left[0]) > 2):
            value = left.pop(0)
        elif not equals and name != "specs":
            raise QuestionError(f"{flag} has no value", f"write {flag} and its value")
        if name in known and (value or name != "specs"):
            line.options[name] = value
    return line
