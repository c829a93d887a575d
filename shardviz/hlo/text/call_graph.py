"""The calls between computations, and how often each of them runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import CALLING, ends
from shardviz.hlo.text.trip_count import TripCounts
from shardviz.hlo.text.values import Values

_Item = TypeVar("_Item")
MAX_COUNT = 2**62
"""Counts above this are nonsense, and said to be unknown."""

_TRIP_COUNT = re.compile(r'known_trip_count[\\":]{1,6}\{[\\"]{0,2}n[\\":]{1,6}(\d{1,18})')
_CALLING = tuple(key for key in CALLING if key not in ("body", "condition"))


class Call(NamedTuple):
    """A place in the computation `caller` that runs `callee` `times` times (None: unknown).

    `opcode` is that of the instruction there: a conditional runs one of its branches.
    """

    caller: int
    callee: int
    position: int
    times: int | None
    opcode: str = ""


class CallGraph:
    """The calls of a module. A `Call` names computations by where they start."""

    def __init__(self, values: Values) -> None:
        self._lines = values.lines
        self._text = values.lines.text
        self._computations = values.lines.computations
        self._trip_counts = TripCounts(values)
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
        """The number of times that the instruction at `position` runs `callee`, and its opcode.

        0 when it only mentions it.
        """
        start = self._text.rfind("\n", 0, position) + 1
        if (
            self._text.startswith(" calls=%", position)
            and self._text.find('"', start, position) < 0
            and self._text.find(" fusion(", start, position) >= 0
        ):
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

    def trips(self, loop: Instruction) -> int | None:
        """The number of times that a while instruction runs its body; None where the text does not tell."""
        written = loop.search(_TRIP_COUNT)
        return int(written[1]) if written else self._trip_counts.of(loop)


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
    outgoing = _outgoing(calls)
    counts, chosen = {**roots}, set[int]()
    rank = _ranks(counts, outgoing)
    for caller in rank:
        for call in outgoing[caller]:
            if call.opcode == "conditional" or caller in chosen:
                chosen.add(call.callee)
            if rank[call.callee] > rank[caller]:
                more, before = times(counts.get(caller, 0), call.times), counts.get(call.callee, 0)
                total = None if more is None or before is None else more + before
                counts[call.callee] = None if total is None or total > MAX_COUNT else total
    return counts, chosen


def _outgoing(calls: Iterable[Call]) -> dict[int, list[Call]]:
    outgoing: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        outgoing[call.caller].append(call)
    return outgoing


def _ranks(roots: Iterable[int], outgoing: dict[int, list[Call]]) -> dict[int, int]:
    """The computations that the roots reach, numbered so that every caller stands before what it calls."""
    finished: list[int] = []
    seen: set[int] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            home, done = stack.pop()
            if done:
                finished.append(home)
            elif home not in seen:
                seen.add(home)
                stack.append((home, True))
                stack.extend((call.callee, False) for call in outgoing.get(home, ()))
    return {home: number for number, home in enumerate(reversed(finished))}


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
    """The computations in the order in which they run, each with what is `placed` in it up to its next call.

    Only the first run of each counts.
    """
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
