"""A scheduled module as steps, and these in time: the device does one after the other, links and copies run
beside it.

An asynchronous operation begins at one step and is waited for at another, maybe in the next iteration of a
loop: then the loop's state carries it, and it is known by its path there. Operations that occupy the same
links queue in the order in which they begin. A loop's body is simulated until an iteration ends in the state
in which it began, and counts as often as is left; the longest branch of a conditional counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardviz.hlo.text.values import Path
from shardviz.timeline.durations import TICKS, Channel, Duration
from shardviz.timeline.program_timeline import SpanKind

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
