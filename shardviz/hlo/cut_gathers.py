"""Arrays that are gathered from all devices, and of which each device then keeps its own part alone.

So XLA goes from one sharding to another where it knows no way between them. In a compiled text it is certain
where every device has the whole array, and all that takes it cuts it at a place that the device's number
tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.shapes import arrays, parse_shape

MAX_STEPS = 50
"""Instructions that are followed from one gather at most."""
_OF_THE_DEVICE = frozenset(
    {
        *("partition-id", "replica-id", "constant", "convert", "bitcast", "reshape", "copy", "dynamic-slice"),
        *("add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "clamp", "and"),
        *("shift-left", "shift-right-logical", "compare", "select", "slice", "broadcast"),
    }
)
"""Operations that make a place out of a device's number and constants."""


_Caller: TypeAlias = "tuple[Computation, Instruction] | None"
_Place: TypeAlias = "tuple[Computation, str, _Caller]"


class CutGather(NamedTuple):
    """The gathers of one array, the last of which has it whole, and the shape that a device then keeps."""

    gathers: tuple[Collective, ...]
    kept: tuple[int, ...]


def cut_gathers(
    lines: Instructions, found: Iterable[tuple[Collective, Computation, int]], devices: int
) -> Iterator[CutGather]:
    """The arrays of a program of so many devices that are made whole to be cut; `found` are its all-gathers,
    each with its computation and its position in the text."""
    gathers = [each for each in found if each[0].arrays == 1]
    known = {one.name: one for one, _, _ in gathers}
    for last, home, position in gathers:
        line = lines.at(position)
        if line is None or line.opcode != "all-gather" or math.prod(last.result_shape) < devices:
            continue
        chain = _chain(lines, home, line, known)
        if devices < 2 or math.prod(each.group_size for each in chain) != devices:
            continue
        kept = _Cuts(lines).of(home, line)
        if len(kept) == len(last.result_shape):
            yield CutGather(chain, kept)


def _chain(
    lines: Instructions, home: Computation, line: Instruction, known: dict[str, Collective]
) -> tuple[Collective, ...]:
    """The gathers one after another that end in one, between which the array is at most copied."""
    found = [known[line.name]]
    for _ in range(MAX_STEPS):
        names = line.operands
        before = lines.named(home, names[0]) if len(names) == 1 else None
        if before is None:
            break
        if before.name in known:
            found.insert(0, known[before.name])
        elif before.opcode not in ("copy", "bitcast", "fusion") or _sizes(before) != found[0].operand_shape:
            break
        line = before
    return tuple(found)


class _Cuts:
    """Follows a value to all that takes it."""

    def __init__(self, lines: Instructions) -> None:
        self._lines = lines
        self._steps = 0

    def of(self, home: Computation, line: Instruction) -> tuple[int, ...]:
        """The shape to which all that takes a value cuts it, () where something takes more of it."""
        kept = self._kept(home, line, None)
        return kept if kept is not None and _sizes(line) != kept else ()

    def _kept(
        self,
        home: Computation,
        line: Instruction,
        caller: _Caller,
    ) -> tuple[int, ...] | None:
        lines, shapes = self._lines, set()
        if line.is_root and caller is None:
            return None
        for user in lines.users(home, line.name):
            names = user.operands
            self._steps += 1
            if self._steps > MAX_STEPS or names.count(line.name) > 1:
                return None
            kept = self._kept_by(home, user, names.index(line.name), caller)
            if kept is None:
                return None
            shapes.add(kept)
        if line.is_root and caller is not None:
            # What a fusion hands on as it is.
            kept = self._kept(*caller, None)
            if kept is None:
                return None
            shapes.add(kept)
        return shapes.pop() if len(shapes) == 1 else None

    def _kept_by(
        self,
        home: Computation,
        user: Instruction,
        operand: int,
        caller: _Caller,
    ) -> tuple[int, ...] | None:
        lines = self._lines
        if user.opcode in MOVES:
            return self._kept(home, user, caller)
        if user.opcode == "dynamic-slice" and operand == 0:
            places = user.operands[1:]
            return _sizes(user) if self._is_of_the_device(home, places, caller) else None
        callee = lines.callee(user) if user.opcode == "fusion" and caller is None else None
        if callee is None:
            return None
        parameter = lines.parameter(callee, operand)
        return None if parameter is None else self._kept(callee, parameter, (home, user))

    def _is_of_the_device(self, home: Computation, names: list[str], caller: _Caller) -> bool:
        """Return whether places are made of the device's number and constants alone."""
        waiting: list[_Place] = [(home, name, caller) for name in names]
        seen, is_of_device = set(waiting), False
        while waiting:
            where, name, around = waiting.pop()
            line = self._lines.named(where, name)
            if line is None or len(seen) > MAX_STEPS:
                return False
            if line.opcode == "parameter" and around is not None:
                number = line.parameter_number
                given = around[1].operands
                if number is None or number >= len(given):
                    return False
                fresh: list[_Place] = [(around[0], given[number], None)]
            elif line.opcode == "fusion" and around is None and (callee := self._lines.callee(line)):
                root = self._lines.root(callee)
                fresh = [] if root is None else [(callee, root.name, (where, line))]
            elif line.opcode in _OF_THE_DEVICE:
                is_of_device |= line.opcode in ("partition-id", "replica-id")
                operands = [] if line.opcode == "constant" else line.operands
                fresh = [(where, each, around) for each in operands]
            else:
                return False
            waiting += [each for each in fresh if each not in seen]
            seen.update(fresh)
        return is_of_device


def _sizes(line: Instruction) -> tuple[int, ...]:
    """The sizes of the one array that an instruction makes, () where the text does not tell."""
    try:
        found = [*arrays(parse_shape(line.shape))]
    except NotationError:
        return ()
    return found[0].sizes if len(found) == 1 else ()
