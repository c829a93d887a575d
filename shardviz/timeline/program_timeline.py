"""Operations on the lanes of one device, with loops drawn once, what waits, the totals, and the memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

Estimate = Literal["compiler", "roofline", "links", "scheduler", "measured", "unknown"]
"""Whose estimate a duration is: the compiler's cycles of an instruction, FLOPs and bytes over the device's
figures, the link model, the compiler's own scheduler, none but the device's clock, or nobody's."""
SpanKind = Literal["loop", "branch", "call"]
BufferKind = Literal["argument", "output", "temporary", "constant"]
LaneKind = Literal["compute", "copy", "axis", "network", "host"]
LANE_KINDS: tuple[LaneKind, ...] = get_args(LaneKind)
"""From the device outwards."""


class Lane(NamedTuple):
    """One row: "compute", "HBM copies", a mesh axis' links, the network between slices or nodes, the host."""

    kind: LaneKind
    name: str


COMPUTE, COPIES, HOST = Lane("compute", "compute"), Lane("copy", "HBM copies"), Lane("host", "host")
LINKS = Lane("axis", "links")
"""The lane of collectives whose axes nobody knows."""


@dataclass(frozen=True)
class LiveBuffer:
    """An array that takes `bytes` of HBM. `name` is its instruction's, of an argument the user's where the
    text has it, and `source` the user's line. It is live from `start` to `end`, seconds on the drawn clock,
    and from the instruction `first` to `last`; without these for the whole program."""

    name: str
    kind: BufferKind
    shape: str
    bytes: int
    source: str = ""
    start: float | None = None
    end: float | None = None
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of one device. `by` says who counted: the compiler, or an estimate from the text's order.

    `argument_bytes`, `output_bytes`, `alias_bytes` (outputs that reuse donated buffers) and
    `temporary_bytes` are as in `jax.stages.Compiled.memory_analysis`. `limit_bytes` is what the compiler
    allows, None where it is not known. `curve` has (seconds on the drawn clock, live bytes from then on),
    `peak_at` the seconds of the peak; both need a timeline (`on_clock`). `order` has the same by instruction:
    (name, live bytes while it runs), in the order in which they run. `buffers` are the largest at the peak,
    largest first. Beyond an estimate a compiler may allocate the part `allocated` of it."""

    by: Literal["compiler", "estimate"]
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    peak_bytes: int
    limit_bytes: int | None
    buffers: tuple[LiveBuffer, ...] = ()
    curve: tuple[tuple[float, int], ...] = ()
    peak_at: float = 0.0
    order: tuple[tuple[str, int], ...] = ()
    allocated: float = 0.0

    @property
    def allocated_bytes(self) -> int:
        """The most bytes that a compiler may allocate; of its own account those of the peak."""
        return round(self.peak_bytes * (1 + self.allocated))

    @property
    def over_bytes(self) -> int:
        """By how much it does not fit; 0 where it does, or where the limit is not known."""
        return max(0, self.peak_bytes - self.limit_bytes) if self.limit_bytes is not None else 0


def live_bytes(spans: Iterable[tuple[int, int, int]], instructions: int, always: int) -> list[int]:
    """The live bytes at each of so many instructions, of (from, until, bytes) and those that always are.
    Until is at most the one after the last."""
    changes = [0] * (instructions + 2)
    for start, stop, size in spans:
        changes[start] += size
        changes[stop] -= size
    return [*accumulate(changes[:instructions], initial=always)][1:]


@dataclass(slots=True, unsafe_hash=True)
class TimedOp:
    """An operation on the timeline.

    `start` and `end` are seconds on the drawn clock, on which each loop's body stands once; `seconds` is how
    long one run really takes, None where nobody can tell, and `runs` how often it runs in all (None: a loop
    of unknown length; 0: a branch that is not the longest of its conditional). `exposed` are the seconds of
    one run for which the device waits for it with nothing else to do; of compute 0. `lane` is a number into
    `ProgramTimeline.lanes`. `op` is HLO's opcode, or "matmul" where it multiplies matrices; of a plan the
    step's op. `bound` is what bounds it ("compute", "HBM", "latency", a mesh axis), `detail` how it was
    counted, `optimistic` why it may take longer, "" of what was measured or compiled, `source` the user's
    line. `after` numbers the operations that it waited for: the one that let it begin first, then those whose
    results it reads. `bytes` are those of a collective or of HBM traffic.
    `collective` is the name of the program's collective that it is, or that it has inside, or ""."""

    name: str
    op: str
    lane: int
    start: float
    end: float
    seconds: float | None
    estimate: Estimate
    runs: int | None = 1
    exposed: float = 0.0
    bound: str = ""
    detail: str = ""
    source: str = ""
    after: tuple[int, ...] = ()
    bytes: int = 0
    flops: int = 0
    is_async: bool = False
    collective: str = ""
    optimistic: str = ""


