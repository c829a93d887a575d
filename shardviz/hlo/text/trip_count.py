"""How often a loop runs whose length the compiler did not write down.

TPU's text has no known_trip_count. The length follows from the condition (a comparison of a counter with a
bound), from what the counter starts with in front of the loop, and from what the body adds to it. The
pieces are copied, cloned, fused, sunk into the body or carried through it, so that each is looked up by
following its operands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation, Computations, line_at
from shardviz.hlo.text.instruction import closing, open_instruction, operand_names, parse_instruction

MAX_STEPS = 200
"""Instructions looked at for one loop at most; a real one has some twenty."""
MAX_DEPTH = 40
"""Sums and loops within one another, followed at most."""
SEARCHED = 4
"""How many times the length of the text is searched for definitions, at most."""

_MOVES = ("copy", "copy-start", "copy-done", "bitcast", "convert", "reshape", "optimization-barrier")
_CALLED = re.compile(r"[ ,](?:calls|to_apply)=%?([^\s,(){}]+)")
_INDEX = re.compile(r"[ ,]index=(\d{1,6})")
_DIRECTION = re.compile(r"[ ,]direction=([A-Z]{2})\b")
_INTEGER = re.compile(r"\s*(-?\d{1,19})\s*\)")
_SCALAR = re.compile(r"([su])(\d{1,2})\[\]")

Path = tuple[int, ...]
"""Which element of a tuple, and of the tuples in it."""


class _Scope(NamedTuple):
    """A computation, and for one that an instruction calls the names that it is given in `outer`.

    Without `outer` its parameter is a loop's state, or stays what it is.
    """

    computation: Computation
    given: tuple[str, ...] = ()
    outer: _Scope | None = None


class _Made(NamedTuple):
    """The instruction that makes a value, no matter how often it is moved: its line, opcode and operands."""

    scope: _Scope
    line: str
    opcode: str
    inside: int
    path: Path


class _Line(NamedTuple):
    """``factor * element + number`` of an element of a loop's state; the number alone without one."""

    number: int
    element: Path | None = None
    factor: int = 0

    def plus(self, other: _Line, times: int = 1) -> _Line | None:
        """With `times` the other added; None for two elements at once."""
        if self.element != other.element and self.element is not None and other.element is not None:
            return None
        element = other.element if self.element is None else self.element
        return _Line(self.number + times * other.number, element, self.factor + times * other.factor)


