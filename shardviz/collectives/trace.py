"""A schedule run without numbers: which datum every member holds after every round. A datum is one value of
one chunk: what a member starts with (a leaf), or the sum of two data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardviz.collectives.schedule import Schedule, Sends
from shardviz.collectives.values import Bools, Ints, Small
from shardviz.errors import QuestionError, ShardvizError

MAX_PIECES = 2**24
"""Pieces that are there at the start or arrive later; each takes about 20 bytes."""
MAX_SLOTS = 2**26
"""Members times chunks, of which many may stay empty; each takes up to 8 bytes."""


class ScheduleError(ShardvizError):
    """A schedule that does not carry out its pattern: always a bug of the algorithm."""

    exit_code = 1


def can_be_kept(schedule: Schedule) -> bool:
    pattern, chunks = schedule.pattern, schedule.chunks
    slots = pattern.group_size * chunks
    starts = slots if pattern.reduces else chunks
    return slots <= MAX_SLOTS and starts + arrivals(schedule) <= MAX_PIECES


def arrivals(schedule: Schedule) -> int:
    """Chunks that arrive in all rounds together; counting stops where they are too many."""
    count = 0
    for sends, rounds in schedule.different_rounds():
        count += len(sends) * sends.span * rounds
        if count > MAX_PIECES:
            break
    return count


@dataclass(frozen=True)
class Buffer:
    """The chunks that all members hold at one time, ordered by member, then chunk: arrays of one length.
    `arrived` and `needed` are those of a `Piece`."""

    member: Ints
    chunk: Ints
    datum: Small
    arrived: Bools
    needed: Bools


class Trace:
    """Every state of a schedule: every change of every member's piece of every chunk, each with its round and
    its datum.

    Sums are kept as pairs, so that every partial sum can tell whose addends it contains, in the order in
    which they were added. A slot is a member and a chunk, `member * chunks + chunk`; the leaves are the first
    data, in the order of `Pattern.starts`. Raises `QuestionError` when there are too many pieces to keep,
    `ScheduleError` when a member sends what it does not hold."""

    def __init__(self, schedule: Schedule) -> None:
        if not can_be_kept(schedule):
            moves = f"{schedule.algorithm} over {schedule.pattern.group_size:,} devices moves"
            problem = f"{moves} more than {MAX_PIECES:,} pieces, too many to keep every step"
            hint = "take a smaller mesh, or leave out --data and --round: a summary does not follow pieces"
            raise QuestionError(problem, hint)
        self.schedule = schedule
        self.sums: list[tuple[Small, Small]] = []
        """The sums in batches: (member's own, received) data of each. A batch needs only those before it."""
        self.leaf_member, self.leaf_chunk = schedule.pattern.starts(schedule.chunks)
        """Member and chunk of every leaf."""
        self._chunks = schedule.chunks
        self._leaves = self._changes = leaves = len(self.leaf_member)
        self.data = leaves
        """The number of data: leaves first, then sums in the order in which they came to be."""
        # Of each change: its slot, its round, its datum, and the last round in which that was used.
        self._slot, self._datum = np.empty((2, leaves + arrivals(schedule)), dtype=np.int32)
        self._since, self._last_use = np.zeros_like(self._slot), np.zeros_like(self._slot)
        self._slot[:leaves] = self.leaf_member * self._chunks + self.leaf_chunk
        self._datum[:leaves] = np.arange(leaves)
        # The change at which every slot is; -1 where nothing has come yet.
        self._current = np.full(schedule.pattern.group_size * self._chunks, -1, dtype=np.int32)
        self._current[self._slot[:leaves]] = np.arange(leaves)
        for number, sends in enumerate(schedule, 1):
            self._play(number, sends.expanded(self._chunks))

    def buffer(self, number: int, member: int | None = None) -> Buffer:
        """The chunks that all members hold after a round, or one of them; 0 is before the first."""
        order, until = self._by_slot
        if member is not None:
            mine = slice(self._first_change[member], self._first_change[member + 1])
            order, until = order[mine], until[mine]
        now = (self._since[order] <= number) & (number < until)
        change = order[now]
        slot = self._slot[change]
        members, chunk = np.divmod(slot.astype(np.int64), self._chunks)
        needed = (self._last_use[change] > number) | (self._is_end[slot] & (self._current[slot] == change))
        arrived = (self._since[change] == number) & (number > 0)
        return Buffer(members, chunk, self._datum[change], arrived, needed)

    def final(self, member: Ints, chunk: Ints) -> Small:
        change = self._current[member * self._chunks + chunk]
        if (change < 0).any():
            raise ScheduleError(f"{self.schedule.algorithm} leaves a member without a chunk")
        datum: Small = self._datum[change]
        return datum

    def shared(self) -> Small | None:
        """The data at the end by chunk, where all members end with the same ones of all chunks; else None."""
        if (self._current < 0).any():
            return None
        first: Small = self._datum[self._current[: self._chunks]]
        if not self.schedule.pattern.reduces:
            return first
        final = self._datum[self._current].reshape(-1, self._chunks)
        return first if (final == first).all() else None

    def addends(self, datum: int) -> tuple[int, ...]:
        """The leaves that a datum is the sum of, in the order of the additions: the longer of two sums
        first."""
        order: list[int] = []
        stack = [datum]
        own, received = self._pairs
        size = self._sizes
        while stack:
            datum = stack.pop()
            if datum < self._leaves:
                order.append(int(datum))
                continue
            mine, other = own[datum - self._leaves], received[datum - self._leaves]
            # The last one pushed is the first one taken.
            stack += [other, mine] if size[mine] > size[other] else [mine, other]
        return tuple(order)

    def count(self, datum: int) -> int:
        return int(self._sizes[datum])

    def _play(self, number: int, sends: Sends) -> None:
        source = self._current[sends.src * self._chunks + sends.chunk]
        if (source < 0).any():
            raise ScheduleError(f"{self.schedule.algorithm} sends what a member does not hold")
        slot = sends.dst * self._chunks + sends.chunk
        datum = self._datum[source]
        self._last_use[source] = number
        if not self.schedule.pattern.reduces:
            # A chunk that only moves is the same wherever it is: to come once more changes nothing.
            new = self._current[slot] < 0
            if not new.all():
                slot, datum = slot[new], datum[new]
        elif len(adds := np.flatnonzero(sends.reduce)):
            own = self._current[slot[adds]]
            self._last_use[own] = number
            datum[adds] = self._added(slot[adds], self._datum[own], datum[adds])
        change = np.arange(self._changes, self._changes + len(slot), dtype=np.int32)
        self._current[slot] = change
        last = self._current[slot] == change
        if not last.all():
            # What arrived last is what the member has.
            slot, datum, change = slot[last], datum[last], change[: int(last.sum())]
            self._current[slot] = change
        rows = slice(self._changes, self._changes + len(slot))
        self._slot[rows], self._since[rows], self._datum[rows] = slot, number, datum
        self._changes = rows.stop

    def _added(self, slot: Ints, own: Small, received: Small) -> Small:
        """The sums that arrivals make in their slots; of several in one slot each adds to the one before."""
        total = np.empty_like(received)
        waiting = np.arange(len(slot))
        own = own.copy()
        while len(waiting):
            now, ordered = waiting, np.sort(slot[waiting])
            if (ordered[1:] == ordered[:-1]).any():
                now = waiting[np.sort(np.unique(slot[waiting], return_index=True)[1])]
            total[now] = np.arange(self.data, self.data + len(now))
            self.sums.append((own[now], received[now]))
            self.data += len(now)
            if len(now) == len(waiting):
                break
            waiting = np.setdiff1d(waiting, now, assume_unique=True)
            by_slot = now[np.argsort(slot[now])]
            own[waiting] = total[by_slot[np.searchsorted(slot[by_slot], slot[waiting])]]
        return total

    @cached_property
    def _by_slot(self) -> tuple[Ints, Small]:
        """The changes ordered by slot, then round, and the round in which the next one takes its place."""
        slot = self._slot[: self._changes]
        order = np.argsort(slot, kind="stable")
        until = np.full(len(order), self.schedule.rounds + 1, dtype=np.int32)
        same = slot[order[1:]] == slot[order[:-1]]
        until[:-1][same] = self._since[order[1:]][same]
        return order, until

    @cached_property
    def _first_change(self) -> Ints:
        """The places at which each member's changes begin among those ordered by slot, and the end."""
        order, _ = self._by_slot
        return self._slot[order].searchsorted(np.arange(self.schedule.pattern.group_size + 1) * self._chunks)

    @cached_property
    def _is_end(self) -> Bools:
        is_end = np.zeros(len(self._current), dtype=bool)
        member, chunk = self.schedule.pattern.ends(self._chunks)
        is_end[member * self._chunks + chunk] = True
        return is_end

    @cached_property
    def _pairs(self) -> tuple[Small, Small]:
        none = np.empty(0, dtype=np.int32)
        own = np.concatenate([none, *(batch for batch, _ in self.sums)])
        return own, np.concatenate([none, *(batch for _, batch in self.sums)])

    @cached_property
    def _sizes(self) -> Small:
        sizes = np.ones(self.data, dtype=np.int32)
        done = self._leaves
        for own, received in self.sums:
            sizes[done : done + len(own)] = sizes[own] + sizes[received]
            done += len(own)
        return sizes
