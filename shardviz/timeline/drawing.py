"""A simulated program on the drawn clock, on which each loop's body and each branch stands once.

Of a loop the iteration is drawn that occurs most often. What runs beside a loop is as long on the drawn clock
as the part of the loop that it overlaps with.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.timeline.instruction_work import Path
from shardviz.timeline.program_steps import (
    CARRIED,
    BranchesStep,
    CallStep,
    LoopStep,
    ProgramStep,
    TimedStep,
)
from shardviz.timeline.program_timeline import Lane, SpanKind, TimedOp, TimeSpan
from shardviz.timeline.simulation import TICKS, BlockRun

MAX_DRAWN = 100_000
"""A program that calls the same computations over and over is drawn up to so many operations."""
_ORDER = ("compute", "copy", "axis", "network", "host")


@dataclass(frozen=True)
class Drawing:
    """Operations in the order of their starts, spans, and the end of the drawn clock in seconds.

    The lanes go from the device outwards: compute, HBM, the mesh's axes, the network, the host. `causes` has
    for each operation the one whose end let it begin, -1 for none; `last` is the one whose end is the end of
    the program. `least` has the time of the roofline of each operation of the device.
    """

    lanes: tuple[Lane, ...]
    ops: tuple[TimedOp, ...]
    spans: tuple[TimeSpan, ...]
    seconds: float
    causes: tuple[int, ...]
    last: int
    least: tuple[float | None, ...]


def draw(run: BlockRun) -> Drawing:
    """The drawing of a program's run."""
    drawer = _Drawer()
    last = drawer.block(run, 0, 1, 0, CARRIED)
    drawn = drawer.drawn
    order = sorted(range(len(drawn)), key=lambda number: drawn[number].start)
    place = [0] * len(order)
    for new, old in enumerate(order):
        place[old] = new
    found = dict.fromkeys(each.step.lane for each in drawn)
    lanes = tuple(sorted(found, key=lambda lane: _ORDER.index(lane.kind)))
    number_of = {lane: number for number, lane in enumerate(lanes)}
    in_order = [drawn[old] for old in order]
    return Drawing(
        lanes,
        tuple(_operation(each, number_of, place) for each in in_order),
        tuple(drawer.spans),
        drawer.widths.of(run) / TICKS,
        tuple(place[each.cause] if each.cause >= 0 else -1 for each in in_order),
        place[last] if last >= 0 else -1,
        tuple(each.step.duration.least if each.step.lane.kind == "compute" else None for each in in_order),
    )


class _Drawn(NamedTuple):
    """A step on the drawn clock, in ticks, with how often it `runs`; other operations are given by number."""

    step: TimedStep
    start: int
    end: int
    runs: int | None
    exposed: int
    cause: int
    reads: tuple[int, ...]


def _operation(each: _Drawn, lanes: dict[Lane, int], place: list[int]) -> TimedOp:
    step, duration = each.step, each.step.duration
    waited = (each.cause, *each.reads) if each.cause >= 0 else each.reads
    return TimedOp(
        step.name,
        step.op,
        lanes[step.lane],
        each.start / TICKS,
        each.end / TICKS,
        duration.seconds,
        duration.estimate,
        each.runs,
        each.exposed / TICKS,
        duration.bound,
        duration.detail,
        step.source,
        tuple(dict.fromkeys(place[number] for number in waited)),
        duration.bytes,
        duration.flops,
        step.is_async,
        step.collective,
    )


def representative(runs: list[tuple[BlockRun, int]]) -> BlockRun:
    """The run of a loop's body that occurs most often, the last of several."""
    return max(reversed(runs), key=lambda each: each[1])[0]


