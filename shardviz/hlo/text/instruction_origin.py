"""Where an HLO collective's operands come from: through fusions and calls, within one run of the program."""

from __future__ import annotations

import re
from typing import NamedTuple

from shardviz.hlo.origin import MOVES, Made, Origin, Origins
from shardviz.hlo.text.computation import Computation, Computations, line_at
from shardviz.hlo.text.instruction import Instruction, closing, open_instruction

_DEFINITION = re.compile(r"^[ \t]*+(ROOT )?%?([^\s=,(){}]++) = ", re.MULTILINE)
_OPERAND = re.compile(r"%?([^\s%=,(){}]+)(?=[,)])")
_CALLS = re.compile(r" (?:calls|to_apply)=%?([^\s,(){}]+)")
_INDEX = re.compile(r" index=(\d{1,6})")
_ASYNC = re.compile(r"-(?:start|done|update)$")
_CALLING = ("fusion", "call", "async")


class _Value(NamedTuple):
    """An instruction of a computation, as the value `caller` runs it; maybe one `element` of its tuple."""

    computation: Computation
    name: str
    caller: _Value | None = None
    element: int | None = None


class InstructionOrigins:
    """Follows the operands of the collectives of one module."""

    def __init__(self, text: str, computations: Computations) -> None:
        self._text = text
        self._computations = computations
        self._origins: Origins[_Value] = Origins(self._look)
        self._defined: dict[int, dict[str, int]] = {}
        self._roots: dict[int, str] = {}
        self._taken: dict[int, list[str]] = {}

    def of(self, instruction: Instruction, home: Computation) -> Origin | None:
        """The origin of a collective's operands together; None when it cannot be told."""
        if self._origins.is_given_up:
            return None
        origins = [
            self._origins.of(_Value(home, name)) for name in self._operands(home, instruction.operands)
        ]
        if not origins or None in origins:
            return None
        arguments = {number for origin in origins if origin for number in origin.arguments}
        return Origin(tuple(sorted(arguments)), any(origin and origin.computed for origin in origins))

    def _look(self, value: _Value) -> Made[_Value] | Origin | None:
        home = value.computation
        position = self._definitions(home).get(value.name)
        if position is None:
            return None
        start, stop = line_at(self._text, position)
        line = self._text[start:stop]
        opened = open_instruction(line)
        if opened is None:
            return None
        _, _, opcode, inside = opened
        end = closing(line, inside)
        if opcode == "parameter":
            return self._parameter(value, line[inside : end - 1])
        opcode = _ASYNC.sub("", opcode)
        if opcode in _CALLING and (called := _CALLS.search(line, end)):
            callee = self._computations.named(called[1], position)
            root = self._root(callee) if callee else None
            if callee is None or root is None:
                return None
            # Which element is asked for is the root's affair; the parameters are the same for all.
            made_by = value._replace(element=None)
            return Made((_Value(callee, root, made_by, value.element),), True)
        if opcode in ("while", "conditional", "recv", "infeed"):
            return None
        names, element = self._operands_at(home, start + inside), None
        if opcode == "get-tuple-element" and (index := _INDEX.search(line, end)):
            element = int(index[1])
        elif value.element is not None and opcode != "all-to-all" and opcode in MOVES:
            names = names[value.element : value.element + 1]
            if not names:
                return None
        return Made(tuple(_Value(home, name, value.caller, element) for name in names), opcode in MOVES)

    def _parameter(self, value: _Value, number: str) -> Made[_Value] | Origin | None:
        if not number.isdecimal() or len(number) > 6:
            return None
        if value.caller is None:
            return Origin((int(number),)) if value.computation.is_entry else None
        caller = value.caller
        start, stop = line_at(self._text, self._definitions(caller.computation)[caller.name])
        opened = open_instruction(self._text[start:stop])
        if opened is None:
            return None
        operands = self._operands_at(caller.computation, start + opened[3])
        if int(number) >= len(operands):
            return None
        return Made((_Value(caller.computation, operands[int(number)], caller.caller),), True)

    def _operands_at(self, home: Computation, position: int) -> list[str]:
        """The operands of the instruction whose list of them begins at a position; a list is read once."""
        if position not in self._taken:
            _, stop = line_at(self._text, position)
            self._taken[position] = self._operands(home, self._text[position:stop])
        return self._taken[position]

    def _operands(self, home: Computation, text: str) -> list[str]:
        """The names in front of the parenthesis that closes a list of operands, shapes passed over."""
        defined = self._definitions(home)
        names = _OPERAND.findall(text, 0, closing(text, 0))
        return [name for name in names if name in defined]

    def _definitions(self, home: Computation) -> dict[str, int]:
        """Where each instruction of a computation stands."""
        if home.start not in self._defined:
            places: dict[str, int] = {}
            for match in _DEFINITION.finditer(self._text, home.start, home.stop):
                places[match[2]] = match.start(2)
                if match[1]:
                    self._roots[home.start] = match[2]
            self._defined[home.start] = places
        return self._defined[home.start]

    def _root(self, home: Computation) -> str | None:
        self._definitions(home)
        return self._roots.get(home.start)
