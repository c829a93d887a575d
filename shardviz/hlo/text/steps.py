"""The instructions of a computation one after the other, and which of them multiply matrices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation, Computations, line_at
from shardviz.hlo.text.instruction import closing, open_instruction, operand_names

_STEP = re.compile(
    r"[ \t]*+(ROOT )?%?([^\s=,(){}]++) = "
    r"(\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|[^\s(]\S*+) ([a-z][a-z0-9-]*+)\("
)
_NAMES = re.compile(r"%([^\s,(){}=%]+)")
_CALLEE = re.compile(r" (?:calls|to_apply)=%?([^\s,(){}]+)")
_KERNEL = re.compile(r'custom_call_target="[^"]{0,200}?(?:gemm|matmul|\$conv)')
"""Names that libraries give to their matmuls: ``__cublas$gemm``, ``__onednn$matmul``."""
_MATMULS = ("dot", "convolution")
_CALLING = ("fusion", "call", "async-start")
MAX_CALLED = 64
"""No more computations than this are searched for the matmul of one instruction."""


class Step(NamedTuple):
    """An instruction; its line is text[start:stop], and `inside` is where its operands begin."""

    start: int
    stop: int
    name: str
    shape: str
    opcode: str
    inside: int
    is_root: bool


class Steps:
    """The steps of one text's computations; a computation is read when first asked for."""

    def __init__(self, text: str, computations: Computations) -> None:
        self.text = text
        self.computations = computations
        self._steps: dict[int, list[Step]] = {}
        self._operands: dict[int, list[str]] = {}
        self._callees: dict[int, Computation | None] = {}
        self._multiplies: dict[int, bool] = {}
        self._inside: dict[int, tuple[bool, list[Computation]]] = {}

    def of(self, home: Computation) -> list[Step]:
        """Every instruction, in program order."""
        if home.start not in self._steps:
            self._steps[home.start] = [*self._read(home)]
        return self._steps[home.start]

    def root(self, home: Computation) -> Step | None:
        """The instruction whose result is the computation's."""
        return next((step for step in reversed(self.of(home)) if step.is_root), None)

    def at(self, position: int) -> Step | None:
        """The instruction in whose line a position is."""
        return self._step(*line_at(self.text, position))

    def operands(self, step: Step) -> list[str]:
        """The names of its operands."""
        names = self._operands.get(step.start)
        if names is None:
            end = self.text.find(")", step.inside, step.stop)
            names = _NAMES.findall(self.text, step.inside, end)
            if end < 0 or not names or self.text.find("(", step.inside, end) >= 0:
                line = self.text[step.inside : step.stop]
                names = operand_names(line[: closing(line, 0)])
            self._operands[step.start] = names
        return names

    def callee(self, step: Step) -> Computation | None:
        """The computation that a fusion, a call or an async wrapper runs."""
        if step.start not in self._callees:
            called = _CALLEE.search(self.text, step.inside, step.stop)
            found = self.computations.named(called[1], step.start) if called else None
            self._callees[step.start] = found
        return self._callees[step.start]

    def is_matmul(self, step: Step) -> bool:
        """Whether it multiplies matrices: by itself, in a library's kernel, or in what it calls."""
        if step.opcode in _CALLING:
            callee = self.callee(step)
            return callee is not None and self.multiplies(callee)
        if step.opcode == "custom-call":
            return _KERNEL.search(self.text, step.inside, step.stop) is not None
        return step.opcode in _MATMULS

    def multiplies(self, home: Computation) -> bool:
        """Whether a computation, or one that it calls, multiplies matrices."""
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
                step = self._step(start, position)
                callee = self.callee(step) if step else None
                if callee is not None:
                    yield callee

    def _read(self, home: Computation) -> Iterator[Step]:
        text, start = self.text, home.start
        while start < home.stop:
            end = text.find("\n", start, home.stop)
            stop = home.stop if end < 0 else end
            step = self._step(start, stop)
            if step is not None:
                yield step
            start = stop + 1

    def _step(self, start: int, stop: int) -> Step | None:
        match = _STEP.match(self.text, start, stop)
        if match is not None:
            return Step(start, stop, match[2], match[3], match[4], match.end(), match[1] is not None)
        line = self.text[start:stop]
        opened = open_instruction(line)
        if opened is None:
            return None
        return Step(start, stop, *opened[:3], start + opened[3], line.lstrip().startswith("ROOT "))