class TripCounts:
    """The lengths of a module's loops."""

    def __init__(self, text: str, computations: Computations) -> None:
        self._text = text
        self._computations = computations
        self._steps = 0
        self._depth = 0
        self._left = SEARCHED * len(text) + 2**20
        self._lines: dict[tuple[int, str], str | None] = {}
        self._kept: dict[tuple[int, Path], bool] = {}

    def of(self, position: int) -> int | None:
        """How often the body of the while instruction at a position runs; None when that is not told."""
        self._steps = self._depth = 0
        loop = self._loop(position)
        return loop.trips() if loop else None

    def _loop(self, position: int) -> _Loop | None:
        start, _ = line_at(self._text, position)
        instruction = parse_instruction(self._text, start)
        if instruction is None or instruction.opcode != "while":
            return None
        names = operand_names(instruction.operands)
        called = (instruction.attributes.get(key, "") for key in ("body", "condition"))
        body, condition = (self._computations.named(name, start) for name in called)
        if body is None or condition is None or not names:
            return None
        home = self._computations.around(start)
        return _Loop(self, _Scope(home), names[0], _Scope(body), _Scope(condition))

    def value(self, scope: _Scope, name: str, path: Path = ()) -> _Line | None:
        """What a value is, as far as numbers and a loop's state tell."""
        if self._depth == MAX_DEPTH:
            return None
        self._depth += 1
        try:
            made = self.made(scope, name, path)
            return self._line(made) if made else None
        finally:
            self._depth -= 1

    def _line(self, made: _Made) -> _Line | None:
        if made.opcode == "parameter":
            return _Line(0, made.path, 1)
        if made.opcode == "constant":
            number = _INTEGER.match(made.line, made.inside)
            return _Line(int(number[1])) if number and _SCALAR.search(made.line) else None
        if made.opcode not in ("add", "subtract", "multiply"):
            return None
        terms = [self.value(made.scope, name) for name in _operands(made)]
        if len(terms) != 2 or terms[0] is None or terms[1] is None:
            return None
        one, other = terms[0], terms[1]
        if made.opcode == "multiply":
            if one.element is not None:
                one, other = other, one
            found = None if one.element is not None else _Line(0).plus(other, one.number)
        else:
            found = one.plus(other, 1 if made.opcode == "add" else -1)
        # No counter has more than 64 bits; powers of powers have no end.
        return found if found and max(abs(found.number), abs(found.factor)) < 2**64 else None

    def made(self, scope: _Scope, name: str, path: Path = ()) -> _Made | None:
        """The instruction behind copies, tuples, fusions and calls; None when it is not to be found."""
        while self._steps < MAX_STEPS:
            self._steps += 1
            line = self.definition(scope.computation, name)
            opened = open_instruction(line) if line else None
            if line is None or opened is None:
                return None
            made = _Made(scope, line, opened[2], opened[3], path)
            names = _operands(made)
            if made.opcode == "parameter" and scope.outer is not None:
                number = _INTEGER.match(line, made.inside)
                if number is None or not 0 <= int(number[1]) < len(scope.given):
                    return None
                scope, name = scope.outer, scope.given[int(number[1])]
            elif made.opcode == "tuple" and path and path[0] < len(names):
                name, path = names[path[0]], path[1:]
            elif made.opcode == "get-tuple-element" and names and (index := _INDEX.search(line, made.inside)):
                name, path = names[0], (int(index[1]), *path)
            elif made.opcode in _MOVES and names:
                name, path = names[0], path[1:] if made.opcode == "copy-start" else path
            elif made.opcode in ("fusion", "call") and (called := _CALLED.search(line, made.inside)):
                callee = self._computations.named(called[1], scope.computation.start)
                root = self.root(callee) if callee else None
                if callee is None or root is None:
                    return None
                scope, name = _Scope(callee, tuple(names), scope), root
            elif made.opcode == "while" and names and self._keeps(scope, line, path):
                name = names[0]
            else:
                return made
        return None

    def _keeps(self, scope: _Scope, line: str, path: Path) -> bool:
        """Whether an element of a loop's state is after the loop what it was before."""
        instruction = parse_instruction(line)
        name = instruction.attributes.get("body", "") if instruction else ""
        body = self._computations.named(name, scope.computation.start)
        root = self.root(body) if body else None
        if body is None or root is None:
            return False
        if (body.start, path) not in self._kept:
            self._kept[body.start, path] = self.value(_Scope(body), root, path) == _Line(0, path, 1)
        return self._kept[body.start, path]

    def outside(self, home: Computation, path: Path) -> int | None:
        """An element of the state of the loop whose body `home` is, when that loop leaves it as it was."""
        if home.is_entry or not home.name or self._depth == MAX_DEPTH:
            return None
        places = self._computations.sites.get(home.name, ())
        callers = [
            place
            for place in places[bisect_right(places, home.start) :][:2]
            if self._computations.named(home.name, place) == home
        ]
        loop = self._loop(callers[0]) if len(callers) == 1 else None
        if loop is None or loop.body.computation != home:
            return None
        self._depth += 1
        try:
            found = loop.element(path)
        finally:
            self._depth -= 1
        return found[0] if found and found[1] == 0 else None

    def root(self, home: Computation) -> str | None:
        """The name of a computation's result."""
        start = home.start
        while (start := self._search("ROOT ", start, home.stop)) >= 0:
            line, stop = line_at(self._text, start)
            if not self._text[line:start].strip():
                opened = open_instruction(self._text[line:stop])
                return opened[0] if opened else None
            start = stop
        return None

    def definition(self, home: Computation, name: str) -> str | None:
        if (home.start, name) not in self._lines:
            self._lines[home.start, name] = self._defining_line(home, name)
        return self._lines[home.start, name]

    def _defining_line(self, home: Computation, name: str) -> str | None:
        start = home.start
        while (start := self._search(f"{name} = ", start, home.stop)) >= 0:
            line, stop = line_at(self._text, start)
            if self._text[line:start].strip() in ("", "%", "ROOT", "ROOT %"):
                return self._text[line:stop]
            start += len(name)
        return None

    def _search(self, piece: str, start: int, stop: int) -> int:
        """`str.find` until so much has been searched that no more will be."""
        if self._left < 0:
            return -1
        found = self._text.find(piece, start, stop)
        self._left -= (stop if found < 0 else found) - start
        return found


