"""Store and forward on a torus, exact to the message: every link sends one message at a time.

A link is busy for bytes / bandwidth; the message is at the next device one latency later, whole, and then
queues for its next link. Queues are first in, first out, by the time of arrival; of messages that arrive at
the same time the one that stands first in the round goes first. An empty message occupies no link and
never waits.

Whatever is sent from time t on arrives at t + latency + (shortest message) / bandwidth or later. So all
that happens at all links within a window of that length can be worked out at once, with arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.hardware.routes import links_at, next_links

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.hardware.routes import Leg
    from shardviz.hardware.topology import Torus
    from shardviz.hardware.wire import Wire

    Ints = NDArray[np.int64]
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
    def fit(cls, sizes: Reals, hops: Ints, wire: Wire, window_bits: int) -> Clock:
        """A clock for messages of `sizes` bytes (above 0), whose window fits into `window_bits`."""
        import numpy as np

        latency = wire.latency * wire.bandwidth
        longest = float(np.dot(hops, sizes + latency))
        window = latency + float(sizes.min())
        fits = min(_TIME_BITS - math.log2(longest), window_bits - 1 - math.log2(window))
        scale = 2.0 ** min(_FINEST, math.floor(fits))
        sending = np.maximum(1, np.rint(sizes * scale)).astype(np.int64)
        return cls(sending, round(latency * scale), 1 / (scale * wire.bandwidth))


def store_and_forward(
    torus: Torus, legs: tuple[Leg, ...], sizes: Reals, wire: Wire
) -> tuple[Reals, NDArray[np.bool_]]:
    """When each message of one round is at its destination, in seconds, and whether it had to wait.

    All are ready at time 0. `sizes` are bytes, one number a message, above 0; every message makes at least
    one hop. The wire's bandwidth is finite.
    """
    import numpy as np

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
    import numpy as np

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
    """Where every message is: `link` is the one it waits for or is on, `last` the last one of its leg.

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
    def of(cls, torus: Torus, legs: tuple[Leg, ...]) -> _Ways:
        import numpy as np

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
        import numpy as np

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
