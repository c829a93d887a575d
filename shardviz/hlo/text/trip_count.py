"""The number of times a loop runs whose length the compiler did not write down.

TPU's text has no known_trip_count. The length follows from the condition (a comparison of a counter with a
bound), from what the counter starts with in front of the loop, and from what the body adds to it. The
pieces are copied, cloned, fused, sunk into the body or carried through it, so that each is looked up by
following its operands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.values import Made, Path, ProgramValue, Values

MAX_NAMED = 8
"""Loops that a message names."""
MAX_STEPS = 200
"""Instructions looked at for one loop at most; a real one has some twenty."""
MAX_DEPTH = 40
"""Sums and loops within one another, followed at most."""

_DIRECTION = re.compile(r"[ ,]direction=([A-Z]{2})\b")
_INTEGER = re.compile(r"\s*(-?\d{1,19})\s*\)")
_SCALAR = re.compile(r"([su])(\d{1,2})\[\]")

_PASSING = MOVES | {"get-tuple-element", "fusion", "call", "while"}
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


_Comparison = tuple[str, str, _Sum | None, _Sum | None]


class TripCounts:
    """The lengths of a module's loops."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._lines = values.lines
        self._steps = 0
        self._depth = 0
        self._known: dict[Instruction, int | None] = {}
        self._conditions: dict[Computation, _Comparison | None] = {}

    def of(self, loop: Instruction) -> int | None:
        """The number of times that the body of a while instruction runs; None if unknown."""
        if loop not in self._known:
            self._steps = self._depth = 0
            self._known[loop] = self._trips(loop)
        return self._known[loop]

    def _trips(self, loop: Instruction) -> int | None:
        condition = next(iter(self._lines.called(loop, "condition")), None)
        if condition is None or self._lines.body(loop) is None:
            return None
        if condition not in self._conditions:
            # Many loops may have one condition.
            self._conditions[condition] = self._comparison(condition)
        if (comparison := self._conditions[condition]) is None:
            return None
        direction, shape, *sides = comparison
        one, two = (self._side(loop, side) for side in sides)
        scalar = _SCALAR.match(shape)
        if scalar is None or one is None or two is None:
            return None
        (a, step), (b, other) = one, two
        found = trips(direction, a - b, step - other)
        bits = int(scalar[2])
        numbers = range(2**bits) if scalar[1] == "u" else range(-(2**bits) // 2, 2**bits // 2)
        is_in = found is not None and a + found * step in numbers and b + found * other in numbers
        return found if is_in else None

    def _comparison(self, condition: Computation) -> _Comparison | None:
        """The direction and the shape of a condition's comparison, and its sides in terms of the state."""
        root = self._lines.root(condition)
        made = self._source(ProgramValue(root)) if root else None
        direction = made.line.search(_DIRECTION) if made else None
        if made is None or direction is None or made.line.opcode != "compare":
            return None
        compared = self._lines.taken(made.line)
        if len(compared) != 2:
            return None
        one, two = (self._sum(ProgramValue(line, made.caller)) for line in compared)
        return direction[1], compared[0].shape, one, two

    def _side(self, loop: Instruction, value: _Sum | None) -> tuple[int, int] | None:
        """The first value of a side of the comparison, and by how much it grows."""
        if value is None or value.element is None:
            return value and (value.number, 0)
        found = self._element(loop, value.element)
        return found and (value.factor * found[0] + value.number, value.factor * found[1])

    def _element(self, loop: Instruction, path: Path) -> tuple[int, int] | None:
        """The first value of an element of a loop's state, and its increase in each run of the body."""
        body, init = self._lines.body(loop), self._lines.operand(loop, 0)
        root = None if body is None else self._lines.root(body)
        if root is None or init is None:
            return None
        after, before = (self._sum(ProgramValue(line, None, path)) for line in (root, init))
        if before is not None and before.element is not None:
            outside = self._outside(loop.home, before.element)
            before = None if outside is None else _Sum(outside * before.factor + before.number)
        if before is None or after is None or (after.element, after.factor) != (path, 1):
            return None
        return before.number, after.number

    def _outside(self, home: Computation, path: Path) -> int | None:
        """An element of the state of the loop whose body `home` is, when that loop leaves it as it was."""
        loop = None if self._depth == MAX_DEPTH else self._values.caller_of(home)
        if loop is None or loop.opcode != "while" or self._lines.body(loop) is not home:
            return None
        self._depth += 1
        found = self._element(loop, path)
        self._depth -= 1
        return found[0] if found and found[1] == 0 else None

    def _sum(self, value: ProgramValue) -> _Sum | None:
        """A value in terms of numbers and of a loop's state; None where these do not tell."""
        if self._depth == MAX_DEPTH:
            return None
        self._depth += 1
        source = self._source(value)
        found = self._sum_of(source) if source else None
        self._depth -= 1
        return found

    def _sum_of(self, value: ProgramValue) -> _Sum | None:
        line = value.line
        if line.opcode == "parameter":
            return _Sum(0, value.path, 1)
        if line.opcode == "constant":
            number = _INTEGER.match(line.text, line.inside, line.stop)
            return _Sum(int(number[1])) if number and _SCALAR.match(line.shape) else None
        if line.opcode not in ("add", "subtract", "multiply"):
            return None
        terms = [self._sum(ProgramValue(term, value.caller)) for term in self._lines.taken(line)]
        if len(terms) != 2 or terms[0] is None or terms[1] is None:
            return None
        one, other = terms[0], terms[1]
        if line.opcode == "multiply":
            one, other = (one, other) if one.element is None else (other, one)
            found = None if one.element is not None else _Sum(0).plus(other, one.number)
        else:
            found = one.plus(other, 1 if line.opcode == "add" else -1)
        # No counter has more than 64 bits; powers of powers have no end.
        return found if found and max(abs(found.number), abs(found.factor)) < 2**64 else None

    def _source(self, value: ProgramValue) -> ProgramValue | None:
        """The value behind copies, tuples, fusions and calls; None when it is not to be found."""
        while self._steps < MAX_STEPS:
            self._steps += 1
            if not _is_moved(value):
                return value
            made = self._values.how(value)
            if not isinstance(made, Made) or len(made.operands) != 1:
                return None
            value = made.operands[0]
        return None


def _is_moved(value: ProgramValue) -> bool:
    """Return whether a value is another one, within one run of what is around it."""
    if value.line.opcode == "parameter":
        return value.caller is not None
    return bool(value.path) if value.line.opcode == "tuple" else value.line.opcode in _PASSING


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
