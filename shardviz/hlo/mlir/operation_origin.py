"""Where a Shardy or StableHLO collective's operand comes from, within the module's main function."""

from __future__ import annotations

import re

from shardviz.hlo.mlir.mlir_regions import BLOCK_ARGUMENT, Function, Operation
from shardviz.hlo.origin import MOVES, Made, Origin, Origins

_NAME = re.compile(r'"?(?:stablehlo|mhlo|sdy|chlo)\.(\w+)"?')
_SHARDING = re.compile(r"stablehlo\.custom_call @(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_VALUE = re.compile(r"%[\w$.#-]+")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")


class OperationOrigins:
    """Follows operands; one for each function, as others may have values of the same names.

    Only what stands above an operation is known, so it is asked while the text is walked.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._origins: Origins[tuple[str, int, int]] = Origins(self._look)
        self._texts: dict[int, str] = {}

    def of(self, operation: Operation) -> Origin | None:
        """The origin of what a collective moves; None when it cannot be told."""
        if self._origins.is_given_up:
            return None
        operand = _VALUE.search(operation.text)
        key = self._key(operand[0]) if operand else None
        return self._origins.of(key) if key else None

    def _key(self, value: str) -> tuple[str, int, int] | None:
        """A value and which text defines it: regions beside each other may use its name again."""
        found = self._function.definition(value)
        if found is None:
            return None
        self._texts[id(found[0])] = found[0]
        return value.partition("#")[0], id(found[0]), found[1]

    def _look(self, key: tuple[str, int, int]) -> Made[tuple[str, int, int]] | Origin | None:
        text = self._texts[key[1]]
        if text is self._function.header:
            return Origin((key[2],))
        name = _NAME.match(text)
        if name is None or name[1] in _REGIONS or text.startswith(BLOCK_ARGUMENT):
            return None
        operands = tuple(map(self._key, _VALUE.findall(text)))
        if None in operands:
            return None
        moves = text.startswith(("sdy.", '"sdy.')) or name[1].replace("_", "-") in MOVES
        known = tuple(each for each in operands if each is not None)
        return Made(known, moves or _SHARDING.match(text) is not None)
