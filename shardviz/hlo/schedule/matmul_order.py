"""The place of collectives among a program's matmuls: after how many of them each begins.

Counted are instructions that multiply matrices, fused ones too, in program order, each once however often it
runs. The partial matmuls of a collective matmul count as the one that they are parts of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from shardviz.hlo.collective import Collective, CollectiveMatmul, MatmulOrder
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.normal_form import normal_form
from shardviz.hlo.text.opcodes import BODIES, CONTROL, FOLDED


def with_matmul_order(
    text: str, collectives: Iterable[Collective], matmuls: Iterable[CollectiveMatmul]
) -> tuple[Collective, ...]:
    """The collectives that `read_hlo` found in a text, each with its `matmul_order`.

    None where the text has no entry computation, or does not lead from there to the collective.
    """
    lines, collectives = Instructions(normal_form(text).text), tuple(collectives)
    wholes = {name: matmul for matmul in matmuls for name in matmul.matmuls}
    wanted, before = {each.name for each in collectives}, dict[str, int]()
    count, counted = 0, set[CollectiveMatmul]()
    inside: dict[Computation, int] = {}
    for line in _in_order(lines):
        callee = lines.callee(line) if line.opcode in FOLDED else None
        names = [line.name, *(inner.name for inner in (lines.of(callee) if callee else ()))]
        before |= dict.fromkeys(wanted.intersection(names) - before.keys(), count)
        whole = wholes.get(line.name)
        if line.opcode in CONTROL or whole in counted:
            continue
        if whole is None:
            count += _matmuls_in(line, lines, inside)
        else:
            count += 1
            counted.add(whole)
    return tuple(
        replace(each, matmul_order=MatmulOrder(before[each.name], count)) if each.name in before else each
        for each in collectives
    )


def _matmuls_in(line: Instruction, lines: Instructions, inside: dict[Computation, int]) -> int:
    """The number of matmuls in an instruction: a fusion may hold several; `inside` has those of fusions."""
    callee = lines.callee(line) if line.opcode in FOLDED else None
    if callee is None:
        return int(lines.is_matmul(line))
    if callee not in inside:
        inside[callee] = 0  # for a text that goes in circles
        if lines.multiplies(callee):
            inside[callee] = sum(_matmuls_in(inner, lines, inside) for inner in lines.of(callee))
    return inside[callee]


def _in_order(lines: Instructions) -> Iterator[Instruction]:
    """The program from its entry on, as it runs: into loops, calls and branches, each once."""
    home = lines.computations.entry
    seen, running = {home}, [] if home is None else [iter(lines.of(home))]
    while running:
        line = next(running[-1], None)
        if line is None:
            running.pop()
            continue
        yield line
        called = lines.called(line, *BODIES) if line.opcode in CONTROL else []
        bodies = [body for body in called if body not in seen]
        seen.update(bodies)
        running += [iter(lines.of(body)) for body in reversed(bodies)]
