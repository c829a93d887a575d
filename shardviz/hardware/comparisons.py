"""Every algorithm for one pattern side by side: rounds, bytes, busiest link, time; and the fastest of them
by payload.

Where no queue has to be followed, the time of a schedule is affine in the payload: so many latencies and so
many bytes. Elsewhere it is made of affine pieces, which are found by halving until a straight line is as
good. The fastest at every payload is then the lowest of these curves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from shardviz.collectives.algorithms import ALGORITHMS, candidates, schedule_for
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Schedule
from shardviz.collectives.values import Ints, Reals
from shardviz.errors import QuestionError
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.round_routing import RoundRouting
from shardviz.hardware.timelines import Timeline, chunks_of_member, timeline
from shardviz.hardware.topology import Topology

ChunkBytes: TypeAlias = "Callable[[Schedule], int | Ints]"

MAX_UNEVEN = 4096
"""Chunks of different sizes that are compared; more of them all count as the largest."""
TIED = 1e-6
"""Times that differ relatively by less count as equal: queues are followed on clocks of whole ticks."""
LARGEST = 2**36
"""The largest payload that is looked at: 64 GiB."""
MAX_WORK = 50_000_000
"""The work that looking at all rounds of a schedule may take, as `Timeline.longer_than` counts it."""
QUEUE_WORK = 2**24
"""Hops, or what takes as long, that are followed through the queues for all payloads of a schedule."""
MIN_TRIED = 8
"""Payloads for which the queues of a schedule must be followed within that."""
RIVAL = 1.25
"""Times this much above the fastest, between payloads that were tried, are not looked at more closely."""
LITTLE_WORK = 2**16
"""Hops in the queues of a pipeline up to which it is looked at in several numbers of pieces."""
TOLERANCE = 1e-3
"""The relative error of a straight line above which it is broken in two."""
NARROW = 1.01
"""Ratio of payloads between which a line is not broken any more."""
CLOSE = 1e-9
"""Times that differ relatively by less count as equal: then what is the fastest already stays."""
PIECES = tuple(2**power for power in range(8))
"""Numbers of pieces that are tried for an algorithm with a pipeline."""
MAX_PIPELINED = 64
"""Members of a group beyond which an algorithm cuts data into its usual pieces."""


class NotCompared(NamedTuple):
    """An algorithm that knows a pattern's kind, and why it is not among the timelines."""

    algorithm: str
    reason: str


def comparison(
    pattern: Pattern, bytes_: int | ChunkBytes, topology: Topology, link_spec: LinkSpec
) -> tuple[Timeline | NotCompared, ...]:
    """A timeline for every algorithm that knows the pattern's kind, in the order of `ALGORITHMS`.

    `bytes_` is the larger of a member's operand and result, cut into chunks as equal as whole bytes can be;
    or a function that gives the bytes of a schedule's chunks. An algorithm with a pipeline has as many pieces
    as take the least time. Raises `QuestionError` as `timeline` does.
    """
    if isinstance(bytes_, int) and bytes_ < 0:
        raise QuestionError(f"{bytes_} bytes cannot be sent", "sizes are 0 or more")
    rows: list[Timeline | NotCompared] = []
    for name, schedule in candidates(pattern).items():
        if isinstance(schedule, str):
            rows.append(NotCompared(name, schedule))
            continue
        line = in_best_pieces(_timeline(schedule, bytes_, topology, link_spec), bytes_)
        rows.append(NotCompared(name, line.too_long) if line.too_long else line)
    return tuple(rows)


def in_best_pieces(line: Timeline, bytes_: int | ChunkBytes) -> Timeline:
    """The timeline of the same schedule in as many pieces, none empty, as take the least time on its links;
    the same object where its algorithm has no pipeline, or where no other number is faster."""
    best, least = line, math.inf
    if line.too_long:
        return line
    for schedule in _in_pieces(line.schedule):
        other = _timeline(schedule, bytes_, line.topology, line.link_spec)
        if other.too_long or not np.min(other.chunk_bytes):
            continue
        if not other.exact or other.seconds > least:
            # More pieces save time on their way and cost latencies: beyond the best number only these.
            break
        least = other.seconds
        if least < best.seconds * (1 - TIED):
            best = other
    return best


def _timeline(
    schedule: Schedule, bytes_: int | ChunkBytes, topology: Topology, link_spec: LinkSpec
) -> Timeline:
    sizes = _even(schedule, bytes_) if isinstance(bytes_, int) else bytes_(schedule)
    if not isinstance(sizes, int) and len(sizes) > MAX_UNEVEN:
        sizes = int(sizes.max())
    return timeline(schedule, sizes, topology, link_spec)


