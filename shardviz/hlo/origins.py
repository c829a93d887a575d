"""The arguments of a program that a collective's operands come from, found by following them back."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.mlir.regions import BLOCK_ARGUMENT, Function, MlirOperation
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import PLACES
from shardviz.hlo.text.values import Made, folded

MAX_LOOKS = 1_000
"""Definitions looked at in one module at most, to follow what is computed: a chain of einsums has some
hundreds, a model far more."""
MAX_MOVES = 200
"""Definitions looked at for one value that is only moved."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

_OPERATION = re.compile(r'"?(?:stablehlo|mhlo|sdy|chlo)\.(\w+)"?|(?:func\.)?(call) @')
_SHARDING = re.compile(r"stablehlo\.custom_call @(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_MLIR_VALUE = re.compile(r"%[\w$.#-]+")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")

_Value = TypeVar("_Value", bound=Hashable)
_How = Callable[[_Value], Made[_Value] | Origin | None]


class Origins(Generic[_Value]):
    """The origins of values; `how` tells how one is made, of an argument the origin, None if unknown."""

    def __init__(self, how: _How[_Value]) -> None:
        self._how = how
        self._known: dict[_Value, Origin | None] = {}

    def of(self, values: Sequence[_Value]) -> Origin | None:
        """The origin of several values together; None when it cannot be told."""
        if not values:
            return None
        moved = self._moved(values)
        if moved is not None or len(self._known) > MAX_LOOKS:
            return moved
        return _joined([folded(each, self._known, self._step, self._fold, MAX_LOOKS) for each in values])

    def _moved(self, values: Iterable[_Value]) -> Origin | None:
        """The origin of values that are moved, not computed, from the program's arguments to here.

        This ends at the first thing that is computed, and so it is quick in a program of any size.
        """
        found: set[int] = set()
        for number, value in enumerate(reached(values, self._operands)):
            made = self._how(value)
            if made is None or number >= MAX_MOVES:
                return None
            if isinstance(made, Origin):
                if made.computed:
                    return None
                found.update(made.arguments)
            # A constant, as pads have it, is of no argument.
            elif made.operands and not made.only_moved:
                return None
        return Origin(tuple(sorted(found))) if 0 < len(found) <= MAX_ARGUMENTS else None

    def _operands(self, value: _Value) -> tuple[_Value, ...]:
        made = self._how(value)
        return made.operands if isinstance(made, Made) else ()

    def _step(self, value: _Value) -> tuple[Sequence[_Value], Origin | None]:
        made = self._how(value)
        if not isinstance(made, Made):
            return (), made
        # A value that is made of itself stays unknown, and so does all that is given up.
        return made.operands, None if made.operands else Origin(())

    def _fold(self, value: _Value, parts: Sequence[Origin | None]) -> Origin | None:
        made = self._how(value)
        return _joined(parts, isinstance(made, Made) and made.only_moved)


def _joined(origins: Sequence[Origin | None], only_moved: bool = True) -> Origin | None:
    """The origin of a value that is made of others with these origins; None where one is unknown, or there
    are too many arguments."""
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        return None
    arguments = {number for origin in known for number in origin.arguments}
    if len(arguments) > MAX_ARGUMENTS:
        return None
    computed = not only_moved or any(origin.computed for origin in known)
    return Origin(tuple(sorted(arguments)), bool(arguments) and computed)


class OperationOrigins:
    """The origins of Shardy's and StableHLO's collectives, within one function.

    A value is known by its name, which text defines it (regions beside each other may use its name again),
    and its number there. Only what stands above an operation is known, so it is asked while the text is
    walked.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._texts: dict[int, str] = {}
        self._origins = Origins(self._how)

    def of(self, operation: MlirOperation) -> Origin | None:
        """The origin of what a collective moves; None when it cannot be told."""
        operand = _MLIR_VALUE.search(operation.text)
        key = self._key(operand[0]) if operand else None
        return self._origins.of([key]) if key else None

    def _key(self, value: str) -> tuple[str, int, int] | None:
        found = self._function.definition(value)
        if found is None:
            return None
        self._texts[id(found[0])] = found[0]
        return value.partition("#")[0], id(found[0]), found[1]

    def _how(self, key: tuple[str, int, int]) -> Made[tuple[str, int, int]] | Origin | None:
        text = self._texts[key[1]]
        if text is self._function.header:
            return Origin((key[2],))
        name = _OPERATION.match(text)
        if name is None or name[1] in _REGIONS or text.startswith(BLOCK_ARGUMENT):
            return None
        values = _MLIR_VALUE.findall(text)
        operands = tuple(operand for value in values if (operand := self._key(value)) is not None)
        if len(operands) < len(values):
            return None
        opcode = (name[1] or "").replace("_", "-")
        moves = text.startswith(("sdy.", '"sdy.')) or opcode in PLACES
        return Made(operands, moves or _SHARDING.match(text) is not None)
