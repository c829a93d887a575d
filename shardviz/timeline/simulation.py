"""Steps in time: the device does one thing after the other, links and copies run beside it.

Times are whole ticks of a femtosecond, so that equal states of a loop are known to be equal. A loop's body is
simulated until an iteration ends in the state in which it began, and counts as often as is left; the longest
branch of a conditional counts. Operations that occupy the same links queue in the order in which they begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardviz.timeline.instruction_work import Path
from shardviz.timeline.link_times import Channel
from shardviz.timeline.program_steps import (
    CARRIED,
    Block,
    BranchesStep,
    CallStep,
    DoneStep,
    LoopStep,
    ProgramStep,
    TimedStep,
    Token,
)

TICKS = 10**15
"""Ticks in a second."""
MAX_ITERATIONS = 1000
"""No more iterations of a loop than this are simulated one by one; the last stands for the others."""


@dataclass(slots=True)
class UnderWay:
    """An operation that is not done before `end`; `step` is its number where it began in this computation."""

    end: int
    lane: str
    step: int


@dataclass(slots=True)
class Totals:
    """Ticks of all runs by the lane's name: how long it is in use, how long the device waits for it."""

    busy: dict[str, int] = field(default_factory=dict)
    exposed: dict[str, int] = field(default_factory=dict)
    flops: int = 0

    def add(self, other: Totals, count: int = 1) -> None:
        """Add another's, so many times."""
        for mine, theirs in ((self.busy, other.busy), (self.exposed, other.exposed)):
            for lane, ticks in theirs.items():
                mine[lane] = mine.get(lane, 0) + count * ticks
        self.flops += count * other.flops


@dataclass(slots=True)
class BlockRun:
    """One run of a computation, in ticks from its beginning.

    `starts` and `ends` have an entry for each step, `exposed` for how long the device waited for it.
    `cause` is the number of the step whose end let a step begin, -1 for what came before the computation,
    ``-2 - n`` for what an earlier iteration began: `waited[n]` is its path, and what ended
    before the wait; `last` that of the step whose end is
    the end of the run. `inner` are the runs of computations that a
    step runs, with how often. `free` says until when links are in use, `leaves` what is under way at the
    end; `late` how long it waited for what an earlier iteration began, of which `enters` was left then.
    """

    block: Block
    duration: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    exposed: list[int] = field(default_factory=list)
    cause: list[int] = field(default_factory=list)
    last: int = CARRIED
    inner: dict[int, list[tuple[BlockRun, int]]] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    free: dict[Channel, int] = field(default_factory=dict)
    leaves: dict[Path, tuple[int, str]] = field(default_factory=dict)
    late: dict[Path, int] = field(default_factory=dict)
    enters: dict[Path, int] = field(default_factory=dict)
    waited: list[tuple[Path, int]] = field(default_factory=list)


State = tuple[tuple[tuple[Channel, int], ...], tuple[tuple[Path, int, str], ...]]
"""Links in use and what a loop's state carries, both in ticks from now on."""


