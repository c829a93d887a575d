"""The course of a schedule that only moves data: when every member gets every chunk, and last sends it.

Without sums all pieces of a chunk are the same datum, so a time of arrival for each says everything. Rounds
are played in blocks, each a few operations on arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardviz.collectives.schedule import Schedule
from shardviz.collectives.trace import Held, ScheduleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Small = NDArray[np.int32]

BLOCK = 2**15
"""Sends played at once: as many as stay in a processor's cache."""


class Moving:
    """See `Trace`. A datum's number is its chunk's place among the starts."""

    def __init__(self, schedule: Schedule) -> None:
        import numpy as np

        self.sums: list[tuple[Small, Small]] = []
        self._schedule = schedule
        self._chunks = chunks = schedule.chunks
        member, chunk = schedule.pattern.starts(chunks)
        self._datum = np.full(chunks, -1, dtype=np.int32)
        self._datum[chunk] = np.arange(len(chunk), dtype=np.int32)
        # The smaller the table of arrivals, the more of it is at hand.
        rounds = np.min_scalar_type(-schedule.rounds - 2)
        self._never = np.iinfo(rounds).max
        self._arrival = np.full(schedule.pattern.group_size * chunks, self._never, dtype=rounds)
        self._arrival[member * chunks + chunk] = 0
        for number, source, target in _blocks(schedule):
            self._play(number.astype(rounds), source, target)

    def held(self, number: int, member: int | None = None) -> Held:
        import numpy as np

        chunks = self._chunks
        mine = slice(None) if member is None else slice(member * chunks, (member + 1) * chunks)
        slot = np.flatnonzero(self._arrival[mine] <= number) + (mine.start or 0)
        holder, chunk = np.divmod(slot, chunks)
        arrived = (self._arrival[slot] == number) & (number > 0)
        return Held(holder, chunk, self._datum[chunk], arrived, self._last_use[slot] > number)

    def final(self, member: Ints, chunk: Ints) -> Small:
        """The data at the end, -1 where there is none."""
        import numpy as np

        missing = self._arrival[member * self._chunks + chunk] == self._never
        return np.where(missing, np.int32(-1), self._datum[chunk])

    def shared(self) -> Small | None:
        return None if (self._arrival == self._never).any() else self._datum

    def addends(self, datum: int) -> tuple[int, ...]:
        return (datum,)

    def count(self, datum: int) -> int:
        del datum
        return 1

    def _play(self, number: NDArray[Any], source: Ints, target: Ints) -> None:
        """Some rounds in order: the round's number, and the slots from which and to which each entry goes."""
        first = self._arrival.take(target) == self._never
        if first.all():
            arriving = number
        else:
            target, arriving = target[first], number[first]
        # Of entries with one index the last is written: here the earliest arrival.
        self._arrival[target[::-1]] = arriving[::-1]
        if (self._arrival.take(source) >= number).any():
            raise ScheduleError(f"{self._schedule.algorithm} sends what a member does not hold")

    @cached_property
    def _last_use(self) -> NDArray[Any]:
        """The round in which every slot is last sent; the largest number where it is part of the result."""
        import numpy as np

        used = np.zeros_like(self._arrival)
        for number, source, _ in _blocks(self._schedule):
            used[source] = number
        member, chunk = self._schedule.pattern.ends(self._chunks)
        used[member * self._chunks + chunk] = self._never
        return used


def _blocks(schedule: Schedule) -> Iterator[tuple[Small, Ints, Ints]]:
    """Sends of about `BLOCK` chunks at a time, one chunk an entry: the round, the slots from and to."""
    import numpy as np

    block: list[tuple[Small, Ints, Ints]] = []
    size = 0
    src = dst = first_from = first_to = np.empty(0, dtype=np.int64)
    for number, sends in enumerate(schedule, 1):
        each = sends.expanded(schedule.chunks)
        if each.src is not src or each.dst is not dst:
            # Alike rounds share these arrays.
            src, dst = each.src, each.dst
            first_from, first_to = src * schedule.chunks, dst * schedule.chunks
        numbers = np.full(len(each), number, dtype=np.int32)
        block.append((numbers, first_from + each.chunk, first_to + each.chunk))
        size += len(each)
        if size >= BLOCK:
            yield _joined(block)
            block, size = [], 0
    if block:
        yield _joined(block)


def _joined(block: list[tuple[Small, Ints, Ints]]) -> tuple[Small, Ints, Ints]:
    import numpy as np

    number, source, target = (np.concatenate(arrays) for arrays in zip(*block, strict=True))
    return number, source, target