class _Widths:
    """The lengths of runs on the drawn clock, in ticks."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, run: BlockRun) -> int:
        """The length of one run."""
        found = self._known.get(id(run))
        if found is None:
            found = self._known[id(run)] = run.duration + sum(extra for _, _, extra in self.stretches(run))
        return found

    def stretches(self, run: BlockRun) -> list[tuple[int, int, int]]:
        """Start and end of each step that runs computations, and by how much longer it is drawn."""
        found = []
        for number, runs in run.inner.items():
            start, end = run.starts[number], run.ends[number]
            drawn = sum(self.of(each) for each in _shown(run.block.steps[number], runs))
            found.append((start, end, drawn - (end - start)))
        return found


def _shown(step: ProgramStep, runs: list[tuple[BlockRun, int]]) -> list[BlockRun]:
    if isinstance(step, BranchesStep):
        return [each for each, _ in runs]
    return [representative(runs)] if runs else []


class _Clock:
    """The drawn clock of one run of a computation, in ticks from its beginning."""

    def __init__(self, stretches: list[tuple[int, int, int]]) -> None:
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int, int]] = []
        """Start and end of a step that runs computations; the same on the drawn clock."""
        shift = 0
        for start, end, extra in sorted(stretches):
            self._starts.append(start)
            self._pieces.append((start, end, start + shift, end + shift + extra))
            shift += extra

    def at(self, tick: int, *, ends: bool = False) -> int:
        """A tick on the drawn clock; with `ends` what ends there does so before what begins there."""
        place = bisect_right(self._starts, tick) - 1
        while ends and place >= 0 and self._pieces[place][0] == tick:
            place -= 1
        if place < 0:
            return tick
        start, end, drawn_start, drawn_end = self._pieces[place]
        if tick >= end:
            return drawn_end + tick - end
        return drawn_start + (tick - start) * (drawn_end - drawn_start) // (end - start)


class _Drawer:
    def __init__(self) -> None:
        self.drawn: list[_Drawn] = []
        self.spans: list[TimeSpan] = []
        self.widths = _Widths()

    def block(self, run: BlockRun, begin: int, count: int | None, depth: int, before: int) -> int:
        """Draw a run from the tick `begin` on.

        `count` is how often the run occurs in all, `before` the operation whose end let it begin. Returns the
        one whose end is the end of the run.
        """
        clock = _Clock(self.widths.stretches(run))
        limit = clock.at(run.duration)
        carried = {token[0]: path for path, token in run.block.leaves.items()}
        numbers: dict[int, int] = {CARRIED: before}
        """The operation of each step; of one that runs computations the last of these."""
        begun: dict[Path, int] = {}
        """The operations that an earlier iteration began."""
        pending: list[tuple[int, int]] = []
        for number, step in enumerate(run.block.steps):
            cause = numbers.get(run.cause[number], before)
            if isinstance(step, TimedStep):
                start = clock.at(run.starts[number])
                end = max(start, clock.at(run.ends[number], ends=True))
                path = carried.get(number)
                late = 0 if path is None else run.late.get(path, 0)
                is_steady = late and path is not None and run.leaves[path][0] == run.enters.get(path)
                if is_steady and path is not None:
                    # The end of the one that the iteration before began, for which the device waits in this.
                    start, end, cause = 0, min(clock.at(run.enters[path], ends=True), limit), before
                    begun[path] = len(self.drawn)
                elif step.is_async and count != 1:
                    # Into the next iteration, which is not drawn.
                    start, end = min(start, limit), min(end, limit)
                reads = tuple(found for read in step.reads if (found := numbers.get(read, -1)) >= 0)
                numbers[number] = len(self.drawn)
                exposed = run.exposed[number] + late
                if run.cause[number] < CARRIED:
                    pending.append((len(self.drawn), run.cause[number]))
                self.drawn.append(_Drawn(step, begin + start, begin + end, count, exposed, cause, reads))
            elif number in run.inner and len(self.drawn) < MAX_DRAWN:
                place = begin + clock.at(run.starts[number], ends=True)
                numbers[number] = self._inner(run, number, step, place, count, depth, cause)
        for code, (path, ended) in enumerate(run.waited, 1):
            numbers[CARRIED - code] = begun.get(path, numbers.get(ended, before))
        for place, code in pending:
            self.drawn[place] = self.drawn[place]._replace(cause=numbers[code])
        return numbers.get(run.last, before)

    def _inner(
        self,
        run: BlockRun,
        number: int,
        step: ProgramStep,
        begin: int,
        count: int | None,
        depth: int,
        before: int,
    ) -> int:
        """Draw the computations that a step runs; returns the operation whose end is the end of it."""
        runs = run.inner[number]
        last = before
        if isinstance(step, BranchesStep):
            for branch, chosen in runs:
                end = self.block(branch, begin, _times(count, chosen), depth + 1, before)
                took = branch.duration if chosen else 0
                self._span("branch", branch.block.name, begin, branch, None, depth, took)
                begin += self.widths.of(branch)
                last = end if chosen else last
            return last
        if not runs:
            return before
        body = representative(runs)
        if isinstance(step, LoopStep):
            last = self.block(body, begin, _times(count, step.count), depth + 1, before)
            took = sum(each.duration * times for each, times in runs)
            self._span("loop", step.name, begin, body, step.count, depth, took)
        elif isinstance(step, CallStep):
            # One with a single operation looks better without a frame.
            is_framed = len(body.block.steps) > 1
            last = self.block(body, begin, count, depth + is_framed, before)
            if is_framed:
                self._span("call", body.block.name, begin, body, 1, depth, body.duration)
        return last

    def _span(
        self, kind: SpanKind, name: str, begin: int, run: BlockRun, count: int | None, depth: int, took: int
    ) -> None:
        end = begin + self.widths.of(run)
        self.spans.append(TimeSpan(kind, name, begin / TICKS, end / TICKS, count, depth, took / TICKS))


def _times(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b
