"""The sources and the users of values in some computations, through loops and tuples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import MOVES

MAX_FOLLOWED = 64
"""No more values than this are looked at to follow one of them."""

_SIZES = re.compile(r"\(?[a-z][a-z0-9]*\[(\d{1,18}(?:,\d{1,18}){0,20})\]")
_ONE_ELEMENT = re.compile(r"[a-z][a-z0-9]*\[(?:1(?:,1)*)?\]")
_MOVES = MOVES | {"bitcast-convert", "collective-permute-done"}


def sizes(line: Instruction) -> tuple[int, ...]:
    """The dimensions of the first array that an instruction makes; none where its shape is not to be read."""
    found = _SIZES.match(line.shape)
    return tuple(map(int, found[1].split(","))) if found else ()


class Value(NamedTuple):
    """The result of an instruction; one `element` of it where that is a tuple taken apart."""

    home: int
    name: str
    element: int | None = None


class ValueFlow:
    """The values of the computations `homes`, and of those whose loops run them."""

    def __init__(self, lines: Instructions, homes: Iterable[Computation]) -> None:
        self.lines = lines
        self._homes = {home.start: home for home in homes}
        self._loops: dict[int, Value] = {}
        self._bodies: dict[Value, int] = {}
        self._states: dict[Value, list[Value]] = defaultdict(list)
        self._moves: dict[Value, bool] = {}
        self._multiplies: dict[Value, bool] = {}
        self._sources: dict[Value, list[Value]] = {}
        self._users: dict[Value, list[Value]] = {}
        self._elements: dict[Value, dict[int, list[Value]]] = {}
        self._taken: dict[Value, dict[str, list[Value]]] = {}
        for home in self._homes.values():
            self._find_loops(home)
        for body, loop in self._loops.items():
            if body in self._homes:
                self._join(body, loop)

    def __contains__(self, value: Value) -> bool:
        """Return whether the line that makes a value was found; a damaged name is not."""
        return self._line(value.home, value.name) is not None

    def line(self, value: Value) -> Instruction:
        """The instruction that makes a value."""
        line = self._line(value.home, value.name)
        if line is None:
            raise KeyError(value)
        return line

    def sources(self, value: Value) -> list[Value]:
        """The values that it is made of; of a loop's state what it starts with and what the body makes."""
        if value not in self._sources:
            self._sources[value] = [*self._made_of(value)]
        return self._sources[value]

    def users(self, value: Value) -> Iterator[Value]:
        """The values that are made of it; of what goes into a tuple or a loop's state, what is taken out."""
        if value.element is not None:
            yield from self._elements_of(value._replace(element=None)).get(value.element, ())
            return
        for user in self._users_of(value):
            passed = self._taken_of(user)
            if passed:
                yield from passed.get(value.name, ())
            else:
                yield user

    def is_matmul(self, value: Value) -> bool:
        """Return whether the instruction that makes it multiplies matrices."""
        if value not in self._multiplies:
            self._multiplies[value] = self.lines.is_matmul(self.line(value))
        return self._multiplies[value]

    def is_move(self, value: Value) -> bool:
        """Return whether a value is nothing but its source, in another place or form."""
        if value not in self._moves:
            self._moves[value] = self._is_move(value)
        return self._moves[value]

    def _is_move(self, value: Value) -> bool:
        line = self.line(value)
        if line.opcode in _MOVES or value.element is not None or line.opcode == "get-tuple-element":
            return True
        if line.opcode != "fusion" or self.is_matmul(value):
            return False
        names = line.operands
        taken = [self._line(value.home, name) for name in names]
        arrays = [each for each in taken if each is None or not _ONE_ELEMENT.match(each.shape)]
        if len(arrays) != 1:
            return False
        # With a number beside the array it may be a part of it, or, in a loop's first round, zeros.
        return len(names) == 1 or (arrays[0] is not None and sizes(arrays[0]) == sizes(line))

    def back(self, value: Value, passes: Callable[[Value], bool]) -> dict[Value, bool]:
        """The values that one is made of, itself included, through those that `passes` lets through.

        Each with whether it was let through; the others are where the way ends.
        """
        return self._follow({value: passes(value)}, passes, self.sources)

    def ahead(self, value: Value, passes: Callable[[Value], bool]) -> dict[Value, bool]:
        """The values that take one, itself included and let through, in the same way."""
        return self._follow({value: True}, passes, self.users)

    def _follow(
        self,
        found: dict[Value, bool],
        passes: Callable[[Value], bool],
        following: Callable[[Value], Iterable[Value]],
    ) -> dict[Value, bool]:
        waiting = [value for value, passed in found.items() if passed]
        while waiting and len(found) < MAX_FOLLOWED:
            for each in islice(following(waiting.pop()), MAX_FOLLOWED):
                if each not in found:
                    found[each] = passes(each)
                    if found[each]:
                        waiting.append(each)
        return found

    def _line(self, home: int, name: str) -> Instruction | None:
        return self.lines.named(self._homes[home], name) if home in self._homes else None

    def _users_of(self, value: Value) -> list[Value]:
        """The values of its computation that it is an operand of, numbers left out."""
        if value not in self._users:
            self._users[value] = [
                Value(value.home, user.name)
                for user in self.lines.users(self._homes[value.home], value.name)
                if user.opcode not in ("constant", "parameter") and not _ONE_ELEMENT.match(user.shape)
                for name in user.operands
                if name == value.name
            ]
        return self._users[value]

    def _elements_of(self, value: Value) -> dict[int, list[Value]]:
        """The elements that are taken of a tuple, by number."""
        if value not in self._elements:
            found: dict[int, list[Value]] = defaultdict(list)
            self._elements[value] = found
            for user in self._users_of(value):
                line = self.line(user)
                index = line.element_index if line.opcode == "get-tuple-element" else None
                if index is not None:
                    found[index].append(user)
        return self._elements[value]

    def _taken_of(self, tuple_: Value) -> dict[str, list[Value]]:
        """The elements that are taken of a tuple, or of a loop's state that it becomes, by the name put in.

        Nothing of what is not a tuple, or is used as a whole.
        """
        if tuple_ not in self._taken:
            found: dict[str, list[Value]] = defaultdict(list)
            self._taken[tuple_] = found
            line = self.line(tuple_)
            states = [tuple_, *self._states.get(tuple_, ())] if line.opcode == "tuple" else []
            followed = [each for each in map(self._elements_of, states) if each]
            if followed or len(states) > 1:
                for index, name in enumerate(line.operands):
                    found[name] += (value for elements in followed for value in elements.get(index, ()))
        return self._taken[tuple_]

    def _find_loops(self, home: Computation) -> None:
        position = home.start
        while (position := self.lines.text.find(" while(", position, home.stop)) >= 0:
            line = self.lines.at(position)
            position += 1
            if line is None or line.opcode != "while" or _ONE_ELEMENT.match(line.shape):
                continue
            body = self.lines.body(line)
            if body is not None:
                self._loops[body.start] = Value(home.start, line.name)
                self._bodies[Value(home.start, line.name)] = body.start

    def _join(self, body: int, loop: Value) -> None:
        """Leads from what goes into a loop's state to what is taken of it, in the body and afterwards."""
        state = self.lines.parameter(self._homes[body], 0)
        inside = Value(body, "" if state is None else state.name)
        for name in self.line(loop).operands[:1]:
            self._states[Value(loop.home, name)].append(inside)
        self._states[Value(body, self._result_name(body))] += inside, loop

    def _result_name(self, home: int) -> str:
        root = self.lines.root(self._homes[home]) if home in self._homes else None
        return "" if root is None else root.name

    def _made_of(self, value: Value) -> Iterator[Value]:
        home, element = value.home, value.element
        line = self.line(value)
        if element is not None and line.opcode == "while":
            yield from self._result(self._bodies.get(value._replace(element=None), -1), element)
        elif element is not None and line.opcode == "parameter":
            loop = self._loops.get(home)
            if loop is not None:
                yield from self._values(loop.home, self.line(loop).operands[:1], element)
                yield from self._result(home, element)
        elif element is not None and line.opcode != "tuple":
            yield value._replace(element=None)
        else:
            names = line.operands
            index = line.element_index if line.opcode == "get-tuple-element" else None
            yield from self._values(home, names if element is None else names[element : element + 1], index)

    def _result(self, home: int, element: int) -> Iterator[Value]:
        root = self._result_name(home)
        return self._values(home, [root] if root else [], element)

    def _values(self, home: int, names: Iterable[str], element: int | None) -> Iterator[Value]:
        return (Value(home, name, element) for name in names if self._line(home, name) is not None)
