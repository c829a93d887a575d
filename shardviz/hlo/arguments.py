"""The arguments of a compiled program: what JAX calls each, as a path from the function's parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.normal_form import normal_form
from shardviz.hlo.text.shapes import ArrayShape, one_array

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
    return arguments_in(Instructions(normal_form(text).text))


def arguments_in(lines: Instructions) -> tuple[ProgramArgument, ...]:
    """The same of a text that has been indexed."""
    entry = lines.computations.entry
    if entry is None:
        return ()
    _, _, aliases = lines.computations.head.partition("input_output_alias=")
    donated = {int(number) for number in _ALIAS.findall(aliases.partition("\n")[0])}
    found = []
    for line in lines.with_opcode(entry, "parameter"):
        number = line.parameter_number
        array = None if line.shape.startswith("(") else one_array(line.shape)
        if array is not None and number is not None:
            path = line.op_name
            found.append(ProgramArgument(number, line.name, path, array, number in donated))
    return tuple(sorted(found, key=lambda argument: argument.number))


def pieces_of(path: str) -> list[str]:
    """The steps of a path: ``params['w'].value`` is ``params``, ``['w']``, ``.value``."""
    return _PIECE.findall(path)


def shared_steps(paths: Iterable[Sequence[str]]) -> int:
    """The number of first steps in which all of some paths are the same."""
    columns = zip(*paths, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))
