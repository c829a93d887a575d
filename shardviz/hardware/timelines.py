"""A schedule on links: the load and time of every round, and the sums over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shardviz.collectives.schedule import Phase, Schedule, Sends
from shardviz.collectives.values import Ints, Values
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
MAX_UNEQUAL = 2**22
"""Sends that are added up of alike rounds whose chunks are not equal."""
MAX_NUMBERS = 2**22
"""Different rounds times devices of which the sums are kept."""


@dataclass(frozen=True)
class Timeline:
    """The rounds of `schedule` on a topology, each one begun when the one before is over.

    `chunk_bytes` are the bytes of every chunk, or an array with those of each. `timeline[n - 1]` is round n,
    worked out when it is asked for, without those before it. The sums over all rounds look at alike rounds
    once; where their chunks are not equal and there are too many to add up, every chunk counts as the largest
    there. On a ring, where every round moves every chunk, that is how long they take.

    Rounds raise `IndexError`, sums `QuestionError` where a schedule is too long to add up.
    """

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
        return chunks_of_member(self.schedule)

    def __getitem__(self, index: int) -> RoundLoad:
        if not 0 <= index < len(self):
            raise IndexError(index)
        phase, within = self.schedule.phase(index + 1)
        # The load of a round does not depend on its number where all of its phase are alike.
        first = index - within if self._repeats(phase) else index
        routing = RoundRouting.of(self._messages(phase.sends(within)), self.topology)
        if first not in self._followed:
            self._followed[first] = routing.time(self.link_spec)
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
        """Bytes that each device sends in a round, which count from 1; no link is looked at."""
        load = self._messages(self.schedule.round(number))
        return sums(load.src, load.bytes, self.topology.devices)

    def link_bytes(self, number: int) -> Ints:
        """Bytes on every directed link of the topology in a round, which count from 1."""
        load = self._messages(self.schedule.round(number))
        return link_loads(self.topology, load.src, load.dst, load.bytes)

    @cached_property
    def device_bytes(self) -> int:
        """The most that one device sends over all rounds."""
        sent = np.zeros(self.topology.devices, dtype=np.int64)
        for _, load, count in self.different_rounds():
            sent += count * sums(load.src, load.bytes, self.topology.devices)
        return int(sent.max(initial=0))

    @property
    def busiest_bytes(self) -> int:
        """Bytes that the busiest link carries over all rounds."""
        return self._totals[1]

    @property
    def seconds(self) -> float:
        """Seconds that all rounds take; a lower bound where not `exact`."""
        return self._totals[0].seconds

    @property
    def waiting(self) -> int | None:
        """Messages that had to wait for a link in any round; None where not `exact`."""
        return self._totals[0].waiting

    @property
    def exact(self) -> bool:
        """Every round's queues were followed."""
        return self._totals[0].exact

    @cached_property
    def _totals(self) -> tuple[RoundTime, int]:
        """The time of all rounds, and the bytes on the busiest link."""
        loads = np.zeros(self.topology.links, dtype=np.int64)
        seconds, waiting = 0.0, 0
        exact, left = True, float(QUEUE_WORK)
        before: tuple[RoundRouting, RoundTime] | None = None
        for index, load, count in self.different_rounds():
            routing = RoundRouting.of(load, self.topology)
            loads += count * routing.loads
            needed = routing.work(self.link_spec)
            if before and needed and routing.messages.same(before[0].messages):
                # A reduce-scatter and the all-gather after it may send the same.
                outcome, needed = before[1], 0.0
            elif needed > left or index not in self._followed:
                outcome = routing.time(self.link_spec, work=left)
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
        return self.longer_than(MAX_WORK)

    def longer_than(self, work: int) -> str:
        """The reason why adding up the rounds takes more than `work`, as a clause; empty where it is not."""
        flat = self.topology.flat
        dims = flat.dims if isinstance(flat, Torus) else ()
        numbers = 1 + sum(size > 1 for size in dims)
        for phase in self.schedule.phases:
            # A pipeline is fullest in the middle; all else is as full as at one of its ends.
            looked_at = {0} if phase.alike else {0, phase.rounds // 2, phase.rounds - 1}
            sends = max(len(phase.sends(within)) for within in looked_at)
            once = self._counts_once(phase, sends)
            rounds = 1 if once else phase.rounds
            work -= rounds * (sends * numbers + self.topology.links + ROUND_WORK)
            if work < 0:
                many = f"rounds of {plural(sends, 'send')} along {plural(numbers - 1, 'axis', 'axes')}"
                if not once:
                    many = f"{rounds:,} different rounds of {plural(sends, 'send')}"
                return f"{many} are too many to add up"
        return ""

    def different_rounds(self) -> Iterator[tuple[int, Messages, int]]:
        """The rounds that differ in their load: the index of the first, its messages, how many there are.

        Rounds that only count as alike have a negative index.
        """
        if self.too_long:
            raise QuestionError(self.too_long, "look at single rounds, or use a smaller group")
        begin = 0
        for phase in self.schedule.phases:
            first = phase.sends(0)
            if self._repeats(phase):
                yield begin, self._messages(first), phase.rounds
            elif self._counts_once(phase, len(first)):
                largest = int(np.max(self.chunk_bytes))
                yield -1 - begin, messages(first, self.schedule.chunks, largest), phase.rounds
            else:
                for within in range(phase.rounds):
                    yield begin + within, self._messages(phase.sends(within)), 1
            begin += phase.rounds

    def _counts_once(self, phase: Phase, sends: int) -> bool:
        """The sums take the first round of a phase, with so many sends, for all of its rounds."""
        many = phase.rounds > 1 and phase.rounds * sends > MAX_UNEQUAL
        return self._repeats(phase) or (phase.alike and many)

    def _repeats(self, phase: Phase) -> bool:
        return phase.alike and isinstance(self.chunk_bytes, int)

    def _messages(self, sends: Sends) -> Messages:
        return messages(sends, self.schedule.chunks, self.chunk_bytes)


def timeline(
    schedule: Schedule, chunk_bytes: int | Ints, topology: Topology, link_spec: LinkSpec
) -> Timeline:
    """The timeline of a schedule whose chunks have `chunk_bytes` bytes (one number, or one for each chunk).

    Raises `QuestionError` for a topology of another number of devices, and for sizes that are none.
    """
    members = schedule.pattern.group_size
    if topology.devices != members:
        problem = f"a {topology} has {plural(topology.devices, 'device')}, but the group has {members:,}"
        raise QuestionError(problem, "use a topology of as many devices")
    sizes = np.asarray(chunk_bytes)
    if sizes.shape not in ((), (schedule.chunks,)) or sizes.dtype.kind not in "iu":
        raise QuestionError(
            f"sizes of shape {sizes.shape} and type {sizes.dtype} do not fit "
            f"{plural(schedule.chunks, 'chunk')}",
            "give one whole number of bytes, or one for each chunk",
        )
    if (sizes < 0).any():
        raise QuestionError(f"a chunk of {int(sizes.min())} bytes does not exist", "sizes are 0 or more")
    if sizes.ndim == 0 or (sizes == sizes[:1]).all():
        return Timeline(schedule, int(sizes.flat[0]), topology, link_spec)
    return Timeline(schedule, sizes.astype(np.int64), topology, link_spec)


def chunks_of_member(schedule: Schedule) -> int:
    """The number of chunks into which the larger of a member's operand and result is cut."""
    is_of_one = schedule.pattern.kind in ("all_to_all", "permute")
    return schedule.chunks // schedule.pattern.group_size if is_of_one else schedule.chunks


@dataclass(frozen=True)
class RoundLoad:
    """Round `number` of a group, in the phase named `phase`.

    `messages` counts pairs of devices, `bytes` what the whole group sends, `device_bytes` the most that one
    device sends, `hops` the links that all messages cross (a switch is one hop). `busiest_link` leads from a
    device to a device (or to or from the switch, whose number is that of devices) and carries
    `busiest_bytes`; None where nothing is sent.

    `seconds` last until the last message is there; `waiting` messages had to wait for a link. Where the
    queues would take too long to follow, `exact` is False, `seconds` a lower bound, and `waiting` None.
    """

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
    """The running sums of a timeline; a query costs the same for every round.

    Raises `QuestionError` where the rounds are too many to add up.
    """

    def __init__(self, timeline: Timeline) -> None:
        devices = timeline.topology.devices
        counts: list[int] = []
        sent: list[Ints] = []
        seconds: list[float] = []
        for index, load, count in timeline.different_rounds():
            if (len(counts) + 1) * devices > MAX_NUMBERS:
                raise QuestionError(
                    f"the rounds of {timeline.algorithm} over {devices:,} devices are too many to "
                    "add up one by one",
                    "use a smaller group",
                )
            took = timeline[index if index >= 0 else -1 - index].seconds
            counts.append(count)
            sent.append(sums(load.src, load.bytes, devices))
            seconds.append(took)
        self._begins: Ints = np.cumsum([0, *counts])
        """The rounds before each run of alike rounds, and all of them."""
        self._sent = _sums_by_run(np.array(sent, np.int64), devices, counts)
        self._seconds = _sums_by_run(np.array(seconds), 1, counts)

    def bytes(self, number: int) -> int:
        """The most bytes that one device has sent in rounds 1 to `number`."""
        return int(self._until(self._sent, number).max(initial=0))

    def seconds(self, number: int) -> float:
        """The seconds of rounds 1 to `number`."""
        return float(self._until(self._seconds, number)[0])

    def _until(self, sums: tuple[Values, Values], number: int) -> Values:
        of_round, before = sums
        run = int(self._begins.searchsorted(number, side="right")) - 1
        found: Values = before[run]
        return found if run == len(of_round) else found + (number - self._begins[run]) * of_round[run]


def _sums_by_run(of_round: Values, devices: int, counts: Sequence[int]) -> tuple[Values, Values]:
    """Of each run of alike rounds the numbers of one round, and the sums before it; last, those of all."""
    of_round = of_round.reshape(len(counts), devices)
    total = np.cumsum(np.reshape(counts, (-1, 1)) * of_round, axis=0)
    return of_round, np.concatenate((np.zeros_like(of_round, shape=(1, devices)), total))
