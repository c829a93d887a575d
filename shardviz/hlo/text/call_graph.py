"""The calls between computations, and how often each of them runs.

Where the text has no ``known_trip_count``, as on TPUs, the length of a loop follows from its condition (a
comparison of a counter with a bound), from what the counter starts with, and from what the body adds to it.
These are copied, cloned, fused, sunk into the body or carried through it: operands are followed."""

from __future__ import annotations

import operator
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
MAX_DEPTH = 80
"""Sums and loops within one another, followed at most."""
MAX_LOOKS = 800
"""Instructions looked at for one loop at most; a real one has some twenty in each round."""
ROUNDS = 4
"""As many are looked at: no product of two counters grows evenly through these."""

_DIRECTION = re.compile(r"[ ,]direction=([A-Z]{2})\b")
_INTEGER = re.compile(r"\s*(-?\d{1,19})\s*\)")
_SCALAR = re.compile(r"([su])(\d{1,2})\[\]")

_SUMS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
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


class TripCounts:
    """The lengths of a module's loops. The sides of a condition's comparison are followed through the loop's
    first rounds: sums and products of numbers that grow evenly there do so in all."""

    def __init__(self, values: Values) -> None:
        self._values, self._lines = values, values.lines
        self._looks = 0
        self._known: dict[Instruction, int | None] = {}
        self._too_long = set[Computation]()
        self._elements: dict[tuple[Instruction, Path, int], int | None] = {}

    def of(self, loop: Instruction) -> int | None:
        """The number of times that a while instruction runs its body; None where the text does not tell."""
        if loop not in self._known and (written := loop.search(_TRIP_COUNT)):
            self._known[loop] = int(written[1])
        elif loop not in self._known:
            self._looks, self._known[loop] = MAX_LOOKS, None
            self._known[loop] = self._trips(loop)
            if not self._looks:
                # Many loops may have one condition, which is not followed in vain again and again.
                self._too_long.update(self._lines.called(loop, "condition"))
        return self._known[loop]

    def _trips(self, loop: Instruction) -> int | None:
        condition = next(iter(self._lines.called(loop, "condition")), None)
        root = None if condition is None or condition in self._too_long else self._lines.root(condition)
        made = None if root is None else self._source(ProgramValue(root))
        direction = made.line.search(_DIRECTION) if made and made.line.opcode == "compare" else None
        compared = self._lines.taken(made.line) if made and direction else []
        scalar = _SCALAR.match(compared[0].shape) if len(compared) == 2 else None
        if made is None or direction is None or scalar is None:
            return None
        one, two = (self._evenly(ProgramValue(line, made.caller), loop) for line in compared)
        if one is None or two is None:
            return None
        (a, step), (b, other) = one, two
        count = trips(direction[1], a - b, step - other)
        bits = int(scalar[2])
        numbers = range(2**bits) if scalar[1] == "u" else range(-(2**bits) // 2, 2**bits // 2)
        is_in = count is not None and a + count * step in numbers and b + count * other in numbers
        return count if is_in else None

    def _evenly(self, value: ProgramValue, loop: Instruction) -> tuple[int, int] | None:
        """The first value of a side of the comparison, and its growth."""
        first, *later = (self._number(value, loop, number) for number in range(ROUNDS))
        if first is None or later[0] is None:
            return None
        step = later[0] - first
        return (first, step) if later == [first + step * number for number in range(1, ROUNDS)] else None

    def _element(self, loop: Instruction, path: Path, number: int, depth: int = 0) -> int | None:
        """The value of an element of a loop's state at the beginning of one of its rounds."""
        key = loop, path, number
        if key not in self._elements:
            self._elements[key] = None
            body, before = self._lines.body(loop), self._lines.operand(loop, 0)
            root = None if body is None else self._lines.root(body)
            if number and root is not None:
                self._elements[key] = self._number(ProgramValue(root, None, path), loop, number - 1, depth)
            elif root is not None and before is not None:
                self._elements[key] = self._number(ProgramValue(before, None, path), None, 0, depth)
        return self._elements[key]

    def _number(
        self, value: ProgramValue, loop: Instruction | None, number: int, depth: int = 0
    ) -> int | None:
        """An integer in a round of a loop, or outside of any; None where the text does not tell."""
        source = self._source(value) if depth < MAX_DEPTH else None
        if source is None:
            return None
        line = source.line
        if line.opcode == "parameter" and loop is not None:
            return self._element(loop, source.path, number, depth + 1)
        if line.opcode == "parameter":
            # The loop around may leave that element of its own state as it was.
            outer = self._values.caller_of(line.home)
            if outer is None or outer.opcode != "while" or self._lines.body(outer) is not line.home:
                return None
            first, second = (self._element(outer, source.path, each, depth + 1) for each in range(2))
            return first if first == second else None
        if line.opcode == "constant":
            written = _INTEGER.match(line.text, line.inside, line.stop)
            return int(written[1]) if written and _SCALAR.match(line.shape) else None
        if line.opcode not in _SUMS:
            return None
        terms = self._lines.taken(line)
        values = [self._number(ProgramValue(term, source.caller), loop, number, depth + 1) for term in terms]
        if len(values) != 2 or values[0] is None or values[1] is None:
            return None
        total: int = _SUMS[line.opcode](values[0], values[1])
        # No counter has more than 64 bits; powers of powers have no end.
        return total if abs(total) < 2**64 else None

    def _source(self, value: ProgramValue) -> ProgramValue | None:
        """The value behind copies, tuples, fusions and calls, within one run of what is around it."""
        while self._looks > 0:
            self._looks -= 1
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
