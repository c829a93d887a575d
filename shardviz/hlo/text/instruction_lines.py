"""The instructions of a computation one after the other, and which of them multiply matrices."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation, Computations, line_at
from shardviz.hlo.text.instruction import closing, open_instruction, operand_names

MAX_CALLED = 64
"""No more computations than this are searched for the matmul of one instruction."""
MAX_NESTED = 20
"""Fusions within one another, looked into at most."""

_LINE = re.compile(
    r"[ \t]*+(ROOT )?%?([^\s=,(){}]++) = "
    r"(\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|[^\s(]\S*+) ([a-z][a-z0-9-]*+)\("
)
_NAMES = re.compile(r"%([^\s,(){}=%]+)")
_CALLEE = re.compile(r" (?:calls|to_apply)=%?([^\s,(){}]+)")
_BODY = re.compile(r" body=%?([^\s,(){}]+)")
_PARAMETER = re.compile(r"\s*(\d{1,6})\s*\)")
_INDEX = re.compile(r" index=(\d{1,6})")
_KERNEL = re.compile(r'custom_call_target="[^"]{0,200}?(?:gemm|matmul|\$conv)')
"""Names that libraries give to their matmuls: ``__cublas$gemm``, ``__onednn$matmul``."""
_MATMULS = ("dot", "convolution")
_CALLING = ("fusion", "call", "async-start")


class InstructionLine(NamedTuple):
    """An instruction; its line is text[start:stop], and `inside` is where its operands begin."""

    start: int
    stop: int
    name: str
    shape: str
    opcode: str
    inside: int
    is_root: bool


class InstructionLines:
    """The instructions of one text's computations; a computation is read when first asked for."""

    def __init__(self, text: str, computations: Computations) -> None:
        self.text = text
        self.computations = computations
        self._at: dict[int, InstructionLine | None] = {}
        self._lines: dict[int, list[InstructionLine]] = {}
        self._named: dict[int, dict[str, InstructionLine]] = {}
        self._operands: dict[int, list[str]] = {}
        self._users: dict[int, dict[str, list[InstructionLine]]] = {}
        self._callees: dict[int, Computation | None] = {}
        self._multiplies: dict[int, bool] = {}
        self._inside: dict[int, tuple[bool, list[Computation]]] = {}
        self._factors: dict[int, frozenset[int]] = {}

    def of(self, home: Computation) -> list[InstructionLine]:
        """Every instruction of a computation, in program order."""
        if home.start not in self._lines:
            self._lines[home.start] = [*self._read(home)]
        return self._lines[home.start]

    def named(self, home: Computation, name: str) -> InstructionLine | None:
        """The instruction of a computation by its name; the last one where the name is used again."""
        if home.start not in self._named:
            self._named[home.start] = {line.name: line for line in self.of(home)}
        return self._named[home.start].get(name)

    def root(self, home: Computation) -> InstructionLine | None:
        """The instruction whose result is the computation's."""
        return next((line for line in reversed(self.of(home)) if line.is_root), None)

    def at(self, position: int) -> InstructionLine | None:
        """The instruction in whose line a position is."""
        return self.between(*line_at(self.text, position))

    def between(self, start: int, stop: int) -> InstructionLine | None:
        """The instruction in a line that begins and ends at these positions."""
        if start not in self._at:
            self._at[start] = self._line(start, stop)
        return self._at[start]

    def operands(self, line: InstructionLine) -> list[str]:
        """The names of an instruction's operands."""
        names = self._operands.get(line.start)
        if names is None:
            end = self.text.find(")", line.inside, line.stop)
            names = _NAMES.findall(self.text, line.inside, end)
            if end < 0 or not names or self.text.find("(", line.inside, end) >= 0:
                rest = self.text[line.inside : line.stop]
                names = operand_names(rest[: closing(rest, 0)])
            self._operands[line.start] = names
        return names

    def users(self, home: Computation, name: str) -> list[InstructionLine]:
        """The instructions of a computation that take a value of it, each once."""
        if home.start not in self._users:
            users = self._users[home.start] = defaultdict(list)
            for line in self.of(home):
                for operand in dict.fromkeys(self.operands(line)):
                    users[operand].append(line)
        return self._users[home.start].get(name, [])

    def parameter_number(self, line: InstructionLine) -> int | None:
        """The number of the parameter that an instruction is; None where it is damaged."""
        number = _PARAMETER.match(self.text, line.inside, line.stop)
        return int(number[1]) if number else None

    def element_index(self, line: InstructionLine) -> int | None:
        """The number of the element that a get-tuple-element takes; None where the line does not tell."""
        index = _INDEX.search(self.text, line.inside, line.stop)
        return int(index[1]) if index else None

    def callee(self, line: InstructionLine) -> Computation | None:
        """The computation that a fusion, a call or an async wrapper runs."""
        if line.start not in self._callees:
            called = _CALLEE.search(self.text, line.inside, line.stop)
            found = self.computations.named(called[1], line.start) if called else None
            self._callees[line.start] = found
        return self._callees[line.start]

    def body(self, line: InstructionLine) -> Computation | None:
        """The computation that a while instruction repeats."""
        called = _BODY.search(self.text, line.inside, line.stop)
        return self.computations.named(called[1], line.start) if called else None

    def is_matmul(self, line: InstructionLine) -> bool:
        """Return whether it multiplies matrices: by itself, in a library's kernel, or in what it calls."""
        if line.opcode in _CALLING:
            callee = self.callee(line)
            return callee is not None and self.multiplies(callee)
        if line.opcode == "custom-call":
            return _KERNEL.search(self.text, line.inside, line.stop) is not None
        return line.opcode in _MATMULS

    def multiplies(self, home: Computation) -> bool:
        """Return whether a computation, or one that it calls, multiplies matrices."""
        if home.start not in self._multiplies:
            waiting, seen, found = [home], {home.start}, False
            while waiting and not found:
                each = waiting.pop()
                if each.start not in self._inside:
                    self._inside[each.start] = self._has_matmul(each), [*self._called(each)]
                found, called = self._inside[each.start]
                waiting += [callee for callee in called if callee.start not in seen][: MAX_CALLED - len(seen)]
                seen.update(callee.start for callee in waiting)
            self._multiplies[home.start] = found
        return self._multiplies[home.start]

    def factors(self, line: InstructionLine, depth: int = 0) -> frozenset[int]:
        """The numbers of the operands that a matmul multiplies, whatever it does to them before."""
        if not self.is_matmul(line):
            return frozenset()
        callee = None if line.opcode == "custom-call" else self.callee(line)
        if callee is None:
            return frozenset((0, 1))
        if callee.start not in self._factors:
            self._factors[callee.start] = frozenset()
            if depth < MAX_NESTED:
                self._factors[callee.start] = self._multiplied_parameters(callee, depth)
        return self._factors[callee.start]

    def _multiplied_parameters(self, home: Computation, depth: int) -> frozenset[int]:
        waiting = [
            name
            for line in self.of(home)
            for number in self.factors(line, depth + 1)
            for name in self.operands(line)[number : number + 1]
        ]
        seen, found = set(waiting), set()
        while waiting:
            line = self.named(home, waiting.pop())
            if line is None:
                continue
            if line.opcode == "parameter":
                if (number := self.parameter_number(line)) is not None:
                    found.add(number)
                continue
            operands = set(self.operands(line)) - seen
            seen |= operands
            waiting += operands
        return frozenset(found)

    def _has_matmul(self, home: Computation) -> bool:
        text = self.text
        return (
            any(text.find(f" {opcode}(", home.start, home.stop) >= 0 for opcode in _MATMULS)
            or _KERNEL.search(text, home.start, home.stop) is not None
        )

    def _called(self, home: Computation) -> Iterator[Computation]:
        for opcode in _CALLING:
            position = home.start
            while (position := self.text.find(f" {opcode}(", position, home.stop)) >= 0:
                start, position = line_at(self.text, position)
                line = self._line(start, position)
                callee = self.callee(line) if line else None
                if callee is not None:
                    yield callee

    def _read(self, home: Computation) -> Iterator[InstructionLine]:
        text, start = self.text, home.start
        while start < home.stop:
            end = text.find("\n", start, home.stop)
            stop = home.stop if end < 0 else end
            line = self._line(start, stop)
            if line is not None:
                yield line
            start = stop + 1

    def _line(self, start: int, stop: int) -> InstructionLine | None:
        match = _LINE.match(self.text, start, stop)
        if match is not None:
            return InstructionLine(
                start, stop, match[2], match[3], match[4], match.end(), match[1] is not None
            )
        line = self.text[start:stop]
        opened = open_instruction(line)
        if opened is None:
            return None
        return InstructionLine(start, stop, *opened[:3], start + opened[3], line.lstrip().startswith("ROOT "))
