"""A device's operations as what they are: compute, and communication beside it or in its way. Sets of time
are stretches that neither overlap nor touch, in order, in whole picoseconds: ``[(start, end), …]``."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from shardviz.profiles.device_trace import DeviceTrace, TracedInstruction
from shardviz.profiles.joined_program import ANY_OPS, InstructionFacts

Stretch = tuple[int, int]
PICO = 1e-12
"""Seconds of a picosecond."""


def union(stretches: Iterable[Stretch]) -> list[Stretch]:
    """All that some stretch covers."""
    merged: list[Stretch] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = merged[-1][0], end
        elif end > start:
            merged.append((start, end))
    return merged


def total(stretches: Sequence[Stretch]) -> int:
    """The length of a union."""
    return sum(end - start for start, end in stretches)


class Covered:
    """A union, of which the part between any two times is known at once."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._starts = [start for start, _ in stretches]
        self._ends = [end for _, end in stretches]
        self._before = [0, *accumulate(end - start for start, end in stretches)]

    def within(self, start: int, end: int) -> int:
        """The length of what it covers between two times."""
        return self._until(end) - self._until(start)

    def _until(self, time: int) -> int:
        index = bisect_right(self._starts, time) - 1
        if index < 0:
            return 0
        return self._before[index] + min(time, self._ends[index]) - self._starts[index]


class Transfer(NamedTuple):
    """Data on their way, from `start` to `end` in picoseconds; `instruction` and `run` as in the trace."""

    start: int
    end: int
    instruction: int
    run: int


@dataclass(frozen=True)
class DeviceActivity:
    """The work of a device in a stretch of time, in seconds.

    It is `busy` while an operation or a transfer runs, and else idle. `exposed` is communication beside which
    nothing is computed, and `exposed_copies` are those within HBM and to and from the host beside which the
    device neither computes nor communicates: with `compute` and `idle` these add up to all `seconds`."""

    device: str
    start: float
    seconds: float
    busy: float
    compute: float
    communication: float
    exposed: float
    copies: float
    exposed_copies: float

    @property
    def idle(self) -> float:
        return self.seconds - self.busy


