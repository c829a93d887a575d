"""A schedule on links: what every round loads and how long it takes, and what all of them come to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural
from shardviz.hardware.loads import link_loads
from shardviz.hardware.messages import messages, sums
from shardviz.hardware.round_load import RoundLoad
from shardviz.hardware.topology import Topology, Torus
from shardviz.hardware.trip import Outcome, Trip
from shardviz.hardware.wire import Wire

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives.schedule import Phase, Schedule, Sends
    from shardviz.hardware.messages import Messages

    Ints = NDArray[np.int64]

MAX_WORK = 200_000_000
"""Numbers of sends and links that are looked at to add up all rounds of a schedule: about two seconds."""
ROUND_WORK = 2_000
"""Numbers that can be looked at in the time that a round takes however little it sends."""
QUEUE_WORK = 80_000_000
"""Hops, or what takes as long, that are followed through the queues of all rounds of a schedule."""
MAX_UNEQUAL = 2**22
"""Nor more of alike rounds, just because their chunks are not equal."""


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
    wire: Wire
    _followed: dict[int, Outcome] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.schedule.rounds

    def __getitem__(self, index: int) -> RoundLoad:
        if not 0 <= index < len(self):
            raise IndexError(index)
        phase, within = self.schedule.phase(index + 1)
        # The load of a round does not depend on its number where all of its phase are alike.
        first = index - within if self._repeats(phase) else index
        trip = Trip.of(self._messages(phase.sends(within)), self.topology)
        if first not in self._followed:
            self._followed[first] = trip.outcome(self.wire)
        outcome = self._followed[first]
        sent = sums(trip.messages.src, trip.messages.bytes, self.topology.devices)
        busiest = int(trip.loads.max(initial=0))
        return RoundLoad(
            number=index + 1,
            phase=phase.name,
            messages=len(trip.messages),
            bytes=int(sent.sum()),
            device_bytes=int(sent.max()),
            busiest_link=self.topology.ends(int(trip.loads.argmax())) if busiest else None,
            busiest_bytes=busiest,
            hops=int(trip.hops.sum()),
            seconds=outcome.seconds,
            waiting=outcome.waiting,
        )

    def link_bytes(self, number: int) -> Ints:
        """Bytes on every directed link of the topology in a round, which count from 1."""
        load = self._messages(self.schedule.round(number))
        return link_loads(self.topology, load.src, load.dst, load.bytes)

    @cached_property
    def device_bytes(self) -> int:
        """The most that one device sends over all rounds."""
        import numpy as np

        sent = np.zeros(self.topology.devices, dtype=np.int64)
        for _, load, count in self.different_rounds():
            sent += count * sums(load.src, load.bytes, self.topology.devices)
        return int(sent.max(initial=0))

    @property
    def busiest_bytes(self) -> int:
        """What the busiest link carries over all rounds."""
        return self._course[1]

    @property
    def seconds(self) -> float:
        """How long all rounds take; a lower bound where not `exact`."""
        return self._course[0].seconds

    @property
    def waiting(self) -> int | None:
        """How many messages had to wait for a link in any round; None where not `exact`."""
        return self._course[0].waiting

    @property
    def exact(self) -> bool:
        """Whether the queues of every round were followed."""
        return self._course[0].exact

    @cached_property
    def _course(self) -> tuple[Outcome, int]:
        """How long all rounds take, and the bytes on the busiest link."""
        import numpy as np

        loads = np.zeros(self.topology.links, dtype=np.int64)
        seconds, waiting = 0.0, 0
        exact, left = True, float(QUEUE_WORK)
        before: tuple[Trip, Outcome] | None = None
        for index, load, count in self.different_rounds():
            trip = Trip.of(load, self.topology)
            loads += count * trip.loads
            needed = trip.work(self.wire)
            if before and needed and trip.messages.same(before[0].messages):
                # A reduce-scatter and the all-gather after it may send the same.
                outcome, needed = before[1], 0.0
            elif needed > left or index not in self._followed:
                outcome = trip.outcome(self.wire, work=left)
                if outcome.exact:
                    self._followed[index] = outcome
            else:
                outcome = self._followed[index]
            # After one round that is not followed, the others need not be.
            left = left - needed if outcome.exact else 0.0
            before = trip, outcome
            seconds += count * outcome.seconds
            waiting += count * (outcome.waiting or 0)
            exact &= outcome.exact
        return Outcome(seconds, waiting if exact else None), int(loads.max(initial=0))

    @cached_property
    def too_long(self) -> str:
        """Why the rounds cannot be added up, as a clause; empty where they can."""
        return self.longer_than(MAX_WORK)

    def longer_than(self, work: int) -> str:
        """Why it is more than `work` to add up the rounds, as a clause; empty where it is not."""
        dims = self.topology.dims if isinstance(self.topology, Torus) else ()
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
        import numpy as np

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
        """Whether the sums take the first round of a phase, with so many sends, for all of its rounds."""
        many = phase.rounds > 1 and phase.rounds * sends > MAX_UNEQUAL
        return self._repeats(phase) or (phase.alike and many)

    def _repeats(self, phase: Phase) -> bool:
        return phase.alike and isinstance(self.chunk_bytes, int)

    def _messages(self, sends: Sends) -> Messages:
        return messages(sends, self.schedule.chunks, self.chunk_bytes)


def timeline(schedule: Schedule, chunk_bytes: int | Ints, topology: Topology, wire: Wire) -> Timeline:
    """What a schedule loads, whose chunks have `chunk_bytes` bytes each (one number, or one for each chunk).

    Raises `QuestionError` for a topology of another number of devices, and for sizes that are none.
    """
    import numpy as np

    members = schedule.pattern.group_size
    if topology.devices != members:
        raise QuestionError(
            f"a {topology} has {plural(topology.devices, 'device')}, but the group has {members:,}",
            "use a topology of as many devices",
        )
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
        return Timeline(schedule, int(sizes.flat[0]), topology, wire)
    return Timeline(schedule, sizes.astype(np.int64), topology, wire)
