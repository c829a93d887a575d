"""The transfers of a collective: every message of every round, what it carries, its links and its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardviz.collectives.frames import Frame
from shardviz.collectives.schedule import Phase, Sends
from shardviz.collectives.values import Ints, Reals, Values
from shardviz.hardware.routes import Messages, messages, messages_by_level, route_hops
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

        def looked_at(phase: Phase) -> int:
            return len(phase.sends(phase.rounds // 2)) * (1 if phase.alike else phase.rounds)

        return sum(looked_at(phase) for phase in self.run.schedule.phases if phase.rounds) <= MAX_COUNTED

    @cached_property
    def before(self) -> Ints:
        """The number of transfers before each round, from round 1 on; the last is that of all rounds."""
        counts = [0]
        for phase in self.run.schedule.phases:
            different = range(min(phase.rounds, 1) if phase.alike else phase.rounds)
            found = [len(np.unique(_pairs(_abroad(phase.sends(within))))) for within in different]
            counts += found * phase.rounds if phase.alike else found
        return np.cumsum(counts)

    def count(self, number: int) -> int:
        """The transfers of a round."""
        return len(self._round(number).messages)

    def transfer(self, number: int, index: int) -> LoggedTransfer:
        """A transfer of a round, by its place in it."""
        found, chunks = self._round(number), self.run.schedule.chunks
        entries = found.entries[found.first[index] : found.first[index + 1]]
        carried = (found.sends.chunk[entries][:, None] + np.arange(found.sends.span)).reshape(-1) % chunks
        return LoggedTransfer(
            number,
            int(found.messages.src[index]),
            int(found.messages.dst[index]),
            tuple(sorted(set(carried.tolist()))),
            bool(found.sends.reduce[entries].any()),
            int(found.messages.bytes[index]),
            int(found.level[index]),
            int(found.hops[index]),
            float(found.seconds[index]),
        )

    def _of_round(self, number: int) -> _Round:
        run = self.run
        sends = _abroad(run.schedule.round(number))
        every = messages(sends, run.schedule.chunks, run.chunk_bytes)
        entries = np.lexsort((sends.dst, sends.src))
        first = np.flatnonzero(np.diff(_pairs(sends)[entries], prepend=-1))
        sizes = np.add.reduceat(every.bytes[entries], first) if len(first) else every.bytes
        merged = Messages(sends.src[entries][first], sends.dst[entries][first], sizes)
        level, hops = np.zeros((2, len(merged)), dtype=np.int64)
        seconds = np.zeros(len(merged))
        for index, (linked, chosen, own) in enumerate(messages_by_level(run.links.linked_levels, merged)):
            level[chosen], hops[chosen] = index, route_hops(linked.topology, own.src, own.dst)
            seconds[chosen] = hops[chosen] * (linked.spec.latency + own.bytes / linked.spec.bandwidth)
        return _Round(sends, entries, np.append(first, len(entries)), merged, level, hops, seconds)


def carried_values(frame: Frame, transfer: LoggedTransfer, group: int) -> Iterator[Values]:
    """The numbers of each chunk of a transfer, in the frame before its round."""
    for chunk in transfer.chunks:
        for piece in frame.pieces(transfer.source, group, range(chunk, chunk + 1)):
            if piece.values is not None:
                yield piece.values


@dataclass(frozen=True)
class _Round:
    """The sends of a round and its messages: message k has those of `entries` from `first[k]` to
    `first[k + 1]`."""

    sends: Sends
    entries: Ints
    first: Ints
    messages: Messages
    level: Ints
    hops: Ints
    seconds: Reals


def _abroad(sends: Sends) -> Sends:
    """The sends without those of a member to itself, which take no link."""
    kept = sends.src != sends.dst
    if kept.all():
        return sends
    return Sends(sends.src[kept], sends.dst[kept], sends.chunk[kept], sends.reduce[kept], sends.span)


def _pairs(sends: Sends) -> Ints:
    """A number for the members between which each entry goes."""
    return sends.src * (int(sends.dst.max(initial=0)) + 1) + sends.dst