class DeviceOperations:
    """The operations of a device, sorted by what they are: as places in the trace those that compute, and the
    `frames` around others; `transfers` are those that move data, each from its beginning to its end."""

    def __init__(self, trace: DeviceTrace, facts_of: Callable[[TracedInstruction], InstructionFacts]) -> None:
        self.trace = trace
        self.facts = facts = [facts_of(instruction) for instruction in trace.instruction_table]
        self.frames: list[int] = []
        self.computed: list[int] = []
        self.transfers: list[Transfer] = []
        # XLA's line of asynchronous operations has those of a TPU whole, but not every TPU has that line; a
        # GPU's stream runs what was begun.
        own = map(trace.instruction_table.__getitem__, set(trace.instructions))
        whole = {instruction.name for instruction in own if instruction.is_async}
        is_stream = trace.kind == "GPU"
        # What one run begins, no other ends.
        begun_in: defaultdict[int, defaultdict[str, deque[int]]] = defaultdict(lambda: defaultdict(deque))
        starts, ends, numbers, runs = trace.starts, trace.ends, trace.instructions, trace.runs
        # TPUs write some operations with one and the same time, in any order: there an end comes last.
        is_end = [fact.role == "ends" for fact in facts]
        moments = [2 * start + is_end[number] for start, number in zip(starts, numbers, strict=True)]
        for index in sorted(range(len(starts)), key=moments.__getitem__):
            number = numbers[index]
            fact, instruction = facts[number], trace.instruction_table[number]
            begun = begun_in[runs[index]]
            if fact.role == "frame":
                self.frames.append(index)
            elif fact.lane.kind == "compute" and fact.role == "work":
                self.computed.append(index)
            elif fact.role == "work" or is_stream or instruction.is_async:
                self.transfers.append(Transfer(starts[index], ends[index], number, runs[index]))
            elif instruction.name in whole or fact.awaited in whole:
                continue
            elif fact.role == "begins":
                begun[instruction.name].append(index)
            else:
                first = self._beginning(fact, begun)
                number = number if first is None else numbers[first]
                start = starts[index] if first is None else starts[first]
                self.transfers.append(Transfer(start, ends[index], number, runs[index]))
        for waiting in (pending for begun in begun_in.values() for pending in begun.values()):
            self.transfers += [Transfer(starts[p], ends[p], numbers[p], runs[p]) for p in waiting]
        self._drop_empty_frames()

    def _beginning(self, fact: InstructionFacts, begun: dict[str, deque[int]]) -> int | None:
        """The operation that began what one ends: by its name, else the oldest of its kind."""
        if fact.awaited in begun:
            waiting = begun[fact.awaited]
            return waiting.popleft() if waiting else None

        def may_end(index: int) -> bool:
            other = self.facts[self.trace.instructions[index]]
            return fact.op == other.op or (fact.op in ANY_OPS and other.is_communication)

        alike = [places for places in begun.values() if places and may_end(places[0])]
        return min(alike, key=lambda places: places[0]).popleft() if alike else None

    def _drop_empty_frames(self) -> None:
        """A call around which nothing is traced computes by itself."""
        trace = self.trace
        inner = {*(trace.starts[p] for p in self.computed), *(each.start for each in self.transfers)}
        covered = Covered([(time, time + 1) for time in sorted(inner)])
        empty = [p for p in self.frames if not covered.within(trace.starts[p], trace.ends[p])]
        self.frames = sorted({*self.frames} - {*empty})
        self.computed += empty

    def by_step(self, steps: Mapping[int, int] | None) -> dict[int, DeviceStretch]:
        """Its operations in each step: by the device's own line of steps, else by their runs, of each of
        which `steps` has the number of the step; without it all are one."""
        lines = self.trace.step_spans
        begins = [start for _, start, _ in lines]

        def step_of(run: int, time: int) -> int | None:
            if lines:
                index = bisect_right(begins, time) - 1
                return lines[index][0] if index >= 0 and time < lines[index][2] else None
            return 0 if steps is None else steps.get(run)

        computed: defaultdict[int | None, list[int]] = defaultdict(list)
        transfers: defaultdict[int | None, list[Transfer]] = defaultdict(list)
        starts, runs = self.trace.starts, self.trace.runs
        for index in self.computed:
            computed[step_of(runs[index], starts[index])].append(index)
        for transfer in self.transfers:
            transfers[step_of(transfer.run, transfer.start)].append(transfer)
        spans = {number: (start, end) for number, start, end in lines}
        return {
            step: DeviceStretch(self, computed[step], transfers[step], spans.get(step))
            for step in sorted(step for step in {*computed, *transfers} if step is not None)
        }

    @property
    def whole(self) -> DeviceStretch:
        return DeviceStretch(self, self.computed, self.transfers)


class DeviceStretch:
    """Some of a device's operations, such as those of a step, and the time from the first to the last."""

    def __init__(
        self,
        device: DeviceOperations,
        computed: Sequence[int],
        transfers: Sequence[Transfer],
        span: Stretch | None = None,
    ) -> None:
        self.device, self.computed, self.transfers = device, computed, transfers
        trace = device.trace
        spans = [(trace.starts[index], trace.ends[index]) for index in computed]
        spans += [(transfer.start, transfer.end) for transfer in transfers]
        lasting = [(start, end) for start, end in spans if end > start]
        self.is_empty = not lasting
        first, last = min(lasting, default=(0, 0))[0], max((end for _, end in lasting), default=0)
        self.span = span or (first, last)

    @property
    def compute(self) -> list[Stretch]:
        """When something is computed."""
        trace = self.device.trace
        return union((trace.starts[index], trace.ends[index]) for index in self.computed)

    def _moving(self, is_counted: Callable[[InstructionFacts], bool]) -> list[Stretch]:
        facts = self.device.facts
        return union(
            (transfer.start, transfer.end)
            for transfer in self.transfers
            if is_counted(facts[transfer.instruction])
        )

    def activity(self) -> DeviceActivity:
        start, end = self.span
        compute = self.compute
        communication = self._moving(lambda fact: fact.is_communication)
        copies = self._moving(lambda fact: fact.lane.kind in ("copy", "host"))
        without_copies = union([*communication, *compute])
        busy = union([*without_copies, *copies])
        return DeviceActivity(
            device=self.device.trace.name,
            start=start * PICO,
            seconds=(end - start) * PICO,
            busy=total(busy) * PICO,
            compute=total(compute) * PICO,
            communication=total(communication) * PICO,
            exposed=(total(without_copies) - total(compute)) * PICO,
            copies=total(copies) * PICO,
            exposed_copies=(total(busy) - total(without_copies)) * PICO,
        )