class Simulation:
    """Runs blocks; one that begins in the same state as before is not run again."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, State], BlockRun] = {}

    def program(self, entry: Block) -> BlockRun:
        """The run of a whole program, which ends when all that is under way is done."""
        return self.run(entry, ((), ()))

    def run(self, block: Block, state: State) -> BlockRun:
        """One run of a block that begins in a state."""
        key = id(block), state
        found = self._runs.get(key)
        if found is None:
            found = self._runs[key] = _Device(self, block, state).run
        return found


class _Device:
    """The device during one run of a block."""

    def __init__(self, simulation: Simulation, block: Block, state: State) -> None:
        self._simulation = simulation
        self._now = 0
        self._last = CARRIED
        self._free: dict[Channel, int] = dict(state[0])
        self._user: dict[Channel, int] = {}
        self._under_way: dict[Token, UnderWay] = {
            (CARRIED, path): UnderWay(end, lane, CARRIED) for path, end, lane in state[1]
        }
        self.run = run = BlockRun(block, enters={path: end for path, end, _ in state[1]})
        for number, step in enumerate(block.steps):
            run.starts.append(self._now)
            run.ends.append(self._now)
            run.exposed.append(0)
            run.cause.append(self._last)
            if isinstance(step, TimedStep):
                self._timed(number, step)
            elif isinstance(step, DoneStep):
                self._wait(step)
            else:
                self._inner(number, step)
        run.duration, run.last = self._now, self._last
        run.free = {channel: end - self._now for channel, end in self._free.items() if end > self._now}
        for path, token in block.leaves.items():
            found = self._under_way.get(token)
            if found is not None:
                run.leaves[path] = max(0, found.end - self._now), found.lane

    def _timed(self, number: int, step: TimedStep) -> None:
        run, begin = self.run, self._now
        for channel in step.channels:
            if self._free.get(channel, 0) > begin:
                begin = self._free[channel]
                run.cause[number] = self._user.get(channel, self._last)
        end = begin + step.ticks
        run.starts[number], run.ends[number] = begin, end
        for channel in step.channels:
            self._free[channel], self._user[channel] = end, number
        lane = step.lane.name
        run.totals.busy[lane] = run.totals.busy.get(lane, 0) + step.ticks
        run.totals.flops += step.duration.flops
        if step.is_async:
            self._under_way[number, ()] = UnderWay(end, lane, number)
            return
        if step.channels:
            self._expose(number, lane, end - self._now)
        self._now, self._last = end, number

    def _wait(self, step: DoneStep) -> None:
        found = self._under_way.get(step.token)
        if found is None or found.end <= self._now:
            return
        waited = found.end - self._now
        if found.step == CARRIED:
            path = step.token[1]
            self.run.late[path] = self.run.late.get(path, 0) + waited
            self.run.waited.append((path, self._last))
            self._last = CARRIED - len(self.run.waited)
            exposed = self.run.totals.exposed
            exposed[found.lane] = exposed.get(found.lane, 0) + waited
        else:
            self._expose(found.step, found.lane, waited)
            self._last = found.step
        self._now = found.end

    def _expose(self, number: int, lane: str, ticks: int) -> None:
        self.run.exposed[number] += ticks
        exposed = self.run.totals.exposed
        exposed[lane] = exposed.get(lane, 0) + ticks

    def _inner(self, number: int, step: ProgramStep) -> None:
        if isinstance(step, LoopStep) and step.body is not None:
            runs = self._iterations(step, step.body, number)
            counted = runs
        elif isinstance(step, CallStep) and step.block is not None:
            run = self._simulation.run(step.block, (self._in_use(step.block), ()))
            counted = runs = [(run, 1)]
            self._after(run, self._now + run.duration, number)
        elif isinstance(step, BranchesStep) and step.blocks:
            runs = [(self._simulation.run(each, (self._in_use(each), ())), 0) for each in step.blocks]
            longest = max(range(len(runs)), key=lambda place: (runs[place][0].duration, -place))
            run = runs[longest][0]
            runs[longest] = run, 1
            counted = [(run, 1)]
            self._after(run, self._now + run.duration, number)
        else:
            return
        self.run.inner[number] = runs
        before = self._now
        for run, count in counted:
            self._now += run.duration * count
            self.run.totals.add(run.totals, count)
        self.run.ends[number] = self._now
        if self._now > before:
            self._last = number

    def _in_use(self, block: Block) -> tuple[tuple[Channel, int], ...]:
        """Until when links are in use that a block uses, from now on."""
        return tuple(
            (channel, end - self._now)
            for channel, end in sorted(self._free.items())
            if end > self._now and channel in block.channels
        )

    def _after(self, run: BlockRun, end: int, number: int) -> None:
        """Take over the links that are still in use at the `end` of a run."""
        for channel in run.block.channels:
            if channel in run.free:
                self._free[channel], self._user[channel] = end + run.free[channel], number

    def _iterations(self, step: LoopStep, body: Block, number: int) -> list[tuple[BlockRun, int]]:
        """The runs of a loop's body, each with how often it runs."""
        left = 1 if step.count is None else step.count
        carried = tuple(
            (path, max(0, found.end - self._now), found.lane)
            for path, token in sorted(step.enters.items())
            if (found := self._under_way.get(token)) is not None
        )
        state: State = self._in_use(body), carried
        runs: list[tuple[BlockRun, int]] = []
        passed = 0
        while left:
            run = self._simulation.run(body, state)
            after = _after_iteration(run)
            count = left if after == state or len(runs) == MAX_ITERATIONS else 1
            runs.append((run, count))
            passed += run.duration * count
            left -= count
            state = after
        if runs:
            last = runs[-1][0]
            self._after(last, self._now + passed, number)
            for path, (rest, lane) in last.leaves.items():
                self._under_way[number, path] = UnderWay(self._now + passed + rest, lane, number)
        return runs


def _after_iteration(run: BlockRun) -> State:
    """The state in which the next iteration begins."""
    free = tuple(sorted(run.free.items()))
    carried = tuple((path, rest, lane) for path, (rest, lane) in sorted(run.leaves.items()))
    return free, carried


def ticks_of(seconds: float | None) -> int:
    """Whole ticks; none for what takes an unknown time."""
    return 0 if seconds is None else round(seconds * TICKS)


def lane_ticks(ticks: Mapping[str, int]) -> tuple[tuple[str, float], ...]:
    """Ticks by lane as seconds, in the order of their first use."""
    return tuple((lane, count / TICKS) for lane, count in ticks.items())
