"""A schedule on links: the load and time of every round, and their sums; all algorithms compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from shardviz.collectives.algorithms import ALGORITHMS, candidates, schedule_for
from shardviz.collectives.schedule import Pattern, Phase, Schedule, Sends
from shardviz.collectives.values import Ints
from shardviz.errors import QuestionError, plural
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.round_routing import RoundRouting, RoundTime
from shardviz.hardware.routes import Messages, link_loads, messages, sums
from shardviz.hardware.topology import Topology, Torus

MAX_WORK = 200_000_000
"""Numbers of sends and links that are looked at to add up all rounds of a schedule: about two seconds."""
ROUND_WORK = 2_000
"""Numbers that can be looked at in the time that any round takes, even one that sends little."""
QUEUE_WORK = 80_000_000
"""Hops, or what takes as long, that are followed through the queues of all rounds of a schedule."""
MAX_UNEQUAL = 4096
"""Chunks that are not equal; more of them all count as the largest. On a ring, where every round moves every
chunk, that is how long they take."""
MAX_NUMBERS = 2**22
"""Different rounds times devices of which the sums are kept."""


@dataclass(frozen=True)
class Timeline:
    """The rounds of `schedule` on a topology, each one begun when the one before is over.

    `chunk_bytes` are the bytes of every chunk, or an array with those of each. `timeline[n - 1]` is round n,
    worked out without those before it; the sums over all look at alike rounds once. A collective takes its
    `start` before the first round. Rounds raise `IndexError`, sums `QuestionError` where a schedule is too
    long to add up."""

    schedule: Schedule
    chunk_bytes: int | Ints
    topology: Topology
    link_spec: LinkSpec
    _followed: dict[int, RoundTime] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.schedule.rounds

    @property
    def algorithm(self) -> str:
        return self.schedule.algorithm

    @property
    def rounds(self) -> int:
        return self.schedule.rounds

    @property
    def chunks(self) -> int:
        """Chunks into which the larger of a member's operand and result is cut."""
        is_of_one = self.schedule.pattern.kind in ("all_to_all", "permute")
        return self.schedule.chunks // (self.schedule.pattern.group_size if is_of_one else 1)

    def __getitem__(self, index: int) -> RoundLoad:
        if not 0 <= index < len(self):
            raise IndexError(index)
        phase, within = self.schedule.phase(index + 1)
        # The load of a round does not depend on its number where all of its phase are alike.
        first = index - within if self._repeats(phase) else index
        routing = RoundRouting(self._messages(phase.sends(within)), self.topology, self.link_spec)
        if first not in self._followed:
            self._followed[first] = routing.time()
        outcome = self._followed[first]
        sent = sums(routing.messages.src, routing.messages.bytes, self.topology.devices)
        busiest = int(routing.loads.max(initial=0))
        return RoundLoad(
            number=index + 1,
            phase=phase.name,
            messages=len(routing.messages),
            bytes=int(sent.sum()),
            device_bytes=int(sent.max()),
            busiest_link=self.topology.ends(int(routing.loads.argmax())) if busiest else None,
            busiest_bytes=busiest,
            hops=int(routing.hops.sum()),
            seconds=outcome.seconds,
            waiting=outcome.waiting,
        )

    def sent_bytes(self, number: int) -> Ints:
        """Bytes that each device sends in a round, from 1 on; no link is looked at."""
        load = self._messages(self.schedule.round(number))
        return sums(load.src, load.bytes, self.topology.devices)

    def link_bytes(self, number: int) -> Ints:
        """Bytes on every directed link of the topology in a round, from 1 on."""
        load = self._messages(self.schedule.round(number))
        return link_loads(self.topology, load.src, load.dst, load.bytes)

    @cached_property
    def device_bytes(self) -> int:
        sent = np.zeros(self.topology.devices, dtype=np.int64)
        for _, load, count in self.different_rounds():
            sent += count * sums(load.src, load.bytes, self.topology.devices)
        return int(sent.max(initial=0))

    @property
    def busiest_bytes(self) -> int:
        return self._totals[1]

    @property
    def start(self) -> float:
        return self.link_spec.start if self.rounds else 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the start and of all rounds; a lower bound where not `exact`."""
        return self.start + self._totals[0].seconds

    @property
    def waiting(self) -> int | None:
        return self._totals[0].waiting

    @property
    def exact(self) -> bool:
        return self._totals[0].exact

    @cached_property
    def _totals(self) -> tuple[RoundTime, int]:
        loads = np.zeros(self.topology.links, dtype=np.int64)
        seconds, waiting = 0.0, 0
        exact, left = True, float(QUEUE_WORK)
        before: tuple[RoundRouting, RoundTime] | None = None
        for index, load, count in self.different_rounds():
            routing = RoundRouting(load, self.topology, self.link_spec)
            loads += count * routing.loads
            needed = routing.work
            if before and needed and routing.messages.same(before[0].messages):
                # A reduce-scatter and the all-gather after it may send the same.
                outcome, needed = before[1], 0.0
            elif needed > left or index not in self._followed:
                outcome = routing.time(left)
                if outcome.exact:
                    self._followed[index] = outcome
            else:
                outcome = self._followed[index]
            # After one round that is not followed, the others need not be.
            left = left - needed if outcome.exact else 0.0
            before = routing, outcome
            seconds += count * outcome.seconds
            waiting += count * (outcome.waiting or 0)
            exact &= outcome.exact
        return RoundTime(seconds, waiting if exact else None), int(loads.max(initial=0))

    @cached_property
    def too_long(self) -> str:
        """The reason why the rounds cannot be added up, as a clause; empty where they can."""
        work = MAX_WORK
        flat = self.topology.flat
        dims = flat.dims if isinstance(flat, Torus) else ()
        numbers = 1 + sum(size > 1 for size in dims)
        for phase in self.schedule.phases:
            # A pipeline is fullest in the middle; all else is as full as at one of its ends.
            looked_at = {0} if phase.alike else {0, phase.rounds // 2, phase.rounds - 1}
            sends = max(len(phase.sends(within)) for within in looked_at)
            rounds = 1 if self._repeats(phase) else phase.rounds
            work -= rounds * (sends * numbers + self.topology.links + ROUND_WORK)
            if work < 0:
                many = f"rounds of {plural(sends, 'send')} along {plural(numbers - 1, 'axis', 'axes')}"
                if rounds > 1:
                    many = f"{rounds:,} different rounds of {plural(sends, 'send')}"
                return f"{many} are too many to add up"
        return ""

    def different_rounds(self) -> Iterator[tuple[int, Messages, int]]:
        """The rounds that differ in their load: the index of the first, its messages, how many there are."""
        if self.too_long:
            raise QuestionError(self.too_long, "look at single rounds, or use a smaller group")
        begin = 0
        for phase in self.schedule.phases:
            if self._repeats(phase):
                yield begin, self._messages(phase.sends(0)), phase.rounds
            else:
                for within in range(phase.rounds):
                    yield begin + within, self._messages(phase.sends(within)), 1
            begin += phase.rounds

    def _repeats(self, phase: Phase) -> bool:
        return phase.alike and isinstance(self.chunk_bytes, int)

    def _messages(self, sends: Sends) -> Messages:
        return messages(sends, self.schedule.chunks, self.chunk_bytes)


def timeline(
    schedule: Schedule, chunk_bytes: int | Ints, topology: Topology, link_spec: LinkSpec
) -> Timeline:
    """The timeline of a schedule whose chunks have `chunk_bytes` bytes: one number, or one for each."""
    sizes = np.asarray(chunk_bytes, np.int64)
    is_one = sizes.size > MAX_UNEQUAL or (sizes == sizes.flat[0]).all()
    return Timeline(schedule, int(sizes.max()) if is_one else sizes, topology, link_spec)


@dataclass(frozen=True)
class RoundLoad:
    """Round `number` of a group: `messages` counts pairs of devices, `bytes` what the whole group sends,
    `device_bytes` the most that one device sends, `hops` the links that all messages cross.

    `busiest_link` leads from a device to a device, or the switch, whose number is that of devices; None where
    nothing is sent. `seconds` last until the last message is there; `waiting` messages had to wait for a
    link. Where the queues would take too long to follow, `seconds` is a lower bound and `waiting` None."""

    number: int
    phase: str
    messages: int
    bytes: int
    device_bytes: int
    busiest_link: tuple[int, int] | None
    busiest_bytes: int
    hops: int
    seconds: float
    waiting: int | None

    @property
    def exact(self) -> bool:
        return self.waiting is not None


class CumulativeCost:
    """The running sums of a timeline. Raises `QuestionError` where the rounds are too many to add up."""

    def __init__(self, timeline: Timeline) -> None:
        devices = timeline.topology.devices
        counts: list[int] = []
        sent: list[Ints] = []
        seconds: list[float] = []
        for index, load, count in timeline.different_rounds():
            if (len(counts) + 1) * devices > MAX_NUMBERS:
                many = f"the rounds of {timeline.algorithm} over {devices:,} devices are too many"
                raise QuestionError(f"{many} to add up one by one", "use a smaller group")
            counts.append(count)
            sent.append(sums(load.src, load.bytes, devices))
            seconds.append(timeline[index].seconds)
        self._start = timeline.start
        self._counts: Ints = np.array(counts, np.int64)
        self._sent: Ints = np.array(sent, np.int64).reshape(-1, devices)
        self._seconds = np.array(seconds)

    def bytes(self, number: int) -> int:
        return int((self._runs(number) @ self._sent).max(initial=0))

    def seconds(self, number: int) -> float:
        """The seconds of the start and of rounds 1 to `number`; of 0 the start."""
        # Added up one after the other, as those of all rounds are.
        return self._start + float(np.cumsum([0.0, *(self._runs(number) * self._seconds)])[-1])

    def _runs(self, number: int) -> Ints:
        """The rounds up to that one of each run of alike rounds."""
        runs: Ints = np.clip(number - (np.cumsum(self._counts) - self._counts), 0, self._counts)
        return runs


TIED = 1e-6
"""Times that differ relatively by less count as equal: queues are followed on clocks of whole ticks."""
PIECES = tuple(2**power for power in range(8))
"""Numbers of pieces that are tried for an algorithm with a pipeline."""
MAX_PIPELINED = 64
"""Members of a group beyond which an algorithm cuts data into its usual pieces."""

ChunkBytes: TypeAlias = "Callable[[Schedule], int | Ints]"


class NotCompared(NamedTuple):
    """An algorithm that knows a pattern's kind, and why it is not among the timelines."""

    algorithm: str
    reason: str


