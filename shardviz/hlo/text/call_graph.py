"""The calls between computations, and how often each of them runs."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import CALLING
from shardviz.hlo.text.trip_count import TripCounts

MAX_COUNT = 2**62
"""Counts above this are nonsense, and said to be unknown."""
MAX_SCANS = 32
"""Computations of one name on more levels of the call graph than this are a trap and are passed over."""

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

    def __init__(self, lines: Instructions) -> None:
        self._lines = lines
        self._text = lines.text
        self._computations = lines.computations
        self._called: dict[int, frozenset[str]] = {}

    def calls_to(self, wanted: Iterable[Computation]) -> list[Call]:
        """Every call that leads, directly or through others, to one of the computations `wanted`."""
        known = set(wanted)
        pending = {computation for computation in known if computation.name and not computation.is_entry}
        if not pending:
            return []
        sites = self._computations.sites
        calls: list[Call] = []
        named: dict[str, list[int]] = defaultdict(list)
        scans: Counter[str] = Counter()
        while pending:
            for computation in pending:
                insort(named[computation.name], computation.start)
            starts = {computation.start for computation in pending}
            callers = set()
            for name in {computation.name for computation in pending}:
                scans[name] += 1
                if scans[name] > MAX_SCANS:
                    continue
                for position in sites.get(name, ()):
                    # A text may hold several modules: a name means the last one defined so far.
                    callee = named[name][max(0, bisect_right(named[name], position) - 1)]
                    if callee not in starts:
                        continue
                    times, opcode = self.runs(position, name)
                    if times != 0:
                        caller = self._computations.around(position)
                        callers.add(caller)
                        calls.append(Call(caller.start, callee, position, times, opcode))
            pending = {caller for caller in callers - known if caller.name and not caller.is_entry}
            known |= callers
        return calls

    def runs(self, position: int, callee: str) -> tuple[int | None, str]:
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
        if instruction is None or instruction.opcode in ("async-update", "async-done"):
            return 0, ""
        attributes = instruction.attributes
        if instruction.opcode == "while" and callee in (attributes.get("body"), attributes.get("condition")):
            trips = self.trips(instruction)
            return None if trips is None else trips + (callee == attributes.get("condition")), "while"
        if "replica_groups" in attributes or "source_target_pairs" in attributes:
            return 0, ""
        if instruction.start not in self._called:
            self._called[instruction.start] = frozenset(instruction.called(*_CALLING))
        return int(callee in self._called[instruction.start]), instruction.opcode

    def trips(self, loop: Instruction) -> int | None:
        """The number of times that a while instruction runs its body; None where the text does not tell."""
        written = loop.search(_TRIP_COUNT)
        return int(written[1]) if written else self._trip_counts.of(loop)

    @cached_property
    def _trip_counts(self) -> TripCounts:
        return TripCounts(self._lines)


def calls_itself(lines: Instructions) -> Computation | None:
    """A computation that runs itself, directly or through others, which XLA refuses.

    XLA prints what is called before what calls it: without a call to what stands at or behind it there is no
    circle, and no text of XLA's has one.
    """
    computations = lines.computations
    calls = [
        (name, place, callee)
        for name, places in computations.sites.items()
        for place in places
        if (callee := computations.named(name, place)) is not None
    ]
    if all(callee.stop < place for _, place, callee in calls):
        return None
    names: dict[int, frozenset[str]] = {}
    called: dict[Computation, list[Computation]] = defaultdict(list)
    for name, place, callee in calls:
        instruction = lines.at(place)
        if instruction is not None:
            if instruction.start not in names:
                names[instruction.start] = frozenset(instruction.called(*CALLING))
            if name in names[instruction.start]:
                called[computations.around(place)].append(callee)
    open_: set[Computation] = set()
    done: set[Computation] = set()
    for root in [*called]:
        waiting = [root]
        while waiting:
            home = waiting[-1]
            if home in done or home in open_:
                waiting.pop()
                open_.discard(home)
                done.add(home)
                continue
            open_.add(home)
            for callee in called.get(home, ()):
                if callee in open_:
                    return callee
                if callee not in done:
                    waiting.append(callee)
    return None


def run_counts(roots: Mapping[int, int | None], calls: Iterable[Call]) -> dict[int, int | None]:
    """The number of runs of each computation when every root runs as often as `roots` says; None: unknown.

    Calls in a circle count once.
    """
    # A computation runs as often as all the calls to it together: each call adds the runs of its caller times
    # its own. With ENTRY once, a loop of 32 rounds in it, and a branch that the loop's body calls twice, the
    # body runs 32 times and the branch 64. In an order in which every caller stands before what it calls, the
    # runs of a caller are known when its calls are added, so that each call is looked at once, however many
    # ways lead to it: 60 computations that call the one before them twice run 2^59 times and take 120 steps.
    # In a circle no such order exists; the one of a depth-first search leaves out the calls that lead back.
    outgoing: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        outgoing[call.caller].append(call)
    counts = {**roots}
    order = _callers_first(counts, outgoing)
    rank = {index: number for number, index in enumerate(order)}
    for caller in order:
        for call in outgoing[caller]:
            if rank[call.callee] > rank[caller]:
                more = times(counts.get(caller, 0), call.times)
                counts[call.callee] = _plus(counts.get(call.callee, 0), more)
    return counts


def in_branches(calls: Iterable[Call]) -> set[int]:
    """The computations that run in a branch of a conditional, directly or through others."""
    outgoing: dict[int, list[int]] = defaultdict(list)
    waiting = []
    for call in calls:
        outgoing[call.caller].append(call.callee)
        if call.opcode == "conditional":
            waiting.append(call.callee)
    found: set[int] = set()
    while waiting:
        computation = waiting.pop()
        if computation not in found:
            found.add(computation)
            waiting += outgoing[computation]
    return found


def _callers_first(roots: Iterable[int], outgoing: dict[int, list[Call]]) -> list[int]:
    """The computations that the roots reach, every caller before those that it calls."""
    finished: list[int] = []
    seen: set[int] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            index, done = stack.pop()
            if done:
                finished.append(index)
            elif index not in seen:
                seen.add(index)
                stack.append((index, True))
                stack.extend((call.callee, False) for call in outgoing.get(index, ()))
    return finished[::-1]


def times(a: int | None, b: int | None) -> int | None:
    """The product of two counts, None where one is not known."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None or a * b > MAX_COUNT else a * b


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None or a + b > MAX_COUNT else a + b


def program_order(
    roots: Iterable[int], calls: Iterable[Call], positions: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, Sequence[int]]]:
    """The computations in the order in which they run, each with its `positions` up to its next call.

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
            places, done = positions.get(current, ()), passed.get(current, 0)
            following = waiting[current].pop() if waiting[current] else None
            stop = bisect_left(places, following[0]) if following else len(places)
            passed[current] = stop
            if stop > done:
                yield current, places[done:stop]
            if following is None:
                running.pop()
            elif following[1] not in passed:
                running.append(following[1])
