"""Where collectives stand among a program's matmuls: after how many of them each begins.

Counted are instructions that multiply matrices, fused ones too, in program order, each once however often it
runs. The partial matmuls of a collective matmul count as the one that they are parts of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from shardviz.hlo.collective import Collective, Standing
from shardviz.hlo.collective_matmul import CollectiveMatmul
from shardviz.hlo.text.computation import Computation, Computations
from shardviz.hlo.text.normal_form import normal_form
from shardviz.hlo.text.steps import Step, Steps

_ENTRY = re.compile(r"^ENTRY [^\n]*+\n", re.MULTILINE)
_CONTROL = ("while", "call", "conditional")
_WRAPPERS = ("fusion", "async-start")
_BODIES = re.compile(
    r" (?:body|to_apply|true_computation|false_computation)=%?([^\s,(){}]++)"
    r"| branch_computations=\{([^{}]*+)\}"
)


def with_standing(
    text: str, collectives: Iterable[Collective], matmuls: Iterable[CollectiveMatmul]
) -> tuple[Collective, ...]:
    """The collectives that `read_hlo` found in a text, each with its `standing`.

    None where the text has no entry computation, or does not lead from there to the collective.
    """
    parts = {name: matmul for matmul in matmuls for name in matmul.matmuls}
    walk = _Walk(normal_form(text).computations, parts)
    collectives = tuple(collectives)
    before = walk.matmuls_before({each.name for each in collectives})
    return tuple(
        replace(each, standing=Standing(before[each.name], walk.count)) if each.name in before else each
        for each in collectives
    )


class _Walk:
    """The program from its entry on, as it runs: into loops, calls and branches, each once."""

    def __init__(self, computations: Computations, parts: dict[str, CollectiveMatmul]) -> None:
        self.count = 0
        self._text = computations.text
        self._computations = computations
        self._steps = Steps(self._text, computations)
        self._parts = parts
        self._counted: set[CollectiveMatmul] = set()
        self._inside: dict[int, int] = {}

    def matmuls_before(self, wanted: set[str]) -> dict[str, int]:
        """How many matmuls come before each of some instructions, by name; `count` is then that of all."""
        found: dict[str, int] = {}
        for step in self._in_order():
            names = [step.name]
            callee = self._steps.callee(step) if step.opcode in _WRAPPERS else None
            if callee is not None:
                names += [inner.name for inner in self._steps.of(callee)]
            for name in wanted.intersection(names):
                found.setdefault(name, self.count)
            if step.opcode not in _CONTROL:
                whole = self._parts.get(step.name)
                if whole is None:
                    self.count += self._matmuls_of(step)
                elif whole not in self._counted:
                    self.count += 1
                    self._counted.add(whole)
        return found

    def _matmuls_of(self, step: Step) -> int:
        """How many matmuls an instruction is: a fusion may hold several."""
        callee = self._steps.callee(step) if step.opcode in _WRAPPERS else None
        if callee is None:
            return int(self._steps.is_matmul(step))
        if callee.start not in self._inside:
            self._inside[callee.start] = 0  # for a text that goes in circles
            if self._steps.multiplies(callee):
                self._inside[callee.start] = sum(map(self._matmuls_of, self._steps.of(callee)))
        return self._inside[callee.start]

    def _in_order(self) -> Iterator[Step]:
        entry = _ENTRY.search(self._text)
        if entry is None:
            return
        home = self._computations.around(entry.end())
        seen, running = {home.start}, [iter(self._steps.of(home))]
        while running:
            step = next(running[-1], None)
            if step is None:
                running.pop()
                continue
            yield step
            bodies = [body for body in self._bodies(step) if body.start not in seen]
            seen.update(body.start for body in bodies)
            running += [iter(self._steps.of(body)) for body in reversed(bodies)]

    def _bodies(self, step: Step) -> list[Computation]:
        if step.opcode not in _CONTROL:
            return []
        names: list[str] = []
        for one, several in _BODIES.findall(self._text[step.inside : step.stop]):
            names += [one] if one else [name.strip().removeprefix("%") for name in several.split(",")]
        found = (self._computations.named(name, step.start) for name in names)
        return [body for body in found if body is not None]
