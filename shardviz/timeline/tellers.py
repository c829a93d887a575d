"""Two tellers of one program's time, the model and the compiler's scheduler: where they differ, and why.

Each cause is read off the operation: its estimates, its bytes, the convention of the model and the line of
the final module.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp
from shardviz.units import rate

TOLERANCE = 0.25
"""Figures that are as close as this, in parts of the larger, are told alike."""
MATTERS = 0.005
"""A smaller part of the total is not worth a sentence."""
_FUSED = ("matmul", "fusion")
_SAME = 0.06
"""Ratios as close as this have one cause: link bandwidths are published rounded."""

SYNCHRONOUS = "the final program waits for all of it; the scheduler had it beside other work"
LATENCY = "a small transfer: the scheduler knows no latency"
WHOLE = "the scheduler counts the whole result, of which only a part moves"
LINE = "its links form a line, at whose ends more must pass; the scheduler takes any axis for a ring"
DISTANCE = "the model counts each hop; the scheduler gives a permute the same time at any distance"
ON_CHIP = "its data lies in on-chip memory in the final program, which the scheduler does not know yet"
TILES = "the scheduler's figure is the bare roofline; the final one counts the tiles that the compiler chose"
BEFORE = "both are the compiler's figures; the scheduler's is from before the final memory assignment"
BYTES = "bound by HBM: the compiler's figures are above the time of its bytes"
SMALL = "the compiler's figure is above the roofline, as for work that does not fill the matrix units"
DOUBTFUL = "doubtful: the scheduler's figure is faster than the roofline"
ADDED = "the scheduler does not have it: the compiler added or changed it afterwards"
OUTSIDE = "outside of the loops, which alone the scheduler has simulated"
GONE = "the final program does not have it under this name: the compiler changed it after the scheduler"
BESIDE = "other work runs beside it"
NETWORK = "between slices the scheduler takes a round figure, the same for every network"
UNKNOWN = "the model has no estimate of it"

_FRACTION = re.compile(r"\b(\d+)/(\d+) of ")
_ROOFLINE = re.compile(r"([\d.]+) × the roofline")
_HOPS = re.compile(r"\bhops? along ")
_OPERANDS = re.compile(r"%([^\s,(){}=%]+)")
_NAMED = re.compile(r"^\s*(?:ROOT )?%?(\S+) = (.*)", re.MULTILINE)
_ON_CHIP = "S(1)"


@dataclass(frozen=True)
class EstimateDifference:
    """An operation of which the two tellers say different times.

    `model_seconds` and `scheduler_seconds` are those of one run for which the device is busy with it or waits
    for it; None where a teller does not have it. `seconds` is by how much longer the scheduler's total is for
    it, all runs together. `cause` is a sentence without its full stop.
    """

    name: str
    op: str
    model_seconds: float | None
    scheduler_seconds: float | None
    runs: int | None
    seconds: float
    cause: str
    source: str = ""


@dataclass(frozen=True)
class TellerComparison:
    """Both totals in seconds, and what they differ by: operations that differ by more than a quarter, those
    that matter most first, and the causes, with the seconds that the scheduler's total is longer (or, below
    0, shorter) for each, all operations together."""

    model_seconds: float
    scheduler_seconds: float
    differences: tuple[EstimateDifference, ...]
    causes: tuple[tuple[str, float], ...]

    @property
    def ratio(self) -> float:
        """The scheduler's total over the model's; infinite where the model has none."""
        return self.scheduler_seconds / self.model_seconds if self.model_seconds else float("inf")

    @property
    def agree(self) -> bool:
        """Return whether the totals are within a quarter of the larger."""
        return _alike(self.model_seconds, self.scheduler_seconds)


def compare_tellers(model: ProgramTimeline, scheduler: ProgramTimeline, text: str = "") -> TellerComparison:
    """Compare a model's timeline with the scheduler's of the same program; `text` is the final module."""
    lines = dict(_NAMED.findall(text))
    loops = [(span.start, span.end) for span in model.spans if span.kind == "loop" and not span.depth]
    alike: list[EstimateDifference] = []
    differ: list[EstimateDifference] = []
    for op, other in _pairs(model, scheduler):
        ours = None if op is None else _busy(op, model)
        theirs = None if other is None else _busy(other, scheduler)
        told = op or other
        assert told is not None
        if op is None or ours is None:
            cause = GONE
        elif other is None or theirs is None:
            in_loop = any(start <= op.start < end for start, end in loops)
            cause = OUTSIDE if scheduler.unknown and not in_loop else ADDED
        elif op.seconds is None:
            cause = UNKNOWN
        elif (kind := model.lanes[op.lane].kind) == "compute":
            cause = _of_work(op, other, lines)
        elif kind == "network" and abs((ms := (other.seconds or 0) * 1e4) - round(ms)) < 1e-3 <= ms:
            # A whole number of 100 µs, which no rate gives by chance.
            cause = NETWORK
        else:
            cause = _of_transfer(op, other, ours > theirs)
        runs = 1 if told.runs is None else told.runs
        seconds = ((theirs or 0.0) - (ours or 0.0)) * runs
        is_alike = ours is not None and theirs is not None and _alike(ours, theirs)
        (alike if is_alike else differ).append(
            EstimateDifference(told.name, told.op, ours, theirs, told.runs, seconds, cause, told.source)
        )
    causes: defaultdict[str, float] = defaultdict(float)
    for difference in (*alike, *differ):
        causes[difference.cause] += difference.seconds
    least = MATTERS * max(model.seconds, scheduler.seconds)
    differ.sort(key=lambda difference: -abs(difference.seconds))
    by_cause = sorted(causes.items(), key=lambda pair: -abs(pair[1]))
    return TellerComparison(
        model.seconds,
        scheduler.seconds,
        tuple(difference for difference in differ if abs(difference.seconds) >= least),
        tuple((cause, seconds) for cause, seconds in by_cause if abs(seconds) >= least),
    )


def _pairs(
    model: ProgramTimeline, scheduler: ProgramTimeline
) -> Iterator[tuple[TimedOp | None, TimedOp | None]]:
    """The operations of both by name, and those that only one of them has.

    Fusions of other names that run as often are the same, in their order, where both have as many: the
    compiler names what it fuses anew.
    """
    theirs: defaultdict[str, list[TimedOp]] = defaultdict(list)
    for op in scheduler.ops:
        theirs[op.name].append(op)
    alone: list[TimedOp] = []
    for op in model.ops:
        if same := theirs.get(op.name):
            yield op, same.pop(0)
        else:
            alone.append(op)
    others = [op for rest in theirs.values() for op in rest]
    for runs in {op.runs for op in others}:
        fused = [[op for op in ops if op.op in _FUSED and op.runs == runs] for ops in (alone, others)]
        if len(fused[0]) == len(fused[1]):
            yield from zip(*fused, strict=True)
            paired = {id(op) for ops in fused for op in ops}
            alone, others = ([op for op in ops if id(op) not in paired] for ops in (alone, others))
    yield from ((op, None) for op in alone)
    yield from ((None, op) for op in others)


def _busy(op: TimedOp, timeline: ProgramTimeline) -> float:
    """The seconds of the total that one run of an operation takes."""
    return (op.seconds or 0.0) if timeline.lanes[op.lane].kind == "compute" else op.exposed


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE * max(one, other)


def _of_transfer(op: TimedOp, other: TimedOp, is_longer: bool) -> str:
    """The cause for a transfer that the device waits for longer (`is_longer`) or shorter in the model."""
    if is_longer and other.is_async and not op.is_async:
        return SYNCHRONOUS
    ours, theirs = op.seconds, other.seconds
    if not ours or not theirs or _near(ours, theirs) or (ours > theirs) != is_longer:
        return BESIDE
    if is_longer and op.bound == "latency":
        return LATENCY
    if is_longer and _HOPS.search(op.detail):
        return DISTANCE
    if (part := _FRACTION.search(op.detail)) and _near(theirs / ours, int(part[2]) / int(part[1])):
        return WHOLE
    if is_longer and "a line of" in op.detail:
        return LINE
    return f"the scheduler takes {rate(op.bytes / theirs)} for every {op.op}; here it is {op.detail}"


def _of_work(op: TimedOp, other: TimedOp, lines: Mapping[str, str]) -> str:
    """The cause for work on the device itself; `lines` are those of the final module by their names."""
    ours, theirs = op.seconds or 0.0, other.seconds or 0.0
    if op.estimate != "compiler":
        return DOUBTFUL if theirs < ours else BYTES if op.bound == "HBM" else SMALL
    if theirs > ours and _is_on_chip(lines, op.name):
        return ON_CHIP
    times = _ROOFLINE.search(op.detail)
    return TILES if times and _near(theirs, ours / float(times[1])) else BEFORE


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(one, other)


def _is_on_chip(lines: Mapping[str, str], name: str) -> bool:
    """Return whether an instruction's result or an operand lies in on-chip memory (space 1)."""
    shape, _, operands = lines.get(name, "").partition("(%")
    names = _OPERANDS.findall(f"%{operands}".partition(")")[0])
    shapes = (lines.get(name, "").partition("(%")[0] for name in names)
    return _ON_CHIP in shape or any(_ON_CHIP in shape for shape in shapes)
