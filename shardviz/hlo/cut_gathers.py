"""Arrays that are gathered from all devices, and of which each device then keeps its own part alone.

So XLA goes from one sharding to another where it knows no way between them. In a compiled text it is certain
where every device has the whole array, and all that takes it cuts it at a place that the device's number
tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shardviz.hlo.collective import Collective
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.shapes import one_array
from shardviz.hlo.text.values import Made, ProgramValue, Values

MAX_STEPS = 50
"""Instructions that are followed from one gather at most."""
_PASSING = MOVES | {"parameter", "fusion"}
_COPIES = ("copy", "bitcast", "fusion")
_OF_THE_DEVICE = frozenset(
    {
        *("partition-id", "replica-id", "constant", "convert", "bitcast", "reshape", "copy", "dynamic-slice"),
        *("add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "clamp", "and"),
        *("shift-left", "shift-right-logical", "compare", "select", "slice", "broadcast"),
    }
)
"""Operations that make a place out of a device's number and constants."""


class CutGather(NamedTuple):
    """The gathers of one array, the last of which has it whole, and the shape that a device then keeps."""

    gathers: tuple[Collective, ...]
    kept: tuple[int, ...]


def cut_gathers(
    values: Values, found: Iterable[tuple[Collective, Instruction]], devices: int
) -> Iterator[CutGather]:
    """The arrays that a program on so many devices replicates only to slice them, by its collectives."""
    gathers = [(record, line) for record, line in found if record.op == "all-gather" and record.arrays == 1]
    known = {record.name: record for record, _ in gathers}
    for last, line in gathers:
        if devices < 2 or line.opcode != "all-gather" or math.prod(last.result_shape) < devices:
            continue
        chain = _chain(values, line, known)
        if math.prod(record.group_size for record in chain) == devices:
            kept = _kept(values, line)
            if len(kept) == len(last.result_shape):
                yield CutGather(chain, kept)


def _chain(values: Values, line: Instruction, known: dict[str, Collective]) -> tuple[Collective, ...]:
    """The gathers one after another that end in one, between which the array is at most copied."""
    collectives = [known[line.name]]
    for _ in range(MAX_STEPS):
        before = values.lines.operand(line, 0) if len(line.operands) == 1 else None
        if before is None:
            break
        if before.name in known:
            collectives.insert(0, known[before.name])
        elif before.opcode not in _COPIES or _sizes(before) != collectives[0].operand_shape:
            break
        line = before
    return tuple(collectives)


def _kept(values: Values, gather: Instruction) -> tuple[int, ...]:
    """The shape to which all that takes an array cuts it, () where something takes more of it."""
    shapes: set[tuple[int, ...]] = set()
    ways = reached(
        [ProgramValue(gather)],
        lambda value: () if value.line.opcode == "dynamic-slice" else values.used_by(value),
    )
    for number, value in enumerate(ways):
        line = value.line
        is_result = line.is_root and values.caller_of(line.home) is None
        if number > MAX_STEPS or value.path:
            return ()
        if line.opcode == "dynamic-slice" and _is_of_the_device(values, line):
            shapes.add(_sizes(line))
        elif is_result or (line is not gather and line.opcode not in _PASSING):
            return ()
    kept = shapes.pop() if len(shapes) == 1 else ()
    return kept if kept != _sizes(gather) else ()


def _is_of_the_device(values: Values, cut: Instruction) -> bool:
    """Return whether an array is cut at places made of the device's number and constants alone."""
    taken = values.lines.taken

    def made_of(value: ProgramValue) -> Iterable[ProgramValue]:
        if value.line.opcode not in ("parameter", "fusion"):
            return (ProgramValue(line, value.caller) for line in taken(value.line))
        made = values.how(value)
        return made.operands if isinstance(made, Made) else ()

    opcodes = set()
    for number, value in enumerate(reached(map(ProgramValue, taken(cut)[1:]), made_of)):
        line = value.line
        opcodes.add(line.opcode)
        if line.opcode in ("parameter", "fusion"):
            is_known = isinstance(values.how(value), Made)
        else:
            is_known = line.opcode == "constant" or len(taken(line)) == len(line.operands)
            is_known = is_known and line.opcode in _OF_THE_DEVICE
        if number > MAX_STEPS or not is_known:
            return False
    return not opcodes.isdisjoint(("partition-id", "replica-id"))


def _sizes(line: Instruction) -> tuple[int, ...]:
    """The sizes of the one array that an instruction makes, () where the text does not tell."""
    array = one_array(line.shape)
    return () if array is None else array.sizes
