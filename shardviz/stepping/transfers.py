"""The transfers of a collective: every message of every round, what it carries, its links and its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardviz.collectives import Frame, Phase, Sends
from shardviz.collectives.values import Ints, Reals, Values
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.routes import Messages, messages, route_segments
from shardviz.hardware.topology import Hierarchy, Topology, Torus
from shardviz.stepping.collective_run import CollectiveRun

MAX_COUNTED = 2**15
"""Sends that are looked at to count the messages of all rounds."""
REMEMBERED = 8
"""Rounds whose messages are kept."""


@dataclass(frozen=True)
class LoggedTransfer:
    """A message of round `number` from member `source` to member `target` of a group.

    It carries `chunks`, in order, of together so many `bytes`, which the target adds to its own where `adds`.
    `level` counts the levels of the links from the outermost, 0 where there is one; on that it takes `hops`
    links, a switch being one. `seconds` is what it takes alone, waiting for no other message.
    """

    number: int
    source: int
    target: int
    chunks: tuple[int, ...]
    adds: bool
    bytes: int
    level: int
    hops: int
    seconds: float


class TransferLog:
    """The transfers of a run, by sender within each round; only rounds that are looked at are worked out."""

    def __init__(self, run: CollectiveRun) -> None:
        self.run = run
        self._round = lru_cache(maxsize=REMEMBERED)(self._of_round)

    @property
    def is_countable(self) -> bool:
        """True if it takes no time to tell how many transfers the rounds have."""
        phases = (each for each in self.run.schedule.phases if each.rounds)
        return sum(_looked_at(phase) for phase in phases) <= MAX_COUNTED

    @cached_property
    def before(self) -> Ints:
        """The number of transfers before each round, from round 1 on; the last is that of all rounds."""
        counts = [np.zeros(1, dtype=np.int64)]
        for phase in self.run.schedule.phases:
            different = range(min(phase.rounds, 1) if phase.alike else phase.rounds)
            found = np.array([_count(phase.sends(within)) for within in different], dtype=np.int64)
            counts.append(np.repeat(found, phase.rounds) if phase.alike else found)
        return np.cumsum(np.concatenate(counts))

    def count(self, number: int) -> int:
        """The transfers of a round."""
        return len(self._round(number).first)

    def transfer(self, number: int, place: int) -> LoggedTransfer:
        """A transfer of a round, by its place in it."""
        found, chunks = self._round(number), self.run.schedule.chunks
        entries = found.order[found.first[place] : found.stop[place]]
        carried = (found.sends.chunk[entries][:, None] + np.arange(found.sends.span)).reshape(-1) % chunks
        return LoggedTransfer(
            number,
            int(found.messages.src[place]),
            int(found.messages.dst[place]),
            tuple(sorted(set(carried.tolist()))),
            bool(found.sends.reduce[entries].any()),
            int(found.messages.bytes[place]),
            int(found.level[place]),
            int(found.hops[place]),
            float(found.seconds[place]),
        )

    def _of_round(self, number: int) -> _Round:
        run = self.run
        sends = _abroad(run.schedule.round(number))
        every = messages(sends, run.schedule.chunks, run.chunk_bytes)
        order = np.lexsort((np.arange(len(sends)), sends.dst, sends.src))
        first = _first_of_pairs(sends.src[order], sends.dst[order])
        sizes = np.add.reduceat(every.bytes[order], first) if len(first) else every.bytes
        merged = Messages(sends.src[order][first], sends.dst[order][first], sizes)
        links = run.links
        if not isinstance(links.topology, Hierarchy):
            hops = _hops(links.topology, merged.src, merged.dst)
            level = np.zeros_like(hops)
            seconds = _seconds(merged.bytes, hops, links.spec)
        else:
            level, hops, seconds = _by_level(merged, links.topology)
        return _Round(sends, order, first, np.append(first[1:], len(order)), merged, level, hops, seconds)


def carried_values(frame: Frame, transfer: LoggedTransfer, group: int) -> Iterator[Values]:
    """The numbers of each chunk of a transfer, in the frame before its round."""
    for chunk in transfer.chunks:
        for piece in frame.pieces(transfer.source, group, range(chunk, chunk + 1)):
            if piece.values is not None:
                yield piece.values


@dataclass(frozen=True)
class _Round:
    """The sends of a round and its messages: message k has the entries `first[k]` to `stop[k]` of `order`."""

    sends: Sends
    order: Ints
    first: Ints
    stop: Ints
    messages: Messages
    level: Ints
    hops: Ints
    seconds: Reals


def _abroad(sends: Sends) -> Sends:
    """The sends without those of a member to itself, which take no link."""
    kept = sends.src != sends.dst
    if kept.all():
        return sends
    src, dst, chunk = (each[kept] for each in (sends.src, sends.dst, sends.chunk))
    return Sends(src, dst, chunk, sends.reduce[kept], sends.span)


def _first_of_pairs(src: Ints, dst: Ints) -> Ints:
    """The places at which another pair of members begins."""
    if not len(src):
        return src
    other = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    return np.concatenate(([0], np.flatnonzero(other) + 1))


def _count(sends: Sends) -> int:
    sends = _abroad(sends)
    return len(np.unique(sends.src * (int(sends.dst.max(initial=0)) + 1) + sends.dst))


def _looked_at(phase: Phase) -> int:
    """Sends that are looked at to count the messages of a phase."""
    return len(phase.sends(phase.rounds // 2)) * (1 if phase.alike else phase.rounds)


def _hops(topology: Topology, src: Ints, dst: Ints) -> Ints:
    """The links that each message takes by itself."""
    if not isinstance(topology, Torus):
        return np.ones_like(src)
    segments = route_segments(topology, src, dst)
    return sum((abs(part.hops) for part in segments), np.zeros_like(src))


def _seconds(sizes: Ints, hops: Ints, spec: LinkSpec) -> Reals:
    seconds: Reals = hops * (spec.latency + sizes / spec.bandwidth)
    return seconds


def _by_level(found: Messages, topology: Hierarchy) -> tuple[Ints, Ints, Reals]:
    """The level of each message, its links there, and its seconds alone."""
    level, hops = np.zeros_like(found.src), np.zeros_like(found.src)
    seconds = np.zeros(len(found))
    left = np.ones(len(found), dtype=bool)
    for number, each in enumerate(topology.levels):
        chosen = left & (found.src // each.block != found.dst // each.block)
        left &= ~chosen
        src, dst = found.src[chosen] // each.shared, found.dst[chosen] // each.shared
        level[chosen] = number
        hops[chosen] = _hops(each.topology, src, dst)
        seconds[chosen] = _seconds(found.bytes[chosen], hops[chosen], each.spec)
    return level, hops, seconds
