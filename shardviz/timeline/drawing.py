"""A simulated program on the drawn clock, on which each loop's body and each branch stands once.

Of a loop the iteration is drawn that occurs most often. What runs beside a loop is as long on the drawn clock
as the part of the loop that it overlaps with.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

from shardviz.timeline.program_steps import CARRIED, BranchesStep, CallStep, LoopStep, ProgramStep, TimedStep
from shardviz.timeline.program_timeline import Lane, TimedOp, TimeSpan
from shardviz.timeline.simulation import TICKS, BlockRun


@dataclass(frozen=True)
class Drawing:
    """Operations in the order of their starts, spans, and the end of the drawn clock in seconds.

    `causes` has for each operation the one whose end let it begin, -1 for none; `last` is the one whose end
    is the end of the program.
    """

    lanes: tuple[Lane, ...]
    ops: tuple[TimedOp, ...]
    spans: tuple[TimeSpan, ...]
    seconds: float
    causes: tuple[int, ...]
    last: int


def draw(run: BlockRun) -> Drawing:
    """The drawing of a program's run."""
    drawer = _Drawer()
    last = drawer.block(run, 0, 1, 0, CARRIED)
    order = sorted(range(len(drawer.ops)), key=lambda number: drawer.ops[number].start)
    place = [0] * len(order)
    for new, old in enumerate(order):
        place[old] = new
    ops = []
    for old in order:
        cause = drawer.causes[old]
        after = {place[number]: None for number in ((cause,) if cause >= 0 else ())}
        for number in drawer.after[old]:
            after[place[number]] = None
        ops.append(replace(drawer.ops[old], after=tuple(after)))
    return Drawing(
        tuple(drawer.lanes),
        tuple(ops),
        tuple(drawer.spans),
        _width(run) / TICKS,
        tuple(place[drawer.causes[old]] if drawer.causes[old] >= 0 else -1 for old in order),
        place[last] if last >= 0 else -1,
    )


def representative(runs: list[tuple[BlockRun, int]]) -> tuple[BlockRun, int]:
    """The run of a loop's body that occurs most often, the last of several."""
    return max(reversed(runs), key=lambda each: each[1])


def _width(run: BlockRun) -> int:
    """Ticks of a run on the drawn clock."""
    return run.duration + sum(extra for _, _, extra in _stretches(run))


def _stretches(run: BlockRun) -> list[tuple[int, int, int]]:
    """Start and end of each step that runs computations, and by how much longer it is drawn."""
    found = []
    for number, runs in run.inner.items():
        start, end = run.starts[number], run.ends[number]
        found.append(
            (start, end, sum(_width(each) for each in _drawn(run.block.steps[number], runs)) - (end - start))
        )
    return found


def _drawn(step: ProgramStep, runs: list[tuple[BlockRun, int]]) -> list[BlockRun]:
    if not runs:
        return []
    return [each for each, _ in runs] if isinstance(step, BranchesStep) else [representative(runs)[0]]


class _Clock:
    """The drawn clock of one run of a computation, in ticks from its beginning."""

    def __init__(self, run: BlockRun) -> None:
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int, int]] = []
        """Start and end of a step that runs computations; the same on the drawn clock."""
        shift = 0
        for start, end, extra in sorted(_stretches(run)):
            self._starts.append(start)
            self._pieces.append((start, end, start + shift, end + shift + extra))
            shift += extra

    def at(self, tick: int, *, ends: bool = False) -> int:
        """A tick on the drawn clock; with `ends` of two that are drawn from one the first."""
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
        self.lanes: dict[Lane, int] = {}
        self.ops: list[TimedOp] = []
        self.causes: list[int] = []
        self.after: list[tuple[int, ...]] = []
        self.spans: list[TimeSpan] = []

    def block(self, run: BlockRun, begin: int, count: int | None, depth: int, before: int) -> int:
        """Draw a run from the tick `begin` on.

        `count` is how often the run occurs in all, `before` the operation whose end let it begin. Returns the
        one whose end is the end of the run.
        """
        clock = _Clock(run)
        numbers: dict[int, int] = {CARRIED: before}
        """The operation of each step; of one that runs computations the last of these."""
        steps = run.block.steps
        carried = {token[0]: run.late.get(path, 0) for path, token in run.block.leaves.items()}
        for number, step in enumerate(steps):
            cause = numbers.get(run.cause[number], before)
            if isinstance(step, TimedStep):
                numbers[number] = len(self.ops)
                start, end = clock.at(run.starts[number]), clock.at(run.ends[number], ends=True)
                if end < start:
                    end = start
                limit = _limit(run, clock)
                self._op(
                    step,
                    begin + start,
                    begin + (min(end, limit) if step.is_async and count != 1 else end),
                    count,
                    run.exposed[number] + carried.get(number, 0),
                    cause,
                    [numbers[read] for read in step.reads if numbers.get(read, -1) >= 0],
                )
            elif number in run.inner:
                drawn_begin = begin + clock.at(run.starts[number], ends=True)
                numbers[number] = self._inner(run, number, step, drawn_begin, count, depth, cause)
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
        runs = run.inner[number]
        last = before
        if isinstance(step, BranchesStep):
            position = begin
            for branch, chosen in runs:
                end = self.block(branch, position, _times(count, chosen), depth + 1, before)
                self._span("branch", branch.block.name, position, _width(branch), None, depth)
                position += _width(branch)
                last = end if chosen else last
            return last
        if not runs:
            return before
        body, _ = representative(runs)
        if isinstance(step, LoopStep):
            last = self.block(body, begin, _times(count, step.count), depth + 1, before)
            self._span("loop", step.name, begin, _width(body), step.count, depth)
        elif isinstance(step, CallStep):
            last = self.block(body, begin, count, depth + 1, before)
            if len(body.block.steps) > 1:
                self._span("call", body.block.name, begin, _width(body), 1, depth)
        return last

    def _span(self, kind: str, name: str, begin: int, width: int, count: int | None, depth: int) -> None:
        self.spans.append(TimeSpan(kind, name, begin / TICKS, (begin + width) / TICKS, count, depth))  # type: ignore[arg-type]

    def _op(
        self,
        step: TimedStep,
        start: int,
        end: int,
        count: int | None,
        exposed: int,
        cause: int,
        reads: list[int],
    ) -> None:
        duration = step.duration
        self.ops.append(
            TimedOp(
                step.name,
                step.op,
                self.lanes.setdefault(step.lane, len(self.lanes)),
                start / TICKS,
                end / TICKS,
                duration.seconds,
                duration.estimate,
                count,
                exposed / TICKS,
                duration.bound,
                duration.detail,
                step.source,
                (),
                duration.bytes,
                duration.flops,
                step.is_async,
            )
        )
        self.causes.append(cause)
        self.after.append(tuple(reads))


def _limit(run: BlockRun, clock: _Clock) -> int:
    """The end of a run on its drawn clock."""
    return clock.at(run.duration)


def _times(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b
