"""The queues of one round, exact to the message: every link sends one message at a time.

On a torus, messages are stored and forwarded. A link is busy for bytes / bandwidth; the message is at the
next device one latency later, whole, and then queues for its next link. Queues are first in, first out, by
the time of arrival; of messages that arrive at the same time the one that stands first in the round goes
first. An empty message occupies no link and never waits. A switch has a queue at every device's link up and
link down.

What is sent from time t on arrives at t + latency + (shortest message) / bandwidth or later. So all
that happens at all links within a window of that length can be worked out at once, with arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shardviz.hardware.routes import links_at, next_links

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives.schedule import Bools, Ints
    from shardviz.hardware.links import LinkSpec
    from shardviz.hardware.messages import Messages
    from shardviz.hardware.routes import RouteSegment
    from shardviz.hardware.topology import Torus

    Reals = NDArray[np.floating[Any]]


_TIME_BITS = 60
_FINEST = 20
"""Times count in 2**-20 of the time of a byte, coarser where numbers would not fit into 64 bits."""
_NEVER = 2**62


@dataclass(frozen=True)
class Clock:
    """Whole numbers for times, so that what arrives at the same time does so in spite of rounding.

    `sending` are ticks for which each message occupies a link, `latency` ticks from its end to the arrival.
    """

    sending: Ints
    latency: int
    seconds_per_tick: float

    @classmethod
    def fit(cls, sizes: Reals, hops: Ints, wire: LinkSpec, window_bits: int) -> Clock:
        """A clock for messages of `sizes` bytes (above 0), whose window fits into `window_bits`."""
        latency = wire.latency * wire.bandwidth
        longest = float(np.dot(hops, sizes + latency))
        window = latency + float(sizes.min())
        fits = min(_TIME_BITS - math.log2(longest), window_bits - 1 - math.log2(window))
        scale = 2.0 ** min(_FINEST, math.floor(fits))
        sending = np.maximum(1, np.rint(sizes * scale)).astype(np.int64)
        return cls(sending, round(latency * scale), 1 / (scale * wire.bandwidth))


def store_and_forward(
    torus: Torus, legs: tuple[RouteSegment, ...], sizes: Reals, wire: LinkSpec
) -> tuple[Reals, Bools]:
    """When each message of one round is at its destination, in seconds, and whether it had to wait.

    All are ready at time 0. `sizes` are bytes, one number a message, above 0; every message makes at least
    one hop. The wire's bandwidth is finite.
    """
    count = len(sizes)
    ways = _Ways.of(torus, legs)
    link_bits, message_bits = int(torus.links).bit_length(), count.bit_length()
    clock = Clock.fit(sizes, ways.hops, wire, 63 - link_bits - message_bits)
    sending, latency = clock.sending, clock.latency
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
            key = (ways.link[due] << link_shift) | ((times - now) << time_shift) | due
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
            onward = ways.advance(np.concatenate(served))
            flying = np.concatenate((flying, onward)) if len(flying) else onward
        now = min(int(np.maximum(arrival[head], free).min()), int(arrival[flying].min(initial=_NEVER)))
    arrival = arrival[:count]
    seconds: Reals = arrival * clock.seconds_per_tick
    return seconds, arrival > ways.hops * (sending + latency)


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


@dataclass
class _Ways:
    """The place of every message: `link` is the one it waits for or is on, `last` the last one of its leg.

    `links` and `lasts` hold these for all legs that it has yet to go, row by row; `stage` counts the legs
    that it has begun, `stages` all of them.
    """

    link: Ints
    last: Ints
    links: Ints
    lasts: Ints
    stage: Ints
    stages: Ints
    hops: Ints
    following: Ints

    @classmethod
    def of(cls, torus: Torus, legs: tuple[RouteSegment, ...]) -> _Ways:
        following = next_links(torus)
        hops = np.array([leg.hops for leg in legs])
        links = np.array([links_at(torus, leg, 0) for leg in legs])
        lasts = np.array([links_at(torus, leg, abs(leg.hops) - 1) for leg in legs])
        moves = hops != 0
        # Legs without a hop go to the end, the others keep their order.
        order = np.argsort(~moves, axis=0, kind="stable")
        links, lasts = (np.take_along_axis(each, order, axis=0) for each in (links, lasts))
        stages = moves.sum(axis=0)
        return cls(
            links[0].copy(),
            lasts[0].copy(),
            links,
            lasts,
            np.ones_like(stages),
            stages,
            abs(hops).sum(axis=0),
            following,
        )

    def advance(self, sent: Ints) -> Ints:
        """Take messages that a link has sent to their next one; gives those that are not there yet."""
        link = self.link[sent]
        straight = link != self.last[sent]
        onward: Ints = sent[straight]
        self.link[onward] = self.following[link[straight]]
        if len(self.links) == 1 or len(onward) == len(sent):
            return onward
        turning = sent[~straight]
        turning = turning[self.stage[turning] < self.stages[turning]]
        stage = self.stage[turning]
        self.link[turning] = self.links[stage, turning]
        self.last[turning] = self.lasts[stage, turning]
        self.stage[turning] = stage + 1
        moving: Ints = np.concatenate((onward, turning))
        return moving


def busiest_transfer(messages: Messages) -> tuple[int, int]:
    """The bytes that pass one after the other until the last message is there, and the messages that wait.

    A device sends its messages in their order. Each begins to leave the switch when it begins to come in,
    or when its receiver's link becomes free: by the time at which it began to come in, then in the order
    of messages. Both links are equally fast, so that the rest follows without a gap; all times are bytes.
    An empty message occupies no link and never waits.
    """
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
