"""A schedule on links: what every round loads and how long it takes, and what all of them come to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.loads import link_loads
from shardviz.hardware.messages import messages, sums
from shardviz.hardware.round_load import RoundLoad
from shardviz.hardware.topology import Topology
from shardviz.hardware.trip import Outcome, Trip
from shardviz.hardware.wire import Wire

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives.schedule import Phase, Schedule, Sends
    from shardviz.hardware.messages import Messages

    Ints = NDArray[np.int64]

MAX_SENDS = 2**26
"""More sends are not added up one by one over the rounds of a schedule."""
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

    @property
    def device_bytes(self) -> int:
        """The most that one device sends over all rounds."""
        return int(self._volume[0].max(initial=0))

    @property
    def busiest_bytes(self) -> int:
        """What the busiest link carries over all rounds."""
        return int(self._volume[1].max(initial=0))

    @property
    def seconds(self) -> float:
        """How long all rounds take; a lower bound where not `exact`."""
        return self._outcome.seconds

    @property
    def waiting(self) -> int | None:
        """How many messages had to wait for a link in any round; None where not `exact`."""
        return self._outcome.waiting

    @property
    def exact(self) -> bool:
        """Whether the queues of every round were followed."""
        return self._outcome.exact

    @cached_property
    def _volume(self) -> tuple[Ints, Ints]:
        """Bytes sent by every device and carried by every link."""
        import numpy as np

        by_device = np.zeros(self.topology.devices, dtype=np.int64)
        by_link = np.zeros(self.topology.links, dtype=np.int64)
        for _, load, count in self.different_rounds():
            by_device += count * sums(load.src, load.bytes, self.topology.devices)
            by_link += count * link_loads(self.topology, load.src, load.dst, load.bytes)
        return by_device, by_link

    @cached_property
    def _outcome(self) -> Outcome:
        seconds, waiting = 0.0, 0
        exact = True
        for index, load, count in self.different_rounds():
            if index not in self._followed:
                self._followed[index] = Trip.of(load, self.topology).outcome(self.wire)
            outcome = self._followed[index]
            seconds += count * outcome.seconds
            waiting += count * (outcome.waiting or 0)
            exact &= outcome.exact
        return Outcome(seconds, waiting if exact else None)

    @property
    def too_long(self) -> str:
        """Why the rounds cannot be added up, as a clause; empty where they can."""
        for phase in self.schedule.phases:
            # A pipeline is fullest in the middle; all else is as full as at one of its ends.
            looked_at = {0, phase.rounds // 2, phase.rounds - 1}
            sends = max(len(phase.sends(within)) for within in looked_at)
            if not self._counts_once(phase, sends) and phase.rounds * sends > MAX_SENDS:
                return f"{phase.rounds:,} different rounds of {sends:,} sends are too many to add up"
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
            f"a {topology} has {topology.devices:,} devices, but the group has {members:,}",
            "use a topology of as many devices",
        )
    sizes = np.asarray(chunk_bytes)
    if sizes.shape not in ((), (schedule.chunks,)) or sizes.dtype.kind not in "iu":
        raise QuestionError(
            f"sizes of shape {sizes.shape} and type {sizes.dtype} do not fit {schedule.chunks:,} chunks",
            "give one whole number of bytes, or one for each chunk",
        )
    if (sizes < 0).any():
        raise QuestionError(f"a chunk of {int(sizes.min())} bytes does not exist", "sizes are 0 or more")
    if sizes.ndim == 0 or (sizes == sizes[:1]).all():
        return Timeline(schedule, int(sizes.flat[0]), topology, wire)
    return Timeline(schedule, sizes.astype(np.int64), topology, wire)
