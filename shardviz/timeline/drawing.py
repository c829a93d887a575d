"""A simulated program on the drawn clock, on which each loop's body (of its runs the most frequent) and each
branch stands once. What runs beside a loop is as long there as the part of the loop that it overlaps with."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shardviz.hlo.text.call_graph import times
from shardviz.hlo.text.values import Path
from shardviz.timeline.durations import TICKS, Duration
from shardviz.timeline.program_timeline import LANE_KINDS, Lane, TimedOp, TimeSpan
from shardviz.timeline.simulation import CARRIED, BlockRun, RunStep, TimedWork

MAX_DRAWN = 100_000
"""A program that calls the same computations over and over is drawn up to so many operations."""


@dataclass(frozen=True)
class Drawing:
    """Operations in the order of their starts, spans, and the end of the drawn clock in seconds.

    The lanes go from the device outwards: compute, HBM, the mesh's axes, the network, the host. `durations`
    has how each operation was timed, `causes` the one whose end let it begin, -1 for none; `last` is the one
    whose end is the end of the program."""

    lanes: tuple[Lane, ...]
    ops: tuple[TimedOp, ...]
    spans: tuple[TimeSpan, ...]
    seconds: float
    durations: tuple[Duration, ...]
    causes: tuple[int, ...]
    last: int

    def named(self, is_meant: Callable[[Duration], bool]) -> list[str]:
        """The names of the operations whose durations are such, in the order of their starts."""
        if meant := set(filter(is_meant, {*self.durations})):
            return [op.name for op, own in zip(self.ops, self.durations, strict=True) if own in meant]
        return []


def draw(run: BlockRun) -> Drawing:
    drawer = _Drawer()
    last = drawer.block(run, 0, 1, 0, CARRIED)
    ops, causes = drawer.ops, drawer.causes
    lanes = sorted(drawer.lanes, key=lambda lane: LANE_KINDS.index(lane.kind))
    lane_numbers = [lanes.index(lane) for lane in drawer.lanes]
    order = sorted(range(len(ops)), key=[op.start for op in ops].__getitem__)
    # The place of each operation in that order, and of none (-1).
    places = [0] * len(order) + [-1]
    for index, number in enumerate(order):
        places[number] = index
    for op, cause in zip(ops, causes, strict=True):
        op.lane = lane_numbers[op.lane]
        waited = op.after if cause < 0 else (cause, *op.after)
        op.after = tuple(dict.fromkeys(map(places.__getitem__, waited)))
    return Drawing(
        tuple(lanes),
        tuple([ops[number] for number in order]),
        tuple(drawer.spans),
        drawer.width(run) / TICKS,
        tuple([drawer.durations[number] for number in order]),
        tuple([places[causes[number]] for number in order]),
        places[last],
    )


def representative(runs: list[tuple[BlockRun, int]]) -> BlockRun:
    """The run of a loop's body that occurs most often, the last of several."""
    return max(reversed(runs), key=lambda pair: pair[1])[0]


class _Clock:
    """The drawn clock of one run of a computation, in ticks from its beginning. `stretches` are the start and
    the end of each step that runs computations, and by how much longer it is drawn."""

    def __init__(self, stretches: Iterable[tuple[int, int, int]]) -> None:
        self._starts: list[int] = []
        # Start and end of a step that runs computations; the same on the drawn clock.
        self._pieces: list[tuple[int, int, int, int]] = []
        shift = 0
        for start, end, extra in sorted(stretches):
            self._starts.append(start)
            self._pieces.append((start, end, start + shift, end + shift + extra))
            shift += extra

    def at(self, tick: int, *, ends: bool = False) -> int:
        """A tick on the drawn clock; with `ends` what ends there does so before what begins there."""
        if not self._starts:
            return tick
        index = bisect_right(self._starts, tick) - 1
        while ends and index >= 0 and self._pieces[index][0] == tick:
            index -= 1
        if index < 0:
            return tick
        start, end, drawn_start, drawn_end = self._pieces[index]
        if tick >= end:
            return drawn_end + tick - end
        return drawn_start + (tick - start) * (drawn_end - drawn_start) // (end - start)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Two ticks on the drawn clock, most often between the same two pieces."""
        index = bisect_right(self._starts, start)
        if index == len(self._starts) or end <= self._starts[index]:
            shift = self._pieces[index - 1][3] - self._pieces[index - 1][1] if index else 0
            if not index or start >= self._pieces[index - 1][1]:
                return start + shift, end + shift
        drawn = self.at(start)
        return drawn, max(drawn, self.at(end, ends=True))


