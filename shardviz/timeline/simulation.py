"""A scheduled module as steps, and these in time: the device does one after the other, links and copies run
beside it.

An asynchronous operation begins at one step and is waited for at another, maybe in the next iteration of a
loop: then the loop's state carries it, and it is known by its path there. Operations that occupy the same
links queue in the order in which they begin. A loop's body is simulated until an iteration ends in the state
in which it began, and counts as often as is left; the longest branch of a conditional counts.

It is drawn on a clock of its own, on which each loop's body (of its runs the most frequent) and each branch
stands once. What runs beside a loop is as long there as the part of the loop that it overlaps with."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shardviz.hlo.text.call_graph import times
from shardviz.hlo.text.values import Path
from shardviz.timeline.durations import TICKS, Channel, Duration
from shardviz.timeline.program_timeline import LANE_KINDS, Lane, SpanKind, TimedOp, TimeSpan

MAX_DRAWN = 100_000
"""A program that calls the same computations over and over is drawn up to so many operations."""

CARRIED = -1
Token = tuple[int, Path]
"""Something that is under way: the number of the step that began it, or of the loop that passed it on, or
`CARRIED` where the computation's parameter has it; and its path there."""


@dataclass(eq=False, slots=True)
class TimedWork:
    """An operation, or several that are alike but for their names and what they read. The device waits for
    one that is not `is_async`. `collective` is the name of the one that it is, or has inside."""

    op: str
    duration: Duration
    source: str = ""
    is_async: bool = False
    collective: str = ""


@dataclass(slots=True)
class RunStep:
    """Computations that run at this place: the body of a loop, `count` times (None where the text does not
    tell), the longest branch of a conditional, or one that is called. `enters` has what is under way when a
    loop begins, by the path in its state."""

    kind: SpanKind
    blocks: tuple[Block, ...]
    count: int | None = 1
    enters: Mapping[Path, Token] = field(default_factory=dict)


Step = TimedWork | Token | RunStep
"""At a token the device waits until what it names is done."""


@dataclass(eq=False, slots=True)
class Block:
    """The steps of a computation; `reads` has for each the numbers of earlier ones whose results it takes,
    maybe more than once. `leaves` has what is under way at its end, by the path in its result."""

    name: str
    steps: list[Step] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    reads: list[Sequence[int]] = field(default_factory=list)
    leaves: Mapping[Path, Token] = field(default_factory=dict)
    channels: frozenset[Channel] = frozenset()

    def add(self, step: Step, name: str = "", reads: tuple[int, ...] = ()) -> int:
        """Add a step; returns its number."""
        self.steps.append(step)
        self.names.append(name)
        self.reads.append(reads)
        return len(self.steps) - 1


@dataclass(slots=True)
class BlockRun:
    """One run of a computation, in ticks from its beginning.

    `starts` and `ends` have an entry for each step, `exposed` for how long the device waited for it.
    `cause` is the number of the step whose end let a step begin, -1 for what came before the computation,
    ``-2 - n`` for what an earlier iteration began: `waited[n]` is its path, and what ended before the wait;
    `last` that of the step whose end is the end of the run. `inner` are the runs of each computation that a
    step runs, with how often: not at all of a branch that is not the longest. `busy` and `waited_for` are the
    ticks for which each lane is in use, and for which the device waits for it; these and `flops` are of all
    runs within. `free` says until when links are in use, `leaves` what is under way at the end; `late` how
    long it waited for what an earlier iteration began, of which `enters` was left then."""

    block: Block
    starts: list[int]
    ends: list[int]
    exposed: list[int]
    cause: list[int]
    duration: int = 0
    last: int = CARRIED
    inner: dict[int, list[list[tuple[BlockRun, int]]]] = field(default_factory=dict)
    busy: Counter[str] = field(default_factory=Counter)
    waited_for: Counter[str] = field(default_factory=Counter)
    flops: int = 0
    free: dict[Channel, int] = field(default_factory=dict)
    leaves: dict[Path, tuple[int, str]] = field(default_factory=dict)
    late: Counter[Path] = field(default_factory=Counter)
    enters: dict[Path, int] = field(default_factory=dict)
    waited: list[tuple[Path, int]] = field(default_factory=list)


State = tuple[tuple[tuple[Channel, int], ...], tuple[tuple[Path, int, str], ...]]
"""Links in use and what a loop's state carries, both in ticks from now on."""


