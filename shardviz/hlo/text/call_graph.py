"""The calls between computations, and how often each of them runs.

Where the text has no ``known_trip_count``, as on TPUs, the length of a loop follows from its condition (a
comparison of a counter with a bound), from what the counter starts with, and from what the body adds to it.
These are copied, cloned, fused, sunk into the body or carried through it: operands are followed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import CALLING, MOVES, ends
from shardviz.hlo.text.values import Made, Path, ProgramValue, Values

_Item = TypeVar("_Item")
MAX_COUNT = 2**62
"""Counts above this are nonsense, and said to be unknown."""

_TRIP_COUNT = re.compile(r'known_trip_count[\\":]{1,6}\{[\\"]{0,2}n[\\":]{1,6}(\d{1,18})')
_CALLING = tuple(key for key in CALLING if key not in ("body", "condition"))
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


class Call(NamedTuple):
    """A place in the computation `caller` that runs `callee` `times` times (None: unknown). `opcode` is that
    of the instruction there: a conditional runs one of its branches."""

    caller: int
    callee: int
    position: int
    times: int | None
    opcode: str = ""


class CallGraph:
    """The calls of a module. A `Call` names computations by where they start."""

    def __init__(self, values: Values) -> None:
        self._lines, self._computations = values.lines, values.lines.computations
        self.trips = TripCounts(values).of
        self._called: dict[Instruction, frozenset[str]] = {}

    def calls_to(self, wanted: Iterable[Computation]) -> list[Call]:
        """Every call that leads, directly or through others, to one of the computations `wanted`."""
        calls: list[Call] = []

        def callers(callee: Computation) -> list[Computation]:
            computations = []
            for position in () if callee.is_entry else self._computations.callers(callee):
                times, opcode = self._runs(position, callee.name)
                if times != 0:
                    computations.append(self._computations.around(position))
                    calls.append(Call(computations[-1].start, callee.start, position, times, opcode))
            return computations

        for _ in reached(wanted, callers):
            pass
        return calls

    def _runs(self, position: int, callee: str) -> tuple[int | None, str]:
        """The runs of `callee` by the instruction at `position`, 0 for a mention, and the opcode there."""
        text = self._lines.text
        start = text.rfind("\n", 0, position) + 1
        is_fusion = text.startswith(" calls=%", position) and text.find(" fusion(", start, position) >= 0
        if is_fusion and text.find('"', start, position) < 0:
            # Most calls are those of fusions.
            return 1, "fusion"
        instruction = self._lines.at(position)
        if instruction is None or ends(instruction.opcode):
            return 0, ""
        attributes = instruction.attributes
        if instruction.opcode == "while" and callee in (attributes.get("body"), attributes.get("condition")):
            trips = self.trips(instruction)
            return None if trips is None else trips + (callee == attributes.get("condition")), "while"
        if "replica_groups" in attributes or "source_target_pairs" in attributes:
            return 0, ""
        if instruction not in self._called:
            self._called[instruction] = frozenset(instruction.called(*_CALLING))
        return int(callee in self._called[instruction]), instruction.opcode


def run_counts(
    roots: Mapping[int, int | None], calls: Iterable[Call]
) -> tuple[dict[int, int | None], set[int]]:
    """The number of runs of each computation when every root runs as often as `roots` says (None: unknown),
    and those that run in a branch of a conditional. Calls in a circle count once."""
    # A computation runs as often as all the calls to it together: each call adds the runs of its caller times
    # its own. With ENTRY once, a loop of 32 rounds in it, and a branch that the loop's body calls twice, the
    # body runs 32 times and the branch 64. In an order in which every caller stands before what it calls, the
    # runs of a caller are known when its calls are added, so that each call is looked at once, however many
    # ways lead to it: 60 computations that call the one before them twice run 2^59 times and take 120 steps.
    # In a circle no such order exists; the one of a depth-first search leaves out the calls that lead back.
    outgoing: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        outgoing[call.caller].append(call)
    finished, seen = list[int](), set[int]()
    stack = [(root, False) for root in reversed([*roots])]
    while stack:
        home, is_done = stack.pop()
        if is_done:
            finished.append(home)
        elif home not in seen:
            seen.add(home)
            stack.append((home, True))
            stack.extend((call.callee, False) for call in outgoing[home])
    rank = {home: number for number, home in enumerate(reversed(finished))}
    counts, chosen = {**roots}, set[int]()
    for caller in rank:
        for call in outgoing[caller]:
            if call.opcode == "conditional" or caller in chosen:
                chosen.add(call.callee)
            if rank[call.callee] > rank[caller]:
                more, before = times(counts.get(caller, 0), call.times), counts.get(call.callee, 0)
                total = None if more is None or before is None else more + before
                counts[call.callee] = None if total is None or total > MAX_COUNT else total
    return counts, chosen


def times(a: int | None, b: int | None) -> int | None:
    """The product of two counts, None where one is not known."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None or a * b > MAX_COUNT else a * b


