"""The number of times a loop runs whose length the compiler did not write down.

TPU's text has no known_trip_count. The length follows from the condition (a comparison of a counter with a
bound), from what the counter starts with in front of the loop, and from what the body adds to it. The
pieces are copied, cloned, fused, sunk into the body or carried through it, so that each is looked up by
following its operands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import MOVES

MAX_NAMED = 8
"""Loops that a message names."""
MAX_STEPS = 200
"""Instructions looked at for one loop at most; a real one has some twenty."""
MAX_DEPTH = 40
"""Sums and loops within one another, followed at most."""

_DIRECTION = re.compile(r"[ ,]direction=([A-Z]{2})\b")
_INTEGER = re.compile(r"\s*(-?\d{1,19})\s*\)")
_SCALAR = re.compile(r"([su])(\d{1,2})\[\]")

Path = tuple[int, ...]
"""The number of an element of a tuple, then of the tuple in it, and so on."""


_LOOP = re.compile(
    r"^[ \t]*+(?:ROOT )?%?([^\s=,(){}]++) = [^\n]*? while\([^\n]*?, body=%?([^\s,]+)", re.MULTILINE
)


_TRIPS = re.compile(r"\s*%?([^\s=,(){}]+)\s*=\s*(\d{1,12})\s*")


def parse_trip_counts(text: str) -> dict[str, int]:
    """``while.3=32,body=8`` → the number of runs by loop. Raises `NotationError`."""
    found, start = {}, 0
    for piece in text.split(","):
        match = _TRIPS.fullmatch(piece)
        if match is None:
            hint = "name loops, or their bodies, with their runs: while.3=32,layers_body=80"
            problem = f"{quote(piece.strip(), 30)} is not a loop with its runs"
            raise NotationError(problem, text, start, start + max(1, len(piece)), hint)
        found[match[1]] = int(match[2])
        start += len(piece) + 1
    return found


def with_trip_counts(text: str, trips: Mapping[str, int]) -> str:
    """The text, in which loops run as often as `trips` says, by the name of the loop or of its body.

    Raises `QuestionError` for a name that no loop of the text has.
    """
    met: set[str] = set()

    def told(loop: re.Match[str]) -> str:
        name = next((name for name in (loop[1], loop[2]) if name in trips), None)
        if name is None:
            return loop[0]
        met.add(name)
        # Of several counts in a line the first is read.
        return f'{loop[0]}, backend_config={{"known_trip_count":{{"n":"{trips[name]}"}}}}'

    changed = _LOOP.sub(told, text) if trips else text
    for name in trips:
        if name not in met:
            loops = list(dict.fromkeys(loop[1] for loop in _LOOP.finditer(text)))
            known = f"its loops are {', '.join(loops[:MAX_NAMED])}" if loops else "the program has no loop"
            raise QuestionError(f"no loop is called {quote(name)}", did_you_mean(name, loops) + known)
    return changed


class _Scope(NamedTuple):
    """A computation, and for one that an instruction calls the names that it is given in `outer`.

    Without `outer` its parameter is a loop's state, or stays what it is.
    """

    computation: Computation
    given: tuple[str, ...] = ()
    outer: _Scope | None = None


class _Made(NamedTuple):
    """The instruction that makes an element of a value, no matter how often it is moved."""

    scope: _Scope
    line: Instruction
    path: Path


class _Sum(NamedTuple):
    """``factor * element + number`` of an element of a loop's state; the number alone without one."""

    number: int
    element: Path | None = None
    factor: int = 0

    def plus(self, other: _Sum, times: int = 1) -> _Sum | None:
        """With `times` the other added; None for two elements at once."""
        if self.element != other.element and self.element is not None and other.element is not None:
            return None
        element = other.element if self.element is None else self.element
        return _Sum(self.number + times * other.number, element, self.factor + times * other.factor)


class _Loop(NamedTuple):
    """A while instruction in `home` that starts with the value `init`."""

    home: _Scope
    init: str
    body: _Scope
    condition: _Scope