def simulate(entry: Block) -> BlockRun:
    """The run of a whole program, which ends when all that is under way is done."""
    return _Device({}).run(entry, ((), ()))


class _Device:
    """The device during one run of a block; one that begins in the same state as before is not run again."""

    def __init__(self, known: dict[tuple[Block, State], BlockRun]) -> None:
        self._known = known
        self._now = 0
        self._last = CARRIED
        self._free: dict[Channel, int] = {}
        self._user: dict[Channel, int] = {}
        self._under_way: dict[Token, tuple[int, str]] = {}
        """When what is under way is done, and its lane."""

    def run(self, block: Block, state: State) -> BlockRun:
        self._free = dict(state[0])
        self._under_way = {(CARRIED, path): (end, lane) for path, end, lane in state[1]}
        steps = len(block.steps)
        self._run = run = BlockRun(block, [0] * steps, [0] * steps, [0] * steps, [CARRIED] * steps)
        run.enters = {path: end for path, end, _ in state[1]}
        starts, ends, cause, busy = run.starts, run.ends, run.cause, run.busy
        for number, step in enumerate(block.steps):
            starts[number] = ends[number] = self._now
            cause[number] = self._last
            if isinstance(step, TimedWork):
                duration = step.duration
                if step.is_async or duration.channels:
                    self._beside(number, step)
                else:
                    ends[number] = self._now = self._now + duration.ticks
                    self._last = number
                    busy[duration.lane.name] += duration.ticks
                    run.flops += duration.flops
            elif isinstance(step, RunStep):
                self._inner(number, step)
            else:
                self._wait(step)
        run.duration, run.last = self._now, self._last
        run.free = {channel: end - self._now for channel, end in self._free.items() if end > self._now}
        for path, token in block.leaves.items():
            if token in self._under_way:
                end, lane = self._under_way[token]
                run.leaves[path] = max(0, end - self._now), lane
        return run

    def _beside(self, number: int, step: TimedWork) -> None:
        """Begin what occupies links, or runs beside the device's own work, when its links are free."""
        run, begin, duration = self._run, self._now, step.duration
        for channel in duration.channels:
            if self._free.get(channel, 0) > begin:
                begin = self._free[channel]
                run.cause[number] = self._user.get(channel, self._last)
        ticks, lane = duration.ticks, duration.lane.name
        end = begin + ticks
        run.starts[number], run.ends[number] = begin, end
        for channel in duration.channels:
            self._free[channel], self._user[channel] = end, number
        run.busy[lane] += ticks
        run.flops += duration.flops
        if step.is_async:
            self._under_way[number, ()] = end, lane
            return
        self._expose(number, lane, end - self._now)
        self._now, self._last = end, number

    def _wait(self, token: Token) -> None:
        end, lane = self._under_way.get(token, (0, ""))
        if end <= self._now:
            return
        step, path = token
        if step == CARRIED:
            self._run.late[path] += end - self._now
            self._run.waited.append((path, self._last))
            self._run.waited_for[lane] += end - self._now
            self._last = CARRIED - len(self._run.waited)
        else:
            self._expose(step, lane, end - self._now)
            self._last = step
        self._now = end

    def _expose(self, number: int, lane: str, ticks: int) -> None:
        self._run.exposed[number] += ticks
        self._run.waited_for[lane] += ticks

    def _inner(self, number: int, step: RunStep) -> None:
        ways = [self._iterations(step, block) for block in step.blocks]
        lengths = [sum(run.duration * count for run, count in runs) for runs in ways]
        longest = lengths.index(max(lengths))
        taken, before = ways[longest], self._now
        self._run.inner[number] = [
            runs if index == longest else [(run, 0) for run, _ in runs] for index, runs in enumerate(ways)
        ]
        self._now += lengths[longest]
        self._run.ends[number] = self._now
        for run, count in taken:
            self._run.flops += count * run.flops
            for mine, theirs in ((self._run.busy, run.busy), (self._run.waited_for, run.waited_for)):
                for lane, ticks in theirs.items():
                    mine[lane] += count * ticks
        if self._now > before:
            self._last = number
        if not taken:
            return
        last = taken[-1][0]
        for channel, rest in last.free.items():
            # Links that are still in use at the end of the last run.
            self._free[channel], self._user[channel] = self._now + rest, number
        for path, (rest, lane) in last.leaves.items():
            self._under_way[number, path] = self._now + rest, lane

    def _iterations(self, step: RunStep, block: Block) -> list[tuple[BlockRun, int]]:
        """The runs of a computation from now on, each with how often it runs."""
        in_use = tuple(
            (channel, end - self._now)
            for channel, end in sorted(self._free.items())
            if end > self._now and channel in block.channels
        )
        carried = tuple(
            (path, max(0, self._under_way[token][0] - self._now), self._under_way[token][1])
            for path, token in sorted(step.enters.items())
            if token in self._under_way
        )
        state: State = in_use, carried
        left = 1 if step.count is None else step.count
        runs: list[tuple[BlockRun, int]] = []
        while left:
            if (block, state) not in self._known:
                self._known[block, state] = _Device(self._known).run(block, state)
            run = self._known[block, state]
            carried = tuple((path, rest, lane) for path, (rest, lane) in sorted(run.leaves.items()))
            after = tuple(sorted(run.free.items())), carried
            count = left if after == state or len(runs) == 1000 else 1
            runs.append((run, count))
            left -= count
            state = after
        return runs