class _Drawer:
    """The operations as drawn, by their numbers here: `lanes` by first use, `after` without `causes`."""

    def __init__(self) -> None:
        self.ops: list[TimedOp] = []
        self.durations: list[Duration] = []
        self.causes: list[int] = []
        self.lanes: dict[Lane, int] = {}
        self.spans: list[TimeSpan] = []
        self._widths: dict[int, int] = {}

    def width(self, run: BlockRun) -> int:
        """The length of a run on the drawn clock, in ticks."""
        if id(run) not in self._widths:
            self._widths[id(run)] = run.duration + sum(extra for _, _, extra in self._stretches(run))
        return self._widths[id(run)]

    def _stretches(self, run: BlockRun) -> list[tuple[int, int, int]]:
        stretches = []
        for number, ways in run.inner.items():
            start, end = run.starts[number], run.ends[number]
            drawn = sum(self.width(representative(runs)) for runs in ways if runs)
            stretches.append((start, end, drawn - (end - start)))
        return stretches

    def block(self, run: BlockRun, begin: int, count: int | None, depth: int, before: int) -> int:
        """Draw a run from the tick `begin` on, of `count` in all, with `before` the operation whose end let
        it begin. Returns the one whose end is the end of the run."""
        clock, block = _Clock(self._stretches(run)), run.block
        limit = clock.at(run.duration)
        carried = {token[0]: path for path, token in block.leaves.items()}
        # The operation of each step; of one that runs computations the last of these.
        numbers = [CARRIED] * len(block.steps)
        # The operations that an earlier iteration began, and those for what ended a wait for one of them.
        begun: dict[Path, int] = {}
        waited: dict[int, int] = {}

        def drawn(step: int) -> int:
            number = numbers[step] if step >= 0 else waited.get(step, CARRIED)
            return before if number < 0 else number

        pending: list[tuple[int, int]] = []
        for number, step in enumerate(block.steps):
            if isinstance(step, TimedWork):
                start, end = run.starts[number], run.ends[number]
                if run.inner:
                    start, end = clock.span(start, end)
                cause, path = run.cause[number], carried.get(number)
                if cause < CARRIED:
                    pending.append((len(self.ops), cause))
                cause = numbers[cause] if cause >= 0 else CARRIED
                if cause < 0:
                    cause = before
                late = 0 if path is None else run.late[path]
                if late and path is not None and run.leaves[path][0] == run.enters.get(path):
                    # The end of the one that the iteration before began, for which the device waits in this.
                    start, end, cause = 0, min(clock.at(run.enters[path], ends=True), limit), before
                    begun[path] = len(self.ops)
                elif step.is_async and count != 1:
                    # Into the next iteration, which is not drawn.
                    start, end = min(start, limit), min(end, limit)
                reads = [numbers[read] for read in block.reads[number] if numbers[read] >= 0]
                numbers[number] = len(self.ops)
                duration = step.duration
                self.durations.append(duration)
                self.causes.append(cause)
                self.ops.append(
                    TimedOp(
                        block.names[number],
                        step.op,
                        self.lanes.setdefault(duration.lane, len(self.lanes)),
                        (begin + start) / TICKS,
                        (begin + end) / TICKS,
                        duration.seconds,
                        duration.estimate,
                        count,
                        (run.exposed[number] + late) / TICKS,
                        duration.bound,
                        duration.detail,
                        step.source,
                        tuple(reads),
                        duration.bytes,
                        duration.flops,
                        step.is_async,
                        step.collective,
                        duration.optimistic,
                    )
                )
            elif isinstance(step, RunStep) and len(self.ops) < MAX_DRAWN:
                index = begin + clock.at(run.starts[number], ends=True)
                inner, name, cause = run.inner[number], block.names[number], drawn(run.cause[number])
                numbers[number] = self._inner(step, name, inner, index, count, depth, cause)
        for code, (path, ended) in enumerate(run.waited, 1):
            waited[CARRIED - code] = begun.get(path, drawn(ended))
        for index, code in pending:
            self.causes[index] = drawn(code)
        return drawn(run.last)

    def _inner(
        self,
        step: RunStep,
        caller: str,
        ways: list[list[tuple[BlockRun, int]]],
        begin: int,
        count: int | None,
        depth: int,
        before: int,
    ) -> int:
        """Draw what a step runs, one behind the other; returns the operation with which it ends."""
        last = before
        for runs in filter(None, ways):
            body, taken = representative(runs), sum(repeats for _, repeats in runs)
            # A call of a single operation looks better without a frame.
            is_framed = step.kind != "call" or len(body.block.steps) > 1
            inside = times(count, None if step.count is None else taken)
            end = self.block(body, begin, inside, depth + is_framed, before)
            last = end if taken else last
            stop = begin + self.width(body)
            if is_framed:
                name = caller if step.kind == "loop" else body.block.name
                took = sum(run.duration * repeats for run, repeats in runs) / TICKS
                shown = None if step.kind == "branch" else step.count
                span = TimeSpan(step.kind, name, begin / TICKS, stop / TICKS, shown, depth, took)
                self.spans.append(span)
            begin = stop
        return last
