"""Which operands of an instruction are multiplied with one another, and which are added to the product."""

from __future__ import annotations

import re

from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.steps import Step, Steps

MAX_NESTED = 20
"""Fusions within one another, looked into at most."""
_FACTORS = 2
_NUMBER = re.compile(r"(\d{1,6})\)")


class MatmulOperands:
    """Looks into the matmuls of one text; a fusion's computation is read once."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._factors: dict[int, frozenset[int]] = {}

    def factors(self, step: Step, depth: int = 0) -> frozenset[int]:
        """The numbers of the operands that a matmul multiplies, whatever it does to them before."""
        if not self._steps.is_matmul(step):
            return frozenset()
        callee = None if step.opcode == "custom-call" else self._steps.callee(step)
        if callee is None:
            return frozenset(range(_FACTORS))
        if callee.start not in self._factors:
            self._factors[callee.start] = frozenset()
            if depth < MAX_NESTED:
                self._factors[callee.start] = self._parameters(callee, depth)
        return self._factors[callee.start]

    def _parameters(self, home: Computation, depth: int) -> frozenset[int]:
        steps = self._steps.of(home)
        named = {step.name: step for step in steps}
        waiting = [
            name
            for step in steps
            for number in self.factors(step, depth + 1)
            for name in self._steps.operands(step)[number : number + 1]
        ]
        seen, found = set(waiting), set()
        while waiting:
            step = named.get(waiting.pop())
            if step is None:
                continue
            if step.opcode == "parameter":
                number = _NUMBER.match(self._steps.text, step.inside)
                if number is not None:
                    found.add(int(number[1]))
                continue
            for name in self._steps.operands(step):
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return frozenset(found)