def program_order(
    roots: Iterable[int],
    calls: Iterable[Call],
    placed: Mapping[int, Sequence[_Item]],
    position: Callable[[_Item], int],
) -> Iterator[tuple[int, Sequence[_Item]]]:
    """The computations in the order of their first runs, each with what is `placed` in it up to its next
    call."""
    waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for call in calls:
        waiting[call.caller].append((call.position, call.callee))
    for later in waiting.values():
        later.sort(reverse=True)
    passed: dict[int, int] = {}
    for root in roots:
        running = [] if root in passed else [root]
        while running:
            current = running[-1]
            items, done = placed.get(current, ()), passed.get(current, 0)
            following = waiting[current].pop() if waiting[current] else None
            stop = bisect_left(items, following[0], key=position) if following else len(items)
            passed[current] = stop
            if stop > done:
                yield current, items[done:stop]
            if following is None:
                running.pop()
            elif following[1] not in passed:
                running.append(following[1])


def parse_trip_counts(text: str) -> dict[str, int]:
    """``while.3=32,body=8`` → the number of runs by loop. Raises `NotationError`."""
    counts, start = {}, 0
    for piece in text.split(","):
        match = _TRIPS.fullmatch(piece)
        if match is None:
            hint = "name loops, or their bodies, with their runs: while.3=32,layers_body=80"
            problem = f"{quote(piece.strip(), 30)} is not a loop with its runs"
            raise NotationError(problem, text, start, start + max(1, len(piece)), hint)
        counts[match[1]] = int(match[2])
        start += len(piece) + 1
    return counts


def with_trip_counts(text: str, trips: Mapping[str, int]) -> str:
    """The text, in which loops run as often as `trips` says, by the name of the loop or of its body. Raises
    `QuestionError` for a name that no loop of the text has."""
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
        self._values, self._lines = values, values.lines
        self._steps = self._depth = 0
        self._known: dict[Instruction, int | None] = {}
        self._conditions: dict[Computation, _Comparison | None] = {}

    def of(self, loop: Instruction) -> int | None:
        """The number of times that a while instruction runs its body; None where the text does not tell."""
        if loop not in self._known and (written := loop.search(_TRIP_COUNT)):
            self._known[loop] = int(written[1])
        elif loop not in self._known:
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
        count = trips(direction, a - b, step - other)
        bits = int(scalar[2])
        numbers = range(2**bits) if scalar[1] == "u" else range(-(2**bits) // 2, 2**bits // 2)
        is_in = count is not None and a + count * step in numbers and b + count * other in numbers
        return count if is_in else None

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
        """The first value of a side of the comparison, and its growth."""
        if value is None or value.element is None:
            return value and (value.number, 0)
        element = self._element(loop, value.element)
        return element and (value.factor * element[0] + value.number, value.factor * element[1])

    def _element(self, loop: Instruction, path: Path) -> tuple[int, int] | None:
        """The first value of an element of a loop's state, and its increase in each run of the body."""
        body, init = self._lines.body(loop), self._lines.operand(loop, 0)
        root = None if body is None else self._lines.root(body)
        if root is None or init is None:
            return None
        after, before = (self._sum(ProgramValue(line, None, path)) for line in (root, init))
        if before is not None and before.element is not None:
            # The loop around this one may leave that element of its own state as it was.
            outer = None if self._depth == MAX_DEPTH else self._values.caller_of(loop.home)
            is_loop = outer is not None and outer.opcode == "while" and self._lines.body(outer) is loop.home
            self._depth += 1
            kept = self._element(outer, before.element) if outer and is_loop else None
            self._depth -= 1
            before = _Sum(kept[0] * before.factor + before.number) if kept and kept[1] == 0 else None
        if before is None or after is None or (after.element, after.factor) != (path, 1):
            return None
        return before.number, after.number

    def _sum(self, value: ProgramValue) -> _Sum | None:
        """A value in terms of numbers and of a loop's state; None where these do not tell."""
        if self._depth == MAX_DEPTH:
            return None
        self._depth += 1
        source = self._source(value)
        total = self._sum_of(source) if source else None
        self._depth -= 1
        return total

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
            total = None if one.element is not None else _Sum(0).plus(other, one.number)
        else:
            total = one.plus(other, 1 if line.opcode == "add" else -1)
        # No counter has more than 64 bits; powers of powers have no end.
        return total if total and max(abs(total.number), abs(total.factor)) < 2**64 else None

    def _source(self, value: ProgramValue) -> ProgramValue | None:
        """The value behind copies, tuples, fusions and calls, within one run of what is around it."""
        while self._steps < MAX_STEPS:
            self._steps += 1
            opcode = value.line.opcode
            is_moved = opcode in _PASSING or (opcode == "tuple" and bool(value.path))
            if not is_moved and (opcode != "parameter" or value.caller is None):
                return value
            made = self._values.moved(value)
            if not isinstance(made, Made) or len(made.operands) != 1:
                return None
            value = made.operands[0]
        return None


def trips(direction: str, start: int, step: int) -> int | None:
    """The number of times that ``start``, ``start + step``, … is less (LT), at most (LE), … than 0. None when
    it never ceases to be, or only where the numbers overflow."""
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