class _Loop(NamedTuple):
    """A while instruction in `home` that starts with the value `init`."""

    counts: TripCounts
    home: _Scope
    init: str
    body: _Scope
    condition: _Scope

    def trips(self) -> int | None:
        root = self.counts.root(self.condition.computation)
        made = self.counts.made(self.condition, root) if root else None
        direction = _DIRECTION.search(made.line, made.inside) if made and made.opcode == "compare" else None
        names = _operands(made) if made else []
        if made is None or direction is None or len(names) != 2:
            return None
        sides = [self._side(self.counts.value(made.scope, name)) for name in names]
        least, most = self._range(made.scope, names[0])
        if sides[0] is None or sides[1] is None:
            return None
        (a, step), (b, other) = sides[0], sides[1]
        found = trips(direction[1], a - b, step - other)
        if found is None or not least <= a + found * step <= most or not least <= b + found * other <= most:
            return None
        return found

    def element(self, path: Path) -> tuple[int, int] | None:
        """What an element of the state is at first and by how much it grows in each run of the body."""
        root = self.counts.root(self.body.computation)
        after = self.counts.value(self.body, root, path) if root else None
        before = self.counts.value(self.home, self.init, path)
        if before is not None and before.element is not None:
            outside = self.counts.outside(self.home.computation, before.element)
            before = None if outside is None else _Line(outside * before.factor + before.number)
        if before is None or after is None or (after.element, after.factor) != (path, 1):
            return None
        return before.number, after.number

    def _side(self, value: _Line | None) -> tuple[int, int] | None:
        """What a side of the comparison is at first and by how much it grows."""
        if value is None or value.element is None:
            return value and (value.number, 0)
        found = self.element(value.element)
        return found and (value.factor * found[0] + value.number, value.factor * found[1])

    def _range(self, scope: _Scope, name: str) -> tuple[int, int]:
        """The numbers that the compared type has; none when it is no scalar integer."""
        line = self.counts.definition(scope.computation, name)
        opened = open_instruction(line) if line else None
        kind = _SCALAR.match(opened[1]) if opened else None
        if kind is None:
            return 0, -1
        bits = int(kind[2])
        return (0, 2**bits - 1) if kind[1] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _operands(made: _Made) -> list[str]:
    return operand_names(made.line[made.inside : closing(made.line, made.inside)])


def trips(direction: str, start: int, step: int) -> int | None:
    """How often ``start``, ``start + step``, … is less (LT), at most (LE), … than 0 before it is not.

    None when it never ceases to be, or only where the numbers overflow.
    """
    if direction in ("GT", "GE"):
        return trips({"GT": "LT", "GE": "LE"}[direction], -start, -step)
    if direction in ("LT", "LE"):
        start -= direction == "LE"
        if start >= 0:
            return 0
        return -(start // step) if step > 0 else None
    if direction == "EQ":
        return 0 if start else (1 if step else None)
    if direction != "NE" or (start and (not step or start % step or -start // step < 0)):
        return None
    return -start // step if start else 0