@dataclass(frozen=True)
class TimeSpan:
    """A stretch of the drawn clock that is a loop's body, a branch of a conditional or a called computation.
    `count` is how often a loop runs, None where the text does not tell. `depth` counts those around it.
    `seconds` is how long all runs take, 0 for a branch that is not taken, None as drawn, times the count."""

    kind: SpanKind
    name: str
    start: float
    end: float
    count: int | None
    depth: int
    seconds: float | None = None


@dataclass(frozen=True)
class Saving:
    """A change that would save `seconds` of the total, in a sentence about the operation numbered `op`."""

    seconds: float
    message: str
    op: int


@dataclass(frozen=True)
class ProgramTimeline:
    """A program or a plan on a machine.

    `ops` are in the order of their starts. `seconds` is the total with every loop counted in full,
    `drawn_seconds` the end of the drawn clock. `compute_seconds` and `communication_seconds` (by lane name,
    HBM copies too) count all runs, hidden or not; `exposed_seconds` (by lane name) those for which the device
    waits: with `compute_seconds` and `idle_seconds`, in which nothing runs, they add up to the total.
    `utilisation` is FLOPs over peak × total, None without a peak. `unknown` names the operations that nobody
    can estimate: the total leaves them out. `notes` are warnings, a sentence each.
    `links` is how people call the links within a slice, or a node, of the machine: "ICI", "NVLink".
    `critical_path` are numbers of operations, first to last."""

    title: str
    machine: str
    lanes: tuple[Lane, ...]
    ops: tuple[TimedOp, ...]
    spans: tuple[TimeSpan, ...]
    seconds: float
    drawn_seconds: float
    compute_seconds: float
    communication_seconds: tuple[tuple[str, float], ...]
    exposed_seconds: tuple[tuple[str, float], ...]
    flops: int
    utilisation: float | None
    critical_path: tuple[int, ...] = ()
    savings: tuple[Saving, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    memory: MemoryReport | None = None
    links: str = ""
    idle_seconds: float = 0.0


class LaneIndex:
    """Finds the neighbours of a timeline's operations, by their numbers: on a lane and in what they wait
    for."""

    def __init__(self, timeline: ProgramTimeline) -> None:
        self._ops = timeline.ops
        self._lanes: list[list[int]] = [[] for _ in timeline.lanes]
        for number, op in enumerate(timeline.ops):
            self._lanes[op.lane].append(number)
        self._starts = [[timeline.ops[number].start for number in lane] for lane in self._lanes]
        self._names: dict[str, int] = {}
        for number, op in enumerate(timeline.ops):
            self._names.setdefault(op.name, number)

    def named(self, name: str) -> int | None:
        return self._names.get(name)

    def beside(self, number: int, step: int) -> int:
        """So many operations on, on the same lane; at its end the last one."""
        lane = self._lanes[self._ops[number].lane]
        return lane[min(max(bisect_left(lane, number) + step, 0), len(lane) - 1)]

    def at_end(self, number: int, side: int) -> int:
        """The first operation of the same lane, or, where `side` is 1, its last."""
        return self._lanes[self._ops[number].lane][0 if side < 0 else -1]

    def on_lane_beside(self, number: int, step: int) -> int | None:
        """The operation of the next lane that has any, at the same time; None where there is none."""
        op = self._ops[number]
        lane = op.lane + step
        while 0 <= lane < len(self._lanes):
            beside = self.nearest(lane, (op.start + op.end) / 2)
            if beside is not None:
                return beside
            lane += step
        return None

    def nearest(self, lane: int, time: float) -> int | None:
        """The operation of a lane that runs at a time, or the nearest to it; None where the lane is empty."""

        def away(number: int) -> float:
            op = self._ops[number]
            return max(op.start - time, time - op.end, 0.0)

        index = bisect_right(self._starts[lane], time)
        return min(self._lanes[lane][max(index - 2, 0) : index + 1], key=away, default=None)

    def edge(self, step: int, time: float) -> int | None:
        """The operation at a time on the first lane that has any, or, where `step` is -1, on the last."""
        nearest = (self.nearest(lane, time) for lane in range(len(self._lanes))[::step])
        return next((number for number in nearest if number is not None), None)

    def waited_for(self, number: int) -> int | None:
        """The operation whose end it waited for last; None where it waited for none."""
        return max(self._ops[number].after, key=lambda other: self._ops[other].end, default=None)
