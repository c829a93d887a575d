"""One round on its links: the ways of its messages, and how long they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.messages import Messages
from shardviz.hardware.queues import busiest_transfer, store_and_forward
from shardviz.hardware.routes import legs, link_loads, links_at, loads_of_legs
from shardviz.hardware.topology import Switch, Topology, Torus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives.schedule import Ints
    from shardviz.hardware.routes import RouteSegment

    Reals = NDArray[np.floating[Any]]


MAX_WORK = 80_000_000
"""Hops, or what takes as long, that are followed through the queues: about five seconds."""
LINKS_A_STEP = 2**13
"""Links that can be looked at in the time that a step takes whatever their number."""
HOPS_A_LEG = 4
"""Hops that can be followed in the time that it takes to make a leg of a message ready."""
LINKS_A_HOP = 2**4
"""Links that can be looked at in the time that a hop takes."""


@dataclass(frozen=True)
class Delay:
    """The time of a round on any wire: `hops` latencies and `bytes` bytes, one after the other.

    `waiting` messages have to wait for a link, unless bandwidth is endless.
    """

    hops: int
    bytes: int
    waiting: int


@dataclass(frozen=True)
class RoundTime:
    """Seconds that a round takes on one wire, and the messages that must wait for a link on their ways.

    Where the queues would take too long to follow, `seconds` is a lower bound and `waiting` None.
    """

    seconds: float
    waiting: int | None

    @property
    def exact(self) -> bool:
        return self.waiting is not None


@dataclass(frozen=True)
class RoundRouting:
    """The messages of one round on a topology, merged.

    `hops` are those of each message (one through a switch), `loads` the bytes on each link. `delay` is the
    time in closed form where there is one, None where only the queues can tell.
    """

    messages: Messages
    topology: Topology
    legs: tuple[RouteSegment, ...]
    hops: Ints
    loads: Ints
    delay: Delay | None

    @classmethod
    def of(cls, messages: Messages, topology: Topology) -> RoundRouting:
        messages = messages.merged()
        src, dst, sizes = messages.src, messages.dst, messages.bytes
        if isinstance(topology, Switch):
            loads = link_loads(topology, src, dst, sizes)
            hops = np.ones_like(src)
            through = Delay(min(1, len(src)), *busiest_transfer(messages))
            return cls(messages, topology, (), hops, loads, through)
        assert isinstance(topology, Torus)
        ways = legs(topology, src, dst)
        loads = loads_of_legs(topology, ways, sizes)
        hops = sum((abs(leg.hops) for leg in ways), np.zeros_like(src))
        most = int(hops.max(initial=0))
        delay: Delay | None = None
        if most <= 1:
            waiting = int(np.count_nonzero(sizes) - np.count_nonzero(loads))
            delay = Delay(most, int(loads.max(initial=0)), waiting)
        elif not sizes.any() or _in_step(topology, ways, sizes):
            delay = Delay(most, most * int(sizes[0]), 0)
        return cls(messages, topology, ways, hops, loads, delay)

    def outcome(self, wire: LinkSpec, unit: float = 1.0, work: float = MAX_WORK) -> RoundTime:
        """The time of the round on a wire when messages have `unit` times their bytes.

        Queues that are more than `work` are not followed.
        """
        if wire.bandwidth == math.inf:
            return RoundTime(int(self.hops.max(initial=0)) * wire.latency, 0)
        if self.delay is not None:
            seconds = self.delay.hops * wire.latency + self.delay.bytes * unit / wire.bandwidth
            return RoundTime(seconds, self.delay.waiting)
        if self.work(wire, unit) > work:
            return RoundTime(self._least(wire, unit), None)
        sizes: Reals = self.messages.bytes * unit
        assert isinstance(self.topology, Torus)
        full = sizes > 0
        arrived, waited = store_and_forward(
            self.topology, tuple(leg.only(full) for leg in self.legs), sizes[full], wire
        )
        empty = int(self.hops[~full].max(initial=0)) * wire.latency
        return RoundTime(max(float(arrived.max()), empty), int(waited.sum()))

    def work(self, wire: LinkSpec, unit: float = 1.0) -> float:
        """The work of following the queues, in hops: a step of them looks at every link."""
        if self.delay is not None or wire.bandwidth == math.inf:
            return 0.0
        a_step = (self.topology.links + LINKS_A_STEP) / LINKS_A_HOP
        ready = HOPS_A_LEG * len(self.messages) * len(self.legs)
        return ready + int(self.hops.sum()) + self._steps(wire, unit) * a_step

    def _steps(self, wire: LinkSpec, unit: float) -> float:
        """About how many steps the queues take: one a window, and one for every turn of the busiest link."""
        sizes = self.messages.bytes[self.messages.bytes > 0]
        shortest = float(sizes.min()) * unit
        windows = self._least(wire, unit) / wire.seconds(shortest)
        turns = int(self.loads.max()) * unit / shortest
        return min(int(self.hops.sum()), windows + turns)

    def _least(self, wire: LinkSpec, unit: float) -> float:
        """Seconds that the round takes at least: for each message alone, and for the busiest link."""
        sizes: Reals = self.messages.bytes * unit
        alone = self.hops * (wire.latency + sizes / wire.bandwidth)
        return max(float(alone.max()), wire.seconds(int(self.loads.max()) * unit))


def _in_step(torus: Torus, ways: tuple[RouteSegment, ...], sizes: Ints) -> bool:
    """The messages never meet since all are alike, move along one axis, and begin on other links.

    Then they are all on their k-th links at the same time, and two that share one would have begun on the
    same link.
    """
    moves = np.array([leg.hops != 0 for leg in ways])
    if (sizes != sizes[0]).any() or (moves.sum(axis=0) > 1).any():
        return False
    first = np.choose(moves.argmax(axis=0), [links_at(torus, leg, 0) for leg in ways])
    return int(np.bincount(first).max()) == 1