def comparison(
    pattern: Pattern, chunk_bytes: ChunkBytes, topology: Topology, link_spec: LinkSpec
) -> tuple[Timeline | NotCompared, ...]:
    """A timeline for every algorithm that knows the pattern's kind, in as many pieces as take the least
    time."""
    rows: list[Timeline | NotCompared] = []
    for name, schedule in candidates(pattern).items():
        if isinstance(schedule, str):
            rows.append(NotCompared(name, schedule))
            continue
        line = timeline(schedule, chunk_bytes(schedule), topology, link_spec)
        line = in_best_pieces(line, chunk_bytes)
        rows.append(NotCompared(name, line.too_long) if line.too_long else line)
    return tuple(rows)


def in_best_pieces(line: Timeline, chunk_bytes: ChunkBytes) -> Timeline:
    """The timeline of the same schedule in as many pieces, none empty, as take the least time on its links;
    the same object where its algorithm has no pipeline, or no other number is faster."""
    best, least = line, math.inf
    name, pattern = line.algorithm, line.schedule.pattern
    if line.too_long or not ALGORITHMS[name].pipelined or not 1 < pattern.group_size <= MAX_PIPELINED:
        return line
    for pieces in PIECES:
        try:
            schedule = schedule_for(name, pattern, pieces)
        except QuestionError:
            continue
        other = timeline(schedule, chunk_bytes(schedule), line.topology, line.link_spec)
        if schedule.chunks == line.schedule.chunks or other.too_long or not np.min(other.chunk_bytes):
            continue
        if not other.exact or other.seconds > least:
            # More pieces save time on their way and cost latencies: beyond the best number only these.
            break
        least = other.seconds
        if least < best.seconds * (1 - TIED):
            best = other
    return best


def is_cut(schedule: Schedule) -> bool:
    """The schedule's algorithm has a pipeline, and this one has other chunks than of itself."""
    algorithm = ALGORITHMS[schedule.algorithm]
    return algorithm.pipelined and algorithm.schedule(schedule.pattern).chunks != schedule.chunks


def fastest(rows: Sequence[Timeline | NotCompared]) -> tuple[str, ...]:
    """The algorithms that take the least time; none where another's lower bound is below it."""
    able = [row for row in rows if isinstance(row, Timeline)]
    least = min((row.seconds for row in able if row.exact), default=math.inf)
    if any(row.seconds < least * (1 - TIED) for row in able):
        return ()
    return tuple(row.algorithm for row in able if row.exact and row.seconds <= least * (1 + TIED))
