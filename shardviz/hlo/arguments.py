"""The arguments of a compiled program: what JAX calls each, as a path from the function's parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

from shardviz.errors import NotationError
from shardviz.hlo.text.computation import line_at
from shardviz.hlo.text.shapes import ArrayShape, parse_shape

_ENTRY = re.compile(r"\nENTRY [^\n]*\{\n")
_PARAMETER = re.compile(
    r"[ ]*+(?:ROOT )?%?([^\s=,(){}]+) = ([a-z]\w*\[[^\]]*\])\S* parameter\((\d{1,9})\)([^\n]*)"
)
_OP_NAME = re.compile(r'metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"')
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+),")
_PIECE = re.compile(r"\[[^\[\]]*\]|\.?[^.\[\]]+")


@dataclass(frozen=True)
class ProgramArgument:
    """An argument that the program uses: `path` is ``params['layers']['w_in']``, "" where the text has none.

    `number` is that of its `instruction` in the text, from 0; JAX leaves out arguments that are not used.
    `shape` is that of a device's part. The memory of one that `is_donated` holds a result later.
    """

    number: int
    instruction: str
    path: str
    shape: ArrayShape
    is_donated: bool = False


def arguments_of(text: str) -> tuple[ProgramArgument, ...]:
    """The arguments of HLO text, by number; none where the text has no entry."""
    if text.startswith("ENTRY "):
        text = f"\n{text}"
    entry = _ENTRY.search(text)
    if entry is None:
        return ()
    head = text[: text.find("\n")]
    _, _, aliases = head.partition("input_output_alias=")
    donated = {int(number) for number in _ALIAS.findall(aliases)}
    found = []
    for name, shape, number, rest in _parameters(text, entry.end()):
        told = _OP_NAME.search(rest)
        path = re.sub(r"\\(.)", r"\1", told[1]) if told else ""
        with suppress(NotationError):
            array = parse_shape(shape)
            assert isinstance(array, ArrayShape)
            found.append(ProgramArgument(int(number), name, path, array, int(number) in donated))
    return tuple(sorted(found, key=lambda each: each.number))


def _parameters(text: str, start: int) -> Iterator[tuple[str, ...]]:
    """The pieces of each parameter's line in the computation whose lines begin at `start`."""
    stop = text.find("\n}", start)
    stop = len(text) if stop < 0 else stop
    position = start
    while (position := text.find(" parameter(", position, stop)) >= 0:
        begin, position = line_at(text, position)
        if (found := _PARAMETER.match(text, begin)) is not None:
            yield found.groups()


def pieces_of(path: str) -> list[str]:
    """The steps of a path: ``params['w'].value`` is ``params``, ``['w']``, ``.value``."""
    return _PIECE.findall(path)


def shared_steps(paths: Iterable[Sequence[str]]) -> int:
    """The number of first steps in which all of some paths are the same."""
    columns = zip(*paths, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))