class TripCounts:
    """The lengths of a module's loops."""

    def __init__(self, lines: Instructions) -> None:
        self._computations = lines.computations
        self._lines = lines
        self._steps = 0
        self._depth = 0
        self._known: dict[int, int | None] = {}
        self._kept: dict[tuple[int, Path], bool] = {}

    def of(self, loop: Instruction) -> int | None:
        """The number of times that the body of a while instruction runs; None if unknown."""
        if loop.start not in self._known:
            self._steps = self._depth = 0
            self._known[loop.start] = self._trips(self._loop(loop))
        return self._known[loop.start]

    def _trips(self, loop: _Loop | None) -> int | None:
        root = self._root(loop.condition.computation) if loop else None
        made = self._made(loop.condition, root) if loop and root else None
        if loop is None or made is None or made.line.opcode != "compare":
            return None
        direction = made.line.search(_DIRECTION)
        names = made.line.operands
        if direction is None or len(names) != 2:
            return None
        sides = [self._side(loop, self._value(made.scope, name)) for name in names]
        least, most = self._range(made.scope, names[0])
        if sides[0] is None or sides[1] is None:
            return None
        (a, step), (b, other) = sides[0], sides[1]
        found = trips(direction[1], a - b, step - other)
        if found is None or not least <= a + found * step <= most or not least <= b + found * other <= most:
            return None
        return found

    def _loop(self, loop: Instruction | None) -> _Loop | None:
        if loop is None or loop.opcode != "while" or not loop.operands:
            return None
        called = (loop.attributes.get(key, "") for key in ("body", "condition"))
        body, condition = (self._computations.named(name, loop.start) for name in called)
        if body is None or condition is None:
            return None
        return _Loop(_Scope(self._lines.home(loop)), loop.operands[0], _Scope(body), _Scope(condition))

    def _side(self, loop: _Loop, value: _Sum | None) -> tuple[int, int] | None:
        """The first value of a side of the comparison, and by how much it grows."""
        if value is None or value.element is None:
            return value and (value.number, 0)
        found = self._element(loop, value.element)
        return found and (value.factor * found[0] + value.number, value.factor * found[1])

    def _element(self, loop: _Loop, path: Path) -> tuple[int, int] | None:
        """The first value of an element of a loop's state, and its increase in each run of the body."""
        root = self._root(loop.body.computation)
        after = self._value(loop.body, root, path) if root else None
        before = self._value(loop.home, loop.init, path)
        if before is not None and before.element is not None:
            outside = self._outside(loop.home.computation, before.element)
            before = None if outside is None else _Sum(outside * before.factor + before.number)
        if before is None or after is None or (after.element, after.factor) != (path, 1):
            return None
        return before.number, after.number

    def _outside(self, home: Computation, path: Path) -> int | None:
        """An element of the state of the loop whose body `home` is, when that loop leaves it as it was."""
        if home.is_entry or not home.name or self._depth == MAX_DEPTH:
            return None
        places = self._computations.sites.get(home.name, ())
        callers = [
            place
            for place in places[bisect_right(places, home.start) :][:2]
            if self._computations.named(home.name, place) == home
        ]
        if len(callers) != 1:
            return None
        loop = self._loop(self._lines.at(callers[0]))
        if loop is None or loop.body.computation != home:
            return None
        self._depth += 1
        try:
            found = self._element(loop, path)
        finally:
            self._depth -= 1
        return found[0] if found and found[1] == 0 else None

    def _range(self, scope: _Scope, name: str) -> tuple[int, int]:
        """The numbers that the compared type has; none when it is not a scalar integer."""
        line = self._lines.named(scope.computation, name)
        kind = _SCALAR.match(line.shape) if line else None
        if kind is None:
            return 0, -1
        bits = int(kind[2])
        return (0, 2**bits - 1) if kind[1] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def _value(self, scope: _Scope, name: str, path: Path = ()) -> _Sum | None:
        """A value in terms of numbers and of a loop's state; None where these do not tell."""
        if self._depth == MAX_DEPTH:
            return None
        self._depth += 1
        try:
            made = self._made(scope, name, path)
            return self._sum(made) if made else None
        finally:
            self._depth -= 1

    def _sum(self, made: _Made) -> _Sum | None:
        line = made.line
        if line.opcode == "parameter":
            return _Sum(0, made.path, 1)
        if line.opcode == "constant":
            number = _INTEGER.match(line.text, line.inside, line.stop)
            return _Sum(int(number[1])) if number and _SCALAR.match(line.shape) else None
        if line.opcode not in ("add", "subtract", "multiply"):
            return None
        terms = [self._value(made.scope, name) for name in line.operands]
        if len(terms) != 2 or terms[0] is None or terms[1] is None:
            return None
        one, other = terms[0], terms[1]
        if line.opcode == "multiply":
            if one.element is not None:
                one, other = other, one
            found = None if one.element is not None else _Sum(0).plus(other, one.number)
        else:
            found = one.plus(other, 1 if line.opcode == "add" else -1)
        # No counter has more than 64 bits; powers of powers have no end.
        return found if found and max(abs(found.number), abs(found.factor)) < 2**64 else None

    def _made(self, scope: _Scope, name: str, path: Path = ()) -> _Made | None:
        """The instruction behind copies, tuples, fusions and calls; None when it is not to be found."""
        while self._steps < MAX_STEPS:
            self._steps += 1
            line = self._lines.named(scope.computation, name)
            if line is None:
                return None
            names = line.operands
            if line.opcode == "parameter" and scope.outer is not None:
                number = line.parameter_number
                if number is None or number >= len(scope.given):
                    return None
                scope, name = scope.outer, scope.given[number]
            elif line.opcode == "tuple" and path and path[0] < len(names):
                name, path = names[path[0]], path[1:]
            elif line.opcode == "get-tuple-element" and names and (index := line.element_index) is not None:
                name, path = names[0], (index, *path)
            elif line.opcode in MOVES and names:
                name, path = names[0], path[1:] if line.opcode == "copy-start" else path
            elif line.opcode in ("fusion", "call") and (callee := self._lines.callee(line)) is not None:
                root = self._root(callee)
                if root is None:
                    return None
                scope, name = _Scope(callee, tuple(names), scope), root
            elif line.opcode == "while" and names and self._keeps(line, path):
                name = names[0]
            else:
                return _Made(scope, line, path)
        return None

    def _keeps(self, loop: Instruction, path: Path) -> bool:
        """Return whether an element of a loop's state is after the loop what it was before."""
        body = self._lines.body(loop)
        root = self._root(body) if body else None
        if body is None or root is None:
            return False
        if (body.start, path) not in self._kept:
            self._kept[body.start, path] = self._value(_Scope(body), root, path) == _Sum(0, path, 1)
        return self._kept[body.start, path]

    def _root(self, home: Computation) -> str | None:
        """The name of a computation's result."""
        root = self._lines.root(home)
        return None if root is None else root.name


def trips(direction: str, start: int, step: int) -> int | None:
    """The number of times that ``start``, ``start + step``, … is less (LT), at most (LE), … than 0.

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
