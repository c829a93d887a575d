"""The arguments of a compiled program: what JAX calls each, as a path from the function's parameter, and
which of them a collective's operands come from, found by following these back."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile, tee
from typing import Generic, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.mlir.operations import OperationValue
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import PLACES
from shardviz.hlo.text.shapes import HBM, ArrayShape, one_array, placed_arrays
from shardviz.hlo.text.values import Made, folded

MAX_LOOKS = 1_000
"""Definitions followed in one module at most: a chain of einsums has some hundreds, a model far more."""
MAX_MOVES = 200
"""Definitions looked at for one value that is only moved, beside those that others have led to."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

_DIALECTS = ("stablehlo", "mhlo", "sdy", "chlo", "func")
_SHARDING = re.compile(r"@(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_WRITTEN_SHARDING = re.compile(r" sharding=(\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\})")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+),")
_PIECE = re.compile(r"\[[^\[\]]*\]|\.?[^.\[\]]+")

_Value = TypeVar("_Value", bound=Hashable)
_How = Callable[[_Value], Made[_Value] | Origin | None]


@dataclass(frozen=True)
class ProgramArgument:
    """An argument that the program uses: `path` is ``params['layers']['w_in']``, "" where the text has none.
    `number` is that of its `instruction` in the text, from 0; JAX leaves out arguments that are not used.
    `shape` is that of a device's part, which takes `bytes` in a memory `space` of HLO's; `sharding` is as the
    text writes it. The memory of one that `is_donated` holds a result later."""

    number: int
    instruction: str
    path: str
    shape: ArrayShape
    is_donated: bool = False
    sharding: str = ""
    bytes: int = 0
    space: int = HBM


def arguments_of(text: str) -> tuple[ProgramArgument, ...]:
    """The arguments of HLO text, by number; none where the text has no entry."""
    return arguments_in(Instructions(text))


def arguments_in(lines: Instructions) -> tuple[ProgramArgument, ...]:
    """The same of a text that has been indexed."""
    entry = lines.computations.entry
    if entry is None:
        return ()
    _, _, aliases = lines.computations.head.partition("input_output_alias=")
    donated = {int(number) for number in _ALIAS.findall(aliases.partition("\n")[0])}
    arguments = []
    for line in lines.with_opcode(entry, "parameter"):
        number = line.parameter_number
        array = None if line.shape.startswith("(") else one_array(line.shape)
        if array is not None and number is not None:
            sharding = line.search(_WRITTEN_SHARDING)
            (placed,) = placed_arrays(line.shape) or (None,)
            memory = (placed.bytes, placed.space) if placed else (0, HBM)
            own = (array, number in donated, sharding[1] if sharding else "", *memory)
            arguments.append(ProgramArgument(number, line.name, line.op_name, *own))
    return tuple(sorted(arguments, key=lambda argument: argument.number))


def pieces_of(path: str) -> list[str]:
    """The steps of a path: ``params['w'].value`` is ``params``, ``['w']``, ``.value``."""
    return _PIECE.findall(path)


def shared_steps(paths: Iterable[Sequence[str]]) -> int:
    """The number of first steps in which all of some paths are the same."""
    columns = zip(*paths, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))


class Origins(Generic[_Value]):
    """The origins of values; `how` tells how one is made, of an argument the origin, None if unknown. `moved`
    tells the same of what is only moved; of others it need not look for what they are made of."""

    def __init__(self, moved: _How[_Value], how: _How[_Value]) -> None:
        self._moved_how, self._how = moved, how
        self._step = lambda value: _stepped(how(value))
        self._known: dict[_Value, Origin | None] = {}
        self._moved: dict[_Value, Origin | None] = {}

    def of(self, values: Iterable[_Value]) -> Origin | None:
        """The origin of several values together; None when it cannot be told."""
        # What is only moved, not computed, from the program's arguments to here ends at the first thing that
        # is computed, and so it is quick in a program of any size.
        first, again = tee(values)
        moved = self._all_moved(first, len(self._moved) + MAX_MOVES)
        if (origin := _joined(moved)) is not None and origin.arguments:
            return origin
        if not moved or len(self._known) > MAX_LOOKS:
            return None
        return _joined([folded(value, self._known, self._step, self._fold, MAX_LOOKS) for value in again])

    def _all_moved(self, values: Iterable[_Value], most: int) -> list[Origin | None]:
        """The origins of what is only moved, up to the first that has none: then all together have none."""
        origins: list[Origin | None] = []
        for value in values:
            origins.append(self._moved_from(value, most))
            if origins[-1] is None:
                break
        return origins

    def _moved_from(self, value: _Value, most: int) -> Origin | None:
        """The origin of what is only moved; nearly all of it is made of one value, and has its origin."""
        known, passed = self._moved, list[_Value]()
        while value not in known:
            made = self._moved_how(value)
            is_computed = isinstance(made, Made) and not made.only_moved
            operands, known[value] = ((), None) if is_computed else _stepped(made)
            if len(known) > most:
                return None
            if len(operands) > 1:
                known[value] = _joined(self._all_moved(operands, most))
            if len(operands) != 1:
                break
            passed.append(value)
            (value,) = operands
        origin = known[value]
        known.update(dict.fromkeys(passed, origin))
        return origin

    def _fold(self, value: _Value, parts: Sequence[Origin | None]) -> Origin | None:
        made = self._how(value)
        return _joined(parts, isinstance(made, Made) and made.only_moved)


def _stepped(made: Made[_Value] | Origin | None) -> tuple[Sequence[_Value], Origin | None]:
    if not isinstance(made, Made):
        return (), made
    # A value that is made of itself stays unknown, and so does all that is given up; a constant, as pads
    # have it, is of no argument.
    return made.operands, None if made.operands else Origin(())


def _joined(origins: Sequence[Origin | None], only_moved: bool = True) -> Origin | None:
    """The origin of a value made of others; None where one is unknown, or there are too many arguments."""
    if only_moved and len(origins) == 1:
        return origins[0]
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        return None
    arguments = {number for origin in known for number in origin.arguments}
    if len(arguments) > MAX_ARGUMENTS:
        return None
    computed = not only_moved or any(origin.computed for origin in known)
    return Origin(tuple(sorted(arguments)), bool(arguments) and computed)


def operation_made(value: OperationValue) -> Made[OperationValue] | Origin | None:
    """The making of a value of Shardy's and StableHLO's, within one function."""
    operation = value.operation
    if operation.name == "func.func":
        return Origin((value.number,))
    dialect, _, name = operation.name.rpartition(".")
    operands = tuple(operand for operand in operation.operands if operand is not None)
    is_open = value.is_argument or len(operands) < len(operation.operands)
    if is_open or dialect not in _DIALECTS or name in _REGIONS:
        return None
    moves = not operands or dialect == "sdy" or (dialect != "func" and name.replace("_", "-") in PLACES)
    return Made(operands, moves or (name == "custom_call" and _SHARDING.match(operation.text) is not None))
