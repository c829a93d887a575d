"""Which algorithm is the fastest, from which payload on.

Where no queue has to be followed, the time of a schedule is affine in the payload: so many latencies and so
many bytes. Elsewhere it is made of affine pieces, which are found by halving until a straight line is as
good. The fastest at every payload is then the lowest of these curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from shardviz.hardware.comparisons import candidates, chunks_of_member
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import Topology
from shardviz.hardware.trip import Trip
from shardviz.hardware.wire import Wire

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives.pattern import Pattern
    from shardviz.collectives.schedule import Schedule

    Reals = NDArray[np.float64]

LARGEST = 2**36
"""The largest payload that is looked at: 64 GiB."""
MAX_SENDS = 2**20
"""Sends of a schedule, alike rounds counted once, that are looked at one by one."""
MAX_STEPS = 2**12
"""Steps of a schedule through queues, which are followed for every payload that is tried."""
TOLERANCE = 1e-3
"""By how much, relatively, a straight line may miss the time before it is broken in two."""
NARROW = 1.01
"""Ratio of payloads between which a line is not broken any more."""
SAME = 1e-9
"""Times that differ relatively by less count as equal: then what is the fastest already stays."""


@dataclass(frozen=True)
class Cost:
    """What a schedule costs on a topology, for any payload and wire.

    With chunks of u bytes it takes `hops` latencies and `bytes` · u bytes one after the other, and the
    rounds of `queued`, each as often as its count says. A payload is cut into `chunks` chunks.
    """

    chunks: int
    hops: int
    bytes: int
    queued: tuple[tuple[Trip, int], ...]

    def seconds(self, payload: float, wire: Wire) -> float:
        unit = payload / self.chunks
        in_queues = sum(count * trip.outcome(wire, unit).seconds for trip, count in self.queued)
        return self.hops * wire.latency + self.bytes * unit / wire.bandwidth + in_queues


@dataclass(frozen=True)
class Curve:
    """Seconds by payload: straight lines between (bytes, seconds), ordered by bytes."""

    algorithm: str
    payloads: tuple[float, ...]
    seconds: tuple[float, ...]


def crossovers(pattern: Pattern, topology: Topology, wire: Wire) -> tuple[tuple[int, str], ...]:
    """(payload, algorithm that is the fastest from there on), from one byte a member to 64 GiB.

    A payload is the larger of a member's operand and result, in bytes; its chunks may have parts of bytes.
    Of equally fast algorithms the first in the order of `ALGORITHMS` is named. What would take too long,
    which `left_out` lists, is not looked at. Exact where times are affine in the payload, else to about a
    thousandth of the time. Raises `QuestionError` as `timeline` does.
    """
    curves = [
        _curve(name, cost, pattern.group_size, wire)
        for name, cost in _costs(pattern, topology).items()
        if isinstance(cost, Cost)
    ]
    return _fastest(curves) if curves else ()


def left_out(pattern: Pattern, topology: Topology) -> tuple[tuple[str, str], ...]:
    """(algorithm, reason) of those that can carry out a pattern but that `crossovers` does not look at."""
    return tuple((name, cost) for name, cost in _costs(pattern, topology).items() if isinstance(cost, str))


def _costs(pattern: Pattern, topology: Topology) -> dict[str, Cost | str]:
    """The cost of every algorithm that can carry out the pattern, or why it would take too long."""
    schedules = candidates(pattern).items()
    return {name: _cost(schedule, topology) for name, schedule in schedules if not isinstance(schedule, str)}


def _cost(schedule: Schedule, topology: Topology) -> Cost | str:
    hops, bytes_, steps, sends = 0, 0, 0.0, 0
    queued = []
    line = timeline(schedule, 1, topology, Wire())
    if line.too_long:
        return line.too_long
    for _, messages, count in line.different_rounds():
        sends += len(messages)
        if sends > MAX_SENDS:
            return f"its rounds have more than {MAX_SENDS:,} sends"
        trip = Trip.of(messages, topology)
        if trip.delay is not None:
            hops += count * trip.delay.hops
            bytes_ += count * trip.delay.bytes
            continue
        # Without latency there are the most.
        steps += trip.steps(Wire(latency=0.0))
        if steps > MAX_STEPS:
            return "its messages wait for one another too often to follow them for many payloads"
        queued.append((trip, count))
    return Cost(chunks_of_member(schedule), hops, bytes_, tuple(queued))


def _curve(name: str, cost: Cost, members: int, wire: Wire) -> Curve:
    """The time for payloads from one byte a member on, with as few points as straight lines need."""
    ends = [float(members), float(LARGEST)]
    if cost.queued and wire.bandwidth < math.inf:
        # Coarse steps first: two ends alone could miss a bend and its opposite.
        ends[1:1] = [float(2**power) for power in range(4, 36, 8) if 2**power > members]
    known = {payload: cost.seconds(payload, wire) for payload in ends}
    open_ = list(pairwise(ends)) if len(ends) > 2 else []
    while open_:
        low, high = open_.pop()
        middle = math.sqrt(low * high)
        known[middle] = seconds = cost.seconds(middle, wire)
        slope = (known[high] - known[low]) / (high - low)
        straight = abs(known[low] + slope * (middle - low) - seconds) <= TOLERANCE * seconds
        if not straight and high > low * NARROW:
            open_ += [(low, middle), (middle, high)]
    payloads = tuple(sorted(known))
    return Curve(name, payloads, tuple(known[payload] for payload in payloads))


def _fastest(curves: list[Curve]) -> tuple[tuple[int, str], ...]:
    """The lowest of the curves at every payload, and from where on."""
    import numpy as np

    payloads = sorted({payload for curve in curves for payload in curve.payloads})
    seconds = np.array([np.interp(payloads, curve.payloads, curve.seconds) for curve in curves])
    found: list[tuple[int, str]] = []
    best = -1
    for right in range(1, len(payloads)):
        low, high = payloads[right - 1], payloads[right]
        slope = (seconds[:, right] - seconds[:, right - 1]) / (high - low)
        here = low
        while here < high:
            best = _lowest(seconds[:, right - 1] + slope * (here - low), seconds[:, right], best)
            if not found or found[-1][1] != curves[best].algorithm:
                found.append((math.ceil(here * (1 - SAME)), curves[best].algorithm))
            # The lines that fall below this one further on, where they do.
            gap = seconds[best, right - 1] - seconds[:, right - 1]
            lower = slope < slope[best]
            meet = low + gap[lower] / (slope[lower] - slope[best])
            here = float(meet[meet > here * (1 + SAME)].min(initial=high))
    return tuple(found)


def _lowest(now: Reals, later: Reals, best: int) -> int:
    """The line that is lowest now and, of those that are equal, later; `best` or the first if several are."""
    import numpy as np

    low = now <= now.min() * (1 + SAME)
    low &= later <= later[low].min() * (1 + SAME)
    return best if best >= 0 and low[best] else int(np.flatnonzero(low)[0])
