"""The arguments of a program that a collective's operands come from, found by following them back."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.mlir.operations import OperationValue
from shardviz.hlo.text.opcodes import PLACES
from shardviz.hlo.text.values import Made, folded

MAX_LOOKS = 1_000
"""Definitions looked at in one module at most, to follow what is computed: a chain of einsums has some
hundreds, a model far more."""
MAX_MOVES = 200
"""Definitions looked at for one value that is only moved."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

_DIALECTS = ("stablehlo", "mhlo", "sdy", "chlo", "func")
_SHARDING = re.compile(r"@(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")

_Value = TypeVar("_Value", bound=Hashable)
_How = Callable[[_Value], Made[_Value] | Origin | None]


class Origins(Generic[_Value]):
    """The origins of values; `how` tells how one is made, of an argument the origin, None if unknown."""

    def __init__(self, how: _How[_Value]) -> None:
        self._how = how
        self._known: dict[_Value, Origin | None] = {}
        self._moves: dict[_Value, tuple[int, Origin | None]] = {}

    def of(self, values: Sequence[_Value]) -> Origin | None:
        """The origin of several values together; None when it cannot be told."""
        if not values:
            return None
        moved = self._moved(values)
        if moved is not None or len(self._known) > MAX_LOOKS:
            return moved
        return _joined([folded(each, self._known, self._step, self._fold, MAX_LOOKS) for each in values])

    def _moved(self, values: Sequence[_Value]) -> Origin | None:
        """The origin of values that are moved, not computed, from the program's arguments to here.

        This ends at the first thing that is computed, and so it is quick in a program of any size. In a chain
        of collectives, each of which moves the one before, that one's own way is known already.
        """
        if len(values) != 1:
            return self._walked(values)[1]
        (value,) = values
        if value not in self._moves:
            made = self._how(value)
            before = made.operands if isinstance(made, Made) and made.only_moved else ()
            known = self._moves.get(before[0]) if len(before) == 1 else None
            looks, origin = (known[0] + 1, known[1]) if known is not None else self._walked(values)
            self._moves[value] = looks, origin if looks <= MAX_MOVES else None
        return self._moves[value][1]

    def _walked(self, values: Sequence[_Value]) -> tuple[int, Origin | None]:
        """The number of values looked at on the way back, and the origin."""
        waiting = [*values]
        seen, found = {*waiting}, set[int]()
        while waiting:
            made = self._how(waiting.pop())
            looks = len(seen) - len(waiting)
            if made is None or looks > MAX_MOVES:
                return looks, None
            if isinstance(made, Origin):
                if made.computed:
                    return looks, None
                found.update(made.arguments)
            elif not made.only_moved:
                return looks, None
            else:
                waiting += (operand for operand in made.operands if operand not in seen)
                seen.update(made.operands)
        return len(seen), Origin(tuple(sorted(found))) if 0 < len(found) <= MAX_ARGUMENTS else None

    def _step(self, value: _Value) -> tuple[Sequence[_Value], Origin | None]:
        made = self._how(value)
        if not isinstance(made, Made):
            return (), made
        # A value that is made of itself stays unknown, and so does all that is given up; a constant, as pads
        # have it, is of no argument.
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


def operation_made(value: OperationValue) -> Made[OperationValue] | Origin | None:
    """The making of a value of Shardy's and StableHLO's, within one function."""
    operation = value.operation
    if operation.name == "func.func":
        return Origin((value.number,))
    dialect, _, name = operation.name.rpartition(".")
    operands = tuple(each for each in operation.operands if each is not None)
    is_open = value.is_argument or len(operands) < len(operation.operands)
    if is_open or dialect not in _DIALECTS or name in _REGIONS:
        return None
    moves = dialect == "sdy" or (dialect != "func" and name.replace("_", "-") in PLACES)
    return Made(operands, moves or (name == "custom_call" and _SHARDING.match(operation.text) is not None))