def _in_pieces(schedule: Schedule) -> Iterator[Schedule]:
    """The same in other numbers of pieces, where its algorithm has a pipeline for them."""
    name, pattern = schedule.algorithm, schedule.pattern
    if not ALGORITHMS[name].pipelined or not 1 < pattern.group_size <= MAX_PIPELINED:
        return
    for pieces in PIECES:
        with suppress(QuestionError):
            other = schedule_for(name, pattern, pieces)
            if other.chunks != schedule.chunks:
                yield other


def is_cut(schedule: Schedule) -> bool:
    """The schedule's algorithm has a pipeline, and this one has other chunks than of itself."""
    algorithm = ALGORITHMS[schedule.algorithm]
    return algorithm.pipelined and algorithm.schedule(schedule.pattern).chunks != schedule.chunks


def fastest(rows: Sequence[Timeline | NotCompared]) -> tuple[str, ...]:
    """The algorithms that take the least time, several where they tie; none where nobody can tell, since
    another's lower bound is below the least time."""
    able = [row for row in rows if isinstance(row, Timeline)]
    least = min((row.seconds for row in able if row.exact), default=math.inf)
    if any(row.seconds < least * (1 - TIED) for row in able):
        return ()
    return tuple(row.algorithm for row in able if row.exact and row.seconds <= least * (1 + TIED))


def _even(schedule: Schedule, bytes_: int) -> int | Ints:
    count = chunks_of_member(schedule)
    least, more = divmod(bytes_, count)
    if not more:
        return least
    if schedule.chunks > MAX_UNEVEN:
        return least + 1
    sizes: Ints = least + (np.arange(schedule.chunks) % count < more)
    return sizes


@dataclass(frozen=True)
class ScheduleCost:
    """The cost of a schedule on a topology, for any payload and link.

    With chunks of u bytes it takes `hops` latencies and `bytes` · u bytes one after the other, and the
    rounds of `queued`, each as often as its count says. A payload is cut into `chunks` chunks.
    """

    chunks: int
    hops: int
    bytes: int
    queued: tuple[tuple[RoundRouting, int], ...]

    @property
    def work(self) -> float:
        """The work of following the queues for one payload, at most: without latency steps are the most."""
        return sum(routing.work(LinkSpec(latency=0.0)) for routing, _ in self.queued)

    def seconds(self, payload: float, link_spec: LinkSpec) -> float:
        unit = payload / self.chunks
        in_queues = sum(count * routing.time(link_spec, unit).seconds for routing, count in self.queued)
        return self.hops * link_spec.latency + self.bytes * unit / link_spec.bandwidth + in_queues


Curve = dict[float, float]
"""Seconds by payload, in rising order; between them the time is a straight line."""


def crossovers(
    pattern: Pattern, topology: Topology, link_spec: LinkSpec, payload: int = 0
) -> tuple[tuple[int, str], ...]:
    """(payload, algorithm that is the fastest from there on), from one byte a member to 64 GiB.

    A payload is the larger of a member's operand and result, in bytes; its chunks may have parts of bytes.
    Of equally fast algorithms the first in the order of `ALGORITHMS` is named. What would take too long,
    which `left_out` lists, is not looked at. Exact where times are affine in the payload, and at `payload`;
    else to about a hundredth of the time, less closely where queues are long. Raises `QuestionError` as
    `timeline` does.
    """
    costs = {key: cost for key, cost in _costs(pattern, topology).items() if isinstance(cost, ScheduleCost)}
    ends = [float(pattern.group_size), float(LARGEST)]
    if ends[0] < payload < LARGEST:
        ends.insert(1, float(payload))
    curves: dict[tuple[str, int], Curve] = {}
    # Those without queues first: beside them, others need a close look only where they are as fast.
    for key in sorted(costs, key=lambda key: costs[key].work):
        curves[key] = _curve(costs[key], ends, link_spec, [*curves.values()])
    return _fastest([name for name, _ in costs], [curves[key] for key in costs]) if curves else ()


def left_out(pattern: Pattern, topology: Topology) -> tuple[NotCompared, ...]:
    """The algorithms that can carry out a pattern but that `crossovers` does not look at."""
    costs = _costs(pattern, topology).items()
    return tuple(NotCompared(name, cost) for (name, _), cost in costs if isinstance(cost, str))


