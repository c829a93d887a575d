"""The sources and the users of values in some computations: loops and tuples are followed, fusions are one
operation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.values import ProgramValue

MAX_FOLLOWED = 64
"""No more values than this are looked at to follow one of them."""

_SIZES = re.compile(r"\(?[a-z][a-z0-9]*\[(\d{1,18}(?:,\d{1,18}){0,20})\]")
_ONE_ELEMENT = re.compile(r"[a-z][a-z0-9]*\[(?:1(?:,1)*)?\]")
_MOVES = MOVES | {"bitcast-convert", "collective-permute-done", "get-tuple-element"}


def sizes(line: Instruction) -> tuple[int, ...]:
    """The dimensions of the first array that an instruction makes; none where its shape is not to be read."""
    found = _SIZES.match(line.shape)
    return tuple(map(int, found[1].split(","))) if found else ()


class ValueFlow:
    """The values of the computations `homes`, and of those whose loops run them."""

    def __init__(self, lines: Instructions, homes: Iterable[Computation]) -> None:
        self.lines = lines
        self._homes = {*homes}
        self._moves: dict[ProgramValue, bool] = {}
        self._sources: dict[ProgramValue, list[ProgramValue]] = {}
        self._users: dict[Instruction, list[Instruction]] = {}
        self._elements: dict[Instruction, dict[int, list[ProgramValue]]] = {}
        self._taken: dict[Instruction, dict[str, list[ProgramValue]]] = {}
        self._loops: dict[Computation, Instruction] = {}
        """The loop that runs a body."""
        self._states: dict[Instruction, list[Instruction]] = defaultdict(list)
        """The state of a loop that a tuple becomes: in the body, and behind the loop."""
        for home in self._homes:
            for loop in lines.with_opcode(home, "while"):
                body = None if _ONE_ELEMENT.match(loop.shape) else lines.body(loop)
                if body is not None:
                    self._loops[body] = loop
        for body, loop in self._loops.items():
            state, before, after = lines.parameter(body, 0), lines.operand(loop, 0), lines.root(body)
            if body in self._homes and state is not None:
                if before is not None:
                    self._states[before].append(state)
                if after is not None:
                    self._states[after] += state, loop

    def sources(self, value: ProgramValue) -> list[ProgramValue]:
        """The values that it is made of; of a loop's state what it starts with and what the body makes."""
        if value not in self._sources:
            self._sources[value] = [*self._made_of(value)]
        return self._sources[value]

    def _made_of(self, value: ProgramValue) -> Iterator[ProgramValue]:
        line, path = value.line, value.path
        if path and line.opcode == "while":
            yield from self._result(self.lines.body(line), path)
        elif path and line.opcode == "parameter":
            loop = self._loops.get(line.home)
            before = None if loop is None else self.lines.operand(loop, 0)
            if before is not None:
                yield ProgramValue(before, None, path)
            if loop is not None:
                yield from self._result(line.home, path)
        elif path and line.opcode != "tuple":
            yield ProgramValue(line)
        elif path:
            made = self.lines.operand(line, path[0])
            if made is not None:
                yield ProgramValue(made)
        else:
            index = line.element_index if line.opcode == "get-tuple-element" else None
            for made in self.lines.taken(line):
                yield ProgramValue(made, None, () if index is None else (index,))

    def _result(self, body: Computation | None, path: tuple[int, ...]) -> Iterator[ProgramValue]:
        root = self.lines.root(body) if body is not None and body in self._homes else None
        if root is not None:
            yield ProgramValue(root, None, path)

    def users(self, value: ProgramValue) -> Iterator[ProgramValue]:
        """The values that are made of it; of what goes into a tuple or a loop's state, what is taken out."""
        if value.path:
            yield from self._elements_of(value.line).get(value.path[0], ())
            return
        for user in self._users_of(value.line):
            passed = self._taken_of(user)
            if passed:
                yield from passed.get(value.line.name, ())
            else:
                yield ProgramValue(user)

    def is_matmul(self, value: ProgramValue) -> bool:
        """Return whether the instruction that makes it multiplies matrices."""
        return self.lines.is_matmul(value.line)

    def is_move(self, value: ProgramValue) -> bool:
        """Return whether a value is nothing but its source, in another place or form."""
        if value not in self._moves:
            self._moves[value] = bool(value.path) or self._is_move(value.line)
        return self._moves[value]

    def _is_move(self, line: Instruction) -> bool:
        if line.opcode in _MOVES:
            return True
        if line.opcode != "fusion" or self.lines.is_matmul(line):
            return False
        taken = [self.lines.named(line.home, name) for name in line.operands]
        arrays = [made for made in taken if made is None or not _ONE_ELEMENT.match(made.shape)]
        if len(arrays) != 1:
            return False
        # With a number beside the array it may be a part of it, or, in a loop's first round, zeros.
        return len(taken) == 1 or (arrays[0] is not None and sizes(arrays[0]) == sizes(line))

    def back(self, value: ProgramValue, passes: Callable[[ProgramValue], bool]) -> dict[ProgramValue, bool]:
        """The values that one is made of, itself included, through those that `passes` lets through.

        Each with whether it was let through; the others are where the way ends.
        """
        return _followed({value: passes(value)}, passes, self.sources)

    def ahead(self, value: ProgramValue, passes: Callable[[ProgramValue], bool]) -> dict[ProgramValue, bool]:
        """The values that take one, itself included and let through, in the same way."""
        return _followed({value: True}, passes, self.users)

    def _users_of(self, line: Instruction) -> list[Instruction]:
        """The instructions that it is an operand of, as often as that, numbers left out."""
        if line not in self._users:
            self._users[line] = [
                user
                for user in self.lines.users(line)
                if user.opcode not in ("constant", "parameter") and not _ONE_ELEMENT.match(user.shape)
                for name in user.operands
                if name == line.name
            ]
        return self._users[line]

    def _elements_of(self, line: Instruction) -> dict[int, list[ProgramValue]]:
        """The elements that are taken of a tuple, by number."""
        if line not in self._elements:
            self._elements[line] = defaultdict(list)
            for user in self._users_of(line):
                index = user.element_index if user.opcode == "get-tuple-element" else None
                if index is not None:
                    self._elements[line][index].append(ProgramValue(user))
        return self._elements[line]

    def _taken_of(self, line: Instruction) -> dict[str, list[ProgramValue]]:
        """The elements that are taken of a tuple, or of a loop's state that it becomes, by the name put in.

        Nothing of what is not a tuple, or is used as a whole.
        """
        if line not in self._taken:
            self._taken[line] = defaultdict(list)
            states = [line, *self._states.get(line, ())] if line.opcode == "tuple" else []
            followed = [elements for elements in map(self._elements_of, states) if elements]
            if followed or len(states) > 1:
                for index, name in enumerate(line.operands):
                    self._taken[line][name] += (each for taken in followed for each in taken.get(index, ()))
        return self._taken[line]


def _followed(
    found: dict[ProgramValue, bool],
    passes: Callable[[ProgramValue], bool],
    following: Callable[[ProgramValue], Iterable[ProgramValue]],
) -> dict[ProgramValue, bool]:
    waiting = [value for value, passed in found.items() if passed]
    while waiting and len(found) < MAX_FOLLOWED:
        for value in islice(following(waiting.pop()), MAX_FOLLOWED):
            if value not in found:
                found[value] = passes(value)
                if found[value]:
                    waiting.append(value)
    return found
