"""The time of one round on its links: in closed form where there is one, else by its queues, exact to the
message.

Every link sends one message at a time, first in, first out; of those that arrive at the same time the one
that stands first in the round goes first. On a torus, messages are stored and forwarded: one is at the next
device a latency after its last byte. What is sent from time t on arrives at t + latency + (shortest message)
/ bandwidth or later, so all that happens within a window of that length is worked out at once, with
arrays."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shardviz.collectives.values import Bools, Ints, Reals
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.routes import (
    Messages,
    RouteSegment,
    link_loads,
    links_at,
    links_in_order,
    messages_by_level,
    route_segments,
    segment_loads,
)
from shardviz.hardware.topology import Hierarchy, Switch, Topology, Torus

MAX_WORK = 80_000_000
"""Hops, or what takes as long, that are followed through the queues: about five seconds."""
# What takes as long: a step and a look at so many links, a segment of a route and so many hops, a hop and a
# look at so many links.
LINKS_A_STEP, HOPS_A_SEGMENT, LINKS_A_HOP = 2**13, 4, 2**4
_TIME_BITS = 60
_FINEST = 20
"""Times count in 2**-20 of the time of a byte, coarser where numbers would not fit into 64 bits."""
_NEVER = 2**62


class RoundTime(NamedTuple):
    """Seconds that a round takes, and the messages that must wait for a link. Where the queues would take too
    long to follow, `seconds` is a lower bound and `waiting` None."""

    seconds: float
    waiting: int | None

    @property
    def exact(self) -> bool:
        return self.waiting is not None


class RoundRouting:
    """The `messages` of one round on the links of a topology, merged.

    `hops` are those of each message, `loads` the bytes on each link. `delay` is the time in closed form: so
    many latencies and so many bytes, one after the other, and the messages that wait; None where only the
    queues can tell. The `levels` of a hierarchy work at the same time, and a round lasts as long as the
    longest."""

    def __init__(self, messages: Messages, topology: Topology, link_spec: LinkSpec) -> None:
        self.messages = messages = messages.merged()
        self.topology, self.link_spec = topology, link_spec
        self.levels: list[RoundRouting] = []
        self.delay: tuple[int, int, int] | None = None
        src, dst, sizes = messages.src, messages.dst, messages.bytes
        if isinstance(topology, Hierarchy):
            by_level = messages_by_level(topology.levels, messages)
            self.levels = [RoundRouting(own, level.topology, level.spec) for level, own in by_level]
            self.hops: Ints = np.concatenate([level.hops for level in self.levels])
            self.loads: Ints = np.concatenate([level.loads for level in self.levels])
            return
        if isinstance(topology, Switch):
            self.hops, self.loads = np.ones_like(src), link_loads(topology, src, dst, sizes)
            self.delay = (min(1, len(src)), *busiest_transfer(messages))
            return
        self._segments = segments = route_segments(topology, src, dst)
        self.loads = segment_loads(topology, segments, sizes)
        self.hops = sum((abs(part.hops) for part in segments), np.zeros_like(src))
        most = int(self.hops.max(initial=0))
        if most <= 1:
            waiting = int(np.count_nonzero(sizes) - np.count_nonzero(self.loads))
            self.delay = most, int(self.loads.max(initial=0)), waiting
        elif not sizes.any() or _in_step(topology, segments, sizes):
            self.delay = most, most * int(sizes[0]), 0

    def time(self, work: float = MAX_WORK) -> RoundTime:
        latency, bandwidth = self.link_spec.latency, self.link_spec.bandwidth
        if self.levels:
            times = [level.time(work) for level in self.levels]
            waiting = sum(time.waiting or 0 for time in times)
            exact = all(time.exact for time in times)
            return RoundTime(max(time.seconds for time in times), waiting if exact else None)
        if bandwidth == math.inf:
            return RoundTime(int(self.hops.max(initial=0)) * latency, 0)
        if self.delay is not None:
            hops, bytes_, waiting = self.delay
            return RoundTime(hops * latency + bytes_ / bandwidth, waiting)
        if self.work > work:
            return RoundTime(self._least, None)
        assert isinstance(self.topology, Torus)
        full, segments = self.messages.bytes > 0, self._segments
        if not full.all():
            segments = route_segments(self.topology, self.messages.src[full], self.messages.dst[full])
        arrived, waited = store_and_forward(
            self.topology, segments, self.messages.bytes[full], self.link_spec
        )
        empty = int(self.hops[~full].max(initial=0)) * latency
        return RoundTime(max(float(arrived.max()), empty), int(waited.sum()))

    @cached_property
    def work(self) -> float:
        """The work of following the queues, in hops: a step of them looks at every link."""
        if self.levels:
            return sum(level.work for level in self.levels)
        if self.delay is not None or self.link_spec.bandwidth == math.inf:
            return 0.0
        # One step a window, and one for every turn of the busiest link.
        shortest = float(self.messages.bytes[self.messages.bytes > 0].min())
        turns = int(self.loads.max()) / shortest
        hops = int(self.hops.sum())
        steps = min(hops, self._least / self.link_spec.seconds(shortest) + turns)
        ready = HOPS_A_SEGMENT * len(self.messages) * len(self._segments)
        return ready + hops + steps * (self.topology.links + LINKS_A_STEP) / LINKS_A_HOP

    @property
    def _least(self) -> float:
        """Seconds that the round takes at least: for each message alone, and for the busiest link."""
        alone = self.hops * (self.link_spec.latency + self.messages.bytes / self.link_spec.bandwidth)
        return max(float(alone.max()), self.link_spec.seconds(int(self.loads.max())))


def _in_step(torus: Torus, segments: tuple[RouteSegment, ...], sizes: Ints) -> bool:
    """Return whether the messages never meet: all are alike, along one axis, and begin on other links."""
    moves = np.array([part.hops != 0 for part in segments])
    if (sizes != sizes[0]).any() or (moves.sum(axis=0) > 1).any():
        return False
    first = np.choose(moves.argmax(axis=0), [links_at(torus, part, 0) for part in segments])
    return int(np.bincount(first).max()) == 1


def store_and_forward(
    torus: Torus, segments: tuple[RouteSegment, ...], sizes: Ints, link_spec: LinkSpec
) -> tuple[Reals, Bools]:
    """The arrival of each message of one round, in seconds, and whether it had to wait. All are ready at time
    0, have `sizes` of 1 byte or more, and make at least one hop; the bandwidth is finite."""
    count = len(sizes)
    hops, route = links_in_order(torus, segments)
    ends = hops.cumsum()
    cursor = ends - hops
    link_bits, message_bits = int(torus.links).bit_length(), count.bit_length()
    # Whole numbers for times, so that what arrives at the same time does so in spite of rounding: the longest
    # time fits into 60 bits, and a window beside a link and a message.
    hop = link_spec.latency * link_spec.bandwidth
    longest, shortest_window = float(np.dot(hops, sizes + hop)), hop + float(sizes.min())
    window_bits = 62 - link_bits - message_bits - math.log2(shortest_window)
    ticks = 2.0 ** min(_FINEST, math.floor(min(_TIME_BITS - math.log2(longest), window_bits)))
    sending = np.maximum(1, np.rint(sizes * ticks)).astype(np.int64)
    latency = round(hop * ticks)
    window = latency + int(sending.min())
    one_a_window = latency == 0
    time_shift, link_shift = message_bits, message_bits + int(window).bit_length()
    message_mask = (1 << message_bits) - 1

    # Each link's queue is a linked list: `after` has a place for every message, one for the end of a
    # queue, and one for every link, which points to the head of its queue.
    end = count
    after = np.full(count + 1 + torus.links, end, dtype=np.int64)
    head = after[count + 1 :]
    tail = np.zeros(torus.links, dtype=np.int64)
    free = np.zeros(torus.links, dtype=np.int64)
    arrival = np.zeros(count + 1, dtype=np.int64)
    arrival[end] = _NEVER
    flying = np.arange(count)
    now = 0
    while now < _NEVER:
        horizon = now + window
        times = arrival[flying]
        late = times >= horizon
        if late.any():
            due, flying, times = flying[~late], flying[late], times[~late]
        else:
            due, flying = flying, flying[:0]
        if len(due):
            key = (route[cursor[due]] << link_shift) | ((times - now) << time_shift) | due
            key.sort()
            _enqueue(key & message_mask, key >> link_shift, after, head, tail)
        served = []
        start = np.maximum(arrival[head], free)
        links = np.flatnonzero(start < horizon)
        start = start[links]
        while len(links):
            sent = head[links]
            done = start + sending[sent]
            free[links] = done
            head[links] = following = after[sent]
            arrival[sent] = done + latency
            served.append(sent)
            if one_a_window:
                break
            start = np.maximum(arrival[following], done)
            again = start < horizon
            links, start = links[again], start[again]
        if served:
            onward = np.concatenate(served)
            cursor[onward] += 1
            onward = onward[cursor[onward] < ends[onward]]
            flying = np.concatenate((flying, onward)) if len(flying) else onward
        now = min(int(np.maximum(arrival[head], free).min()), int(arrival[flying].min(initial=_NEVER)))
    arrival = arrival[:count]
    seconds: Reals = arrival * (1 / (ticks * link_spec.bandwidth))
    return seconds, arrival > hops * (sending + latency)


def _enqueue(message: Ints, link: Ints, after: Ints, head: Ints, tail: Ints) -> None:
    """Append messages, ordered by link, to the queues of their links."""
    end = len(after) - len(head) - 1
    cut = np.flatnonzero(link[1:] != link[:-1])
    first, last = np.concatenate(([0], cut + 1)), np.concatenate((cut, [len(link) - 1]))
    after[message[:-1]] = message[1:]
    after[message[last]] = end
    queue = link[first]
    before = np.where(head[queue] == end, queue + end + 1, tail[queue])
    after[before] = message[first]
    tail[queue] = message[last]


def busiest_transfer(messages: Messages) -> tuple[int, int]:
    """The bytes that pass a switch one after the other until the last message is there, and the messages that
    wait.

    A device sends its messages in their order. Each begins to leave the switch when it begins to come in, or
    when its receiver's link becomes free, in that order. Both links are equally fast, so that the rest
    follows without a gap; all times are bytes. An empty message occupies no link and never waits."""
    full = np.flatnonzero(messages.bytes)
    src, dst, size = messages.src[full], messages.dst[full], messages.bytes[full]
    if not len(full):
        return 0, 0
    begin = np.empty_like(size)
    order = np.argsort(src, kind="stable")
    begin[order] = _before(size[order], src[order])
    order = np.lexsort((begin, dst))
    begin_in_order, size, dst = begin[order], size[order], dst[order]
    # Message k is out at S_k + max over j <= k of (begin_j - S_(j-1)), with S the running sum of the sizes
    # on its link. Ranks instead of times, shifted from link to link, keep that maximum within each link.
    sent_before = _before(size, dst)
    slack = begin_in_order - sent_before
    by_slack = np.argsort(slack)
    rank = np.empty_like(by_slack)
    rank[by_slack] = np.arange(len(slack))
    shift = np.cumsum(np.concatenate(([0], dst[1:] != dst[:-1]))) * len(slack)
    latest = slack[by_slack[np.maximum.accumulate(rank + shift) - shift]]
    leave = latest + sent_before
    waiting = (leave > begin_in_order) | (begin_in_order > 0)
    return int((leave + size).max()), int(np.count_nonzero(waiting))


def _before(size: Ints, link: Ints) -> Ints:
    """The sum of the sizes that stand before each on the same link; the links stand one after the other."""
    total = np.cumsum(size) - size
    new = np.concatenate(([True], link[1:] != link[:-1]))
    return total - np.maximum.accumulate(np.where(new, total, 0))