def lane_seconds(ticks: Mapping[str, int]) -> tuple[tuple[str, float], ...]:
    """Ticks by lane as seconds, in the order of their first use."""
    return tuple((lane, count / TICKS) for lane, count in ticks.items())


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
    ops, durations, causes = drawer.ops, drawer.durations, drawer.causes
    lanes = sorted(drawer.lanes, key=lambda lane: LANE_KINDS.index(lane.kind))
    if lanes != [*drawer.lanes]:
        numbers = [lanes.index(lane) for lane in drawer.lanes]
        for op in ops:
            op.lane = numbers[op.lane]
    order = sorted(range(len(ops)), key=drawer.starts.__getitem__)
    if order != [*range(len(ops))]:
        # The place of each operation in that order, and of none (-1).
        places = [0] * len(order) + [-1]
        for index, number in enumerate(order):
            places[number] = index
        for op in ops:
            op.after = tuple([places[number] for number in op.after])
        ops, durations = [ops[number] for number in order], [durations[number] for number in order]
        causes = [places[causes[number]] for number in order]
        last = places[last]
    spans, seconds = tuple(drawer.spans), drawer.width(run) / TICKS
    return Drawing(tuple(lanes), tuple(ops), spans, seconds, tuple(durations), tuple(causes), last)


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
        self.starts: list[float] = []
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

        def after(cause: int, step: int) -> tuple[int, ...]:
            others = {*map(numbers.__getitem__, block.reads[step])} - {cause, CARRIED}
            return (*others,) if cause == CARRIED else (cause, *others)

        pending: list[tuple[int, int, int]] = []
        columns = zip(block.steps, run.starts, run.ends, run.exposed, run.cause, strict=True)
        for number, (step, start, end, exposed, cause) in enumerate(columns):
            if isinstance(step, TimedWork):
                if run.inner:
                    start, end = clock.span(start, end)
                path = carried.get(number) if carried else None
                if cause < CARRIED:
                    pending.append((len(self.ops), number, cause))
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
                duration, starts = step.duration, (begin + start) / TICKS
                self.durations.append(duration)
                self.starts.append(starts)
                self.causes.append(cause)
                self.ops.append(
                    TimedOp(
                        block.names[number],
                        step.op,
                        self.lanes.setdefault(duration.lane, len(self.lanes)),
                        starts,
                        (begin + end) / TICKS,
                        duration.seconds,
                        duration.estimate,
                        count,
                        (exposed + late) / TICKS,
                        duration.bound,
                        duration.detail,
                        step.source,
                        after(cause, number),
                        duration.bytes,
                        duration.flops,
                        step.is_async,
                        step.collective,
                        duration.optimistic,
                    )
                )
                numbers[number] = len(self.ops) - 1
            elif isinstance(step, RunStep) and len(self.ops) < MAX_DRAWN:
                name, at = block.names[number], begin + clock.at(start, ends=True)
                numbers[number] = self._inner(step, name, run.inner[number], at, count, depth, drawn(cause))
        for code, (path, ended) in enumerate(run.waited, 1):
            waited[CARRIED - code] = begun.get(path, drawn(ended))
        for index, number, code in pending:
            self.causes[index] = drawn(code)
            self.ops[index].after = after(self.causes[index], number)
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
