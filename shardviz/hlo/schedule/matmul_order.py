"""The place of collectives among a program's matmuls: after how many of them each begins.

Counted are instructions that multiply matrices, fused ones too, in program order, each once however often it
runs. The partial matmuls of a collective matmul count as the one that they are parts of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from shardviz.hlo.collective import Collective, CollectiveMatmul, MatmulOrder
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.normal_form import normal_form
from shardviz.hlo.text.opcodes import BODIES, CONTROL

_WRAPPERS = ("fusion", "async-start")


def with_matmul_order(
    text: str, collectives: Iterable[Collective], matmuls: Iterable[CollectiveMatmul]
) -> tuple[Collective, ...]:
    """The collectives that `read_hlo` found in a text, each with its `matmul_order`.

    None where the text has no entry computation, or does not lead from there to the collective.
    """
    parts = {name: matmul for matmul in matmuls for name in matmul.matmuls}
    order = _ProgramOrder(Instructions(normal_form(text).text), parts)
    collectives = tuple(collectives)
    before = order.matmuls_before({each.name for each in collectives})
    return tuple(
        replace(each, matmul_order=MatmulOrder(before[each.name], order.count))
        if each.name in before
        else each
        for each in collectives
    )


class _ProgramOrder:
    """The program from its entry on, as it runs: into loops, calls and branches, each once."""

    def __init__(self, lines: Instructions, parts: dict[str, CollectiveMatmul]) -> None:
        self.count = 0
        self._lines = lines
        self._parts = parts
        self._counted: set[CollectiveMatmul] = set()
        self._inside: dict[int, int] = {}

    def matmuls_before(self, wanted: set[str]) -> dict[str, int]:
        """The matmuls before each of some instructions, by name; `count` is then the number of all."""
        found: dict[str, int] = {}
        for line in self._in_order():
            names = [line.name]
            callee = self._lines.callee(line) if line.opcode in _WRAPPERS else None
            if callee is not None:
                names += [inner.name for inner in self._lines.of(callee)]
            for name in wanted.intersection(names):
                found.setdefault(name, self.count)
            if line.opcode not in CONTROL:
                whole = self._parts.get(line.name)
                if whole is None:
                    self.count += self._matmuls_of(line)
                elif whole not in self._counted:
                    self.count += 1
                    self._counted.add(whole)
        return found

    def _matmuls_of(self, line: Instruction) -> int:
        """The number of matmuls in an instruction: a fusion may hold several."""
        callee = self._lines.callee(line) if line.opcode in _WRAPPERS else None
        if callee is None:
            return int(self._lines.is_matmul(line))
        if callee.start not in self._inside:
            self._inside[callee.start] = 0  # for a text that goes in circles
            if self._lines.multiplies(callee):
                self._inside[callee.start] = sum(map(self._matmuls_of, self._lines.of(callee)))
        return self._inside[callee.start]

    def _in_order(self) -> Iterator[Instruction]:
        home = self._lines.computations.entry
        if home is None:
            return
        seen, running = {home.start}, [iter(self._lines.of(home))]
        while running:
            line = next(running[-1], None)
            if line is None:
                running.pop()
                continue
            yield line
            called = self._lines.called(line, *BODIES) if line.opcode in CONTROL else []
            bodies = [body for body in called if body.start not in seen]
            seen.update(body.start for body in bodies)
            running += [iter(self._lines.of(body)) for body in reversed(bodies)]