@lru_cache(maxsize=1)
def _costs(pattern: Pattern, topology: Topology) -> Mapping[tuple[str, int], ScheduleCost | str]:
    """The cost of every algorithm that can carry out the pattern, or why it would take too long; of one with
    a pipeline, for each number of chunks whose queues are short."""
    costs: dict[tuple[str, int], ScheduleCost | str] = {}
    for name, schedule in candidates(pattern).items():
        if isinstance(schedule, str):
            continue
        usual = costs[name, schedule.chunks] = _cost(schedule, topology)
        if isinstance(usual, str) or usual.work > LITTLE_WORK:
            continue
        for other in _in_pieces(schedule):
            cost = _cost(other, topology)
            if isinstance(cost, ScheduleCost) and cost.work <= LITTLE_WORK:
                costs[name, other.chunks] = cost
    return costs


def _cost(schedule: Schedule, topology: Topology) -> ScheduleCost | str:
    hops, bytes_, work = 0, 0, 0.0
    queued: list[tuple[RoundRouting, int]] = []
    line = timeline(schedule, 1, topology, LinkSpec())
    if too_long := line.longer_than(MAX_WORK):
        return too_long
    for _, messages, count in line.different_rounds():
        routing = RoundRouting.of(messages, topology)
        if routing.delay is not None:
            hops += count * routing.delay.hops
            bytes_ += count * routing.delay.bytes
            continue
        if queued and routing.messages.same(queued[-1][0].messages):
            queued[-1] = (routing, queued[-1][1] + count)
            continue
        queued.append((routing, count))
        work += routing.work(LinkSpec(latency=0.0))
        if work * MIN_TRIED > QUEUE_WORK:
            return "its messages wait for one another too often to follow them for many payloads"
    return ScheduleCost(chunks_of_member(schedule), hops, bytes_, tuple(queued))


def _curve(cost: ScheduleCost, ends: list[float], link_spec: LinkSpec, others: list[Curve]) -> Curve:
    """The time for the payloads `ends` and others between them, as many as straight lines need: the worst
    line is broken first, as long as `QUEUE_WORK` allows."""
    known = {payload: cost.seconds(payload, link_spec) for payload in ends}
    left = -math.inf
    if cost.queued and link_spec.bandwidth < math.inf:
        left = QUEUE_WORK - cost.work * len(ends)
        # Coarse steps first: two ends alone could miss a bend and its opposite.
        for payload in (2.0**power for power in range(8, 36, 9)):
            if payload > ends[0] and payload not in known:
                known[payload] = cost.seconds(payload, link_spec)
                left -= cost.work
    open_ = [(-math.inf, *pair) for pair in pairwise(sorted(known))]
    while open_ and left >= cost.work:
        _, low, high = heappop(open_)
        middle = math.sqrt(low * high)
        known[middle] = seconds = cost.seconds(middle, link_spec)
        left -= cost.work
        slope = (known[high] - known[low]) / (high - low)
        missed = abs(known[low] + slope * (middle - low) - seconds)
        tried = (low, middle, high)
        times = np.array([_at(tried, curve) for curve in others]).reshape(-1, len(tried))
        lowest = times.min(axis=0, initial=math.inf)
        rival = any(known[at] <= RIVAL * least for at, least in zip(tried, lowest, strict=True))
        if rival and missed > TOLERANCE * seconds and high > low * NARROW:
            for half in ((low, middle), (middle, high)):
                heappush(open_, (-missed / seconds, *half))
    return dict(sorted(known.items()))


def _at(payloads: Sequence[float], curve: Curve) -> Reals:
    return np.interp(payloads, [*curve], [*curve.values()])


def _fastest(names: list[str], curves: list[Curve]) -> tuple[tuple[int, str], ...]:
    """The algorithm whose curve is the lowest at every payload, and from where on."""
    payloads = sorted({payload for curve in curves for payload in curve})
    seconds = np.array([_at(payloads, curve) for curve in curves])
    crossings: list[tuple[int, str]] = []
    best = -1
    for right in range(1, len(payloads)):
        low, high = payloads[right - 1], payloads[right]
        slope = (seconds[:, right] - seconds[:, right - 1]) / (high - low)
        here = low
        while here < high:
            # Of the lines that are lowest here, the lowest further on; the one so far if it is among them.
            now, later = seconds[:, right - 1] + slope * (here - low), seconds[:, right]
            lowest = now <= now.min() * (1 + CLOSE)
            lowest &= later <= later[lowest].min() * (1 + CLOSE)
            if best < 0 or not lowest[best]:
                best = int(np.flatnonzero(lowest)[0])
            if not crossings or crossings[-1][1] != names[best]:
                crossings.append((math.ceil(here * (1 - CLOSE)), names[best]))
            # The lines that fall below this one further on, where they do.
            gap = seconds[best, right - 1] - seconds[:, right - 1]
            lower = slope < slope[best]
            meet = low + gap[lower] / (slope[lower] - slope[best])
            here = float(meet[meet > here * (1 + CLOSE)].min(initial=high))
    return tuple(crossings)
