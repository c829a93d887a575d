"""The arguments of a program that a collective's operands come from, found by following them back."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.mlir.regions import BLOCK_ARGUMENT, Function, MlirOperation
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instruction_lines import InstructionLine, InstructionLines

MAX_LOOKS = 1_000
"""Definitions looked at in one module at most: a chain of einsums has some hundreds, a model far more."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

_MOVES = frozenset(
    {
        *("copy", "convert", "bitcast", "bitcast-convert", "transpose", "reshape", "select", "pad"),
        *("slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "optimization-barrier"),
        *("tuple", "get-tuple-element", "fusion", "call", "async"),
        *("all-gather", "all-reduce", "reduce-scatter", "all-to-all"),
        *("collective-permute", "collective-broadcast"),
    }
)
"""HLO's operations that put elements elsewhere but compute nothing with those of different places.

An all-reduce is one of them: what it adds are the parts of one array.
"""
_ELEMENTS = {"dynamic-slice": slice(1), "dynamic-update-slice": slice(2), "select": slice(1, None)}
"""The operands that elements come from; the others tell which."""
_ASYNC = re.compile(r"-(?:start|done|update)$")
_CALLING = ("fusion", "call", "async")
_OPERATION = re.compile(r'"?(?:stablehlo|mhlo|sdy|chlo)\.(\w+)"?|(?:func\.)?(call) @')
_SHARDING = re.compile(r"stablehlo\.custom_call @(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_MLIR_VALUE = re.compile(r"%[\w$.#-]+")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")

_Value = TypeVar("_Value", bound=Hashable)


@dataclass(frozen=True)
class _Made(Generic[_Value]):
    """A value that is made of others; with `only_moved` of nothing but their elements."""

    operands: tuple[_Value, ...]
    only_moved: bool


class _Origins(Generic[_Value]):
    """Finds the origins of values in a language that `_look` reads."""

    def __init__(self) -> None:
        self._known: dict[_Value, Origin | None] = {}
        self._looks = 0

    def _look(self, value: _Value) -> _Made[_Value] | Origin | None:
        """Return how a value is made; the origin itself of an argument; None if that is unknown."""
        raise NotImplementedError

    def _origin(self, value: _Value) -> Origin | None:
        """The origin of a value; None when it is unknown, or too much has been looked at."""
        pending: list[tuple[_Value, _Made[_Value] | None]] = [(value, None)]
        while pending:
            current, made = pending.pop()
            if made is not None:
                origin = _joined([self._known.get(each) for each in made.operands], made.only_moved)
                is_told = origin is not None and len(origin.arguments) <= MAX_ARGUMENTS
                self._known[current] = origin if is_told else None
            elif current not in self._known:
                # A value that is made of itself stays unknown, and so does all that is given up.
                self._known[current] = None
                self._looks += 1
                if self._looks > MAX_LOOKS:
                    return None
                found = self._look(current)
                if isinstance(found, _Made):
                    pending.append((current, found))
                    pending.extend((each, None) for each in found.operands)
                else:
                    self._known[current] = found
        return self._known[value]


def _joined(origins: Sequence[Origin | None], only_moved: bool = True) -> Origin | None:
    """The origin of a value that is made of others with these origins; None where one is unknown."""
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        return None
    arguments = {number for origin in known for number in origin.arguments}
    computed = not only_moved or any(origin.computed for origin in known)
    return Origin(tuple(sorted(arguments)), bool(arguments) and computed)


class _InstructionValue(NamedTuple):
    """An instruction of a computation, as the value `caller` runs it; maybe one `element` of its tuple."""

    computation: Computation
    name: str
    caller: _InstructionValue | None = None
    element: int | None = None


class InstructionOrigins(_Origins[_InstructionValue]):
    """The origins of HLO's collectives: through fusions, calls, and loops that hand an array on."""

    def __init__(self, lines: InstructionLines) -> None:
        super().__init__()
        self._lines = lines
        self._loops: dict[int, tuple[Computation, str] | None] = {}

    def of(self, instruction: Instruction, home: Computation) -> Origin | None:
        """The origin of a collective's operands together; None when it cannot be told."""
        line = None if self._looks > MAX_LOOKS else self._lines.named(home, instruction.name)
        names = self._operands(home, line) if line else []
        return _joined([self._origin(_InstructionValue(home, name)) for name in names]) if names else None

    def _look(self, value: _InstructionValue) -> _Made[_InstructionValue] | Origin | None:
        home, lines = value.computation, self._lines
        line = lines.named(home, value.name)
        if line is None:
            return None
        opcode = _ASYNC.sub("", line.opcode)
        if opcode == "parameter":
            return self._parameter(value, lines.parameter_number(line))
        if opcode in _CALLING and (callee := lines.callee(line)) is not None:
            root = lines.root(callee)
            if root is None:
                return None
            # Which element is asked for is the root's affair; the parameters are the same for all.
            made_by = value._replace(element=None)
            return _Made((_InstructionValue(callee, root.name, made_by, value.element),), True)
        if opcode in ("while", "conditional", "recv", "infeed"):
            return None
        names, element = self._operands(home, line)[_ELEMENTS.get(opcode, slice(None))], None
        if opcode == "get-tuple-element":
            element = lines.element_index(line)
        elif value.element is not None and opcode != "all-to-all" and opcode in _MOVES:
            names = names[value.element : value.element + 1]
            if not names:
                return None
        values = (_InstructionValue(home, name, value.caller, element) for name in names)
        return _Made(tuple(values), opcode in _MOVES)

    def _parameter(
        self, value: _InstructionValue, number: int | None
    ) -> _Made[_InstructionValue] | Origin | None:
        caller = value.caller
        if number is None:
            return None
        if caller is None:
            return Origin((number,)) if value.computation.is_entry else self._carried(value)
        line = self._lines.named(caller.computation, caller.name)
        operands = self._operands(caller.computation, line) if line else []
        if number >= len(operands):
            return None
        return _Made((_InstructionValue(caller.computation, operands[number], caller.caller),), True)

    def _carried(self, value: _InstructionValue) -> _Made[_InstructionValue] | None:
        """The element of a loop's state that the loop begins with, where each run hands it on as it is."""
        lines, body, element = self._lines, value.computation, value.element
        root = lines.root(body)
        loop = self._loop_of(body)
        if element is None or root is None or root.opcode != "tuple" or loop is None:
            return None
        handed_on = lines.operands(root)[element : element + 1]
        line = lines.named(body, handed_on[0]) if handed_on else None
        if line is None or line.opcode != "get-tuple-element" or lines.element_index(line) != element:
            return None
        if lines.operands(line) != [value.name]:
            return None
        home, state = loop
        return _Made((_InstructionValue(home, state, None, element),), True)

    def _loop_of(self, body: Computation) -> tuple[Computation, str] | None:
        """The computation that has the loop around a body, and the name of the state it begins with."""
        if body.start not in self._loops:
            found = None
            for position in self._lines.computations.sites.get(body.name, ()):
                line = self._lines.at(position)
                if line is None or line.opcode != "while":
                    continue
                home = self._lines.computations.around(position)
                names = self._operands(home, line)
                found = (home, names[0]) if names else None
            self._loops[body.start] = found
        return self._loops[body.start]

    def _operands(self, home: Computation, line: InstructionLine) -> list[str]:
        """The operands of an instruction that its computation defines."""
        return [name for name in self._lines.operands(line) if self._lines.named(home, name)]


class OperationOrigins(_Origins[tuple[str, int, int]]):
    """The origins of Shardy's and StableHLO's collectives, within one function.

    Other functions may have values of the same names. Only what stands above an operation is known, so it
    is asked while the text is walked.
    """

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._texts: dict[int, str] = {}

    def of(self, operation: MlirOperation) -> Origin | None:
        """The origin of what a collective moves; None when it cannot be told."""
        operand = None if self._looks > MAX_LOOKS else _MLIR_VALUE.search(operation.text)
        key = self._key(operand[0]) if operand else None
        return self._origin(key) if key else None

    def _key(self, value: str) -> tuple[str, int, int] | None:
        """A value and which text defines it: regions beside each other may use its name again."""
        found = self._function.definition(value)
        if found is None:
            return None
        self._texts[id(found[0])] = found[0]
        return value.partition("#")[0], id(found[0]), found[1]

    def _look(self, key: tuple[str, int, int]) -> _Made[tuple[str, int, int]] | Origin | None:
        text = self._texts[key[1]]
        if text is self._function.header:
            return Origin((key[2],))
        name = _OPERATION.match(text)
        if name is None or name[1] in _REGIONS or text.startswith(BLOCK_ARGUMENT):
            return None
        values = _MLIR_VALUE.findall(text)
        operands = tuple(each for value in values if (each := self._key(value)) is not None)
        if len(operands) < len(values):
            return None
        opcode = (name[1] or "").replace("_", "-")
        moves = text.startswith(("sdy.", '"sdy.')) or opcode in _MOVES
        return _Made(operands, moves or _SHARDING.match(text) is not None)
