"""The course of a schedule that adds: every change of every member's piece of every chunk.

A piece changes only when something arrives, so these changes, each with its round and its datum, are the
whole course. Sums are kept as pairs, so that every partial sum can tell whose addends it contains, in the
order in which they were added.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.collectives.schedule import Schedule, Sends
from shardviz.collectives.trace import Held, arrivals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Small = NDArray[np.int32]
    Bools = NDArray[np.bool_]


class Adding:
    """See `Trace`. A slot is a member and a chunk, `member * chunks + chunk`."""

    def __init__(self, schedule: Schedule) -> None:
        import numpy as np

        self.sums: list[tuple[Small, Small]] = []
        self._schedule = schedule
        self._chunks = schedule.chunks
        self._leaves = self._data = slots = schedule.pattern.group_size * schedule.chunks
        changes = slots + arrivals(schedule)
        # Of each change: its slot, its round, its datum, and the last round in which that was used.
        self._slot = np.empty(changes, dtype=np.int32)
        self._since = np.zeros(changes, dtype=np.int32)
        self._datum = np.empty(changes, dtype=np.int32)
        self._last_use = np.zeros(changes, dtype=np.int32)
        self._slot[:slots] = self._datum[:slots] = np.arange(slots)
        self._changes = slots
        self._current = np.arange(slots, dtype=np.int32)
        """The change at which every slot is."""
        for number, sends in enumerate(schedule, 1):
            self._play(number, sends.expanded(schedule.chunks))

    def held(self, number: int, member: int | None = None) -> Held:
        import numpy as np

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
        return Held(members, chunk, self._datum[change], arrived, needed)

    def final(self, member: Ints, chunk: Ints) -> Small:
        """The data at the end: there is one everywhere."""
        datum: Small = self._datum[self._current[member * self._chunks + chunk]]
        return datum

    def shared(self) -> Small | None:
        final = self._datum[self._current].reshape(-1, self._chunks)
        first: Small = final[0]
        return first if (final == first).all() else None

    def addends(self, datum: int) -> tuple[int, ...]:
        """Of two that are added the longer sum comes first; of equals what was received."""
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
        """One round: all is read before anything is changed."""
        import numpy as np

        source = self._current[sends.src * self._chunks + sends.chunk]
        slot = sends.dst * self._chunks + sends.chunk
        datum = self._datum[source]
        self._last_use[source] = number
        adds = np.flatnonzero(sends.reduce)
        if len(adds):
            own = self._current[slot[adds]]
            self._last_use[own] = number
            datum[adds] = self._added(slot[adds], self._datum[own], datum[adds])
        if _repeats(slot):
            # What arrived last is what the member has.
            last = len(slot) - 1 - np.unique(slot[::-1], return_index=True)[1]
            slot, datum = slot[last], datum[last]
        change = slice(self._changes, self._changes + len(slot))
        self._slot[change], self._since[change], self._datum[change] = slot, number, datum
        self._current[slot] = np.arange(change.start, change.stop, dtype=np.int32)
        self._changes = change.stop

    def _added(self, slot: Ints, own: Small, received: Small) -> Small:
        """The sums that arrivals make in their slots; of several in one slot each adds to the one before."""
        import numpy as np

        total = np.empty_like(received)
        waiting = np.arange(len(slot))
        own = own.copy()
        while len(waiting):
            now = waiting
            if _repeats(slot[waiting]):
                now = waiting[np.sort(np.unique(slot[waiting], return_index=True)[1])]
            total[now] = np.arange(self._data, self._data + len(now))
            self.sums.append((own[now], received[now]))
            self._data += len(now)
            if len(now) == len(waiting):
                break
            waiting = np.setdiff1d(waiting, now, assume_unique=True)
            by_slot = now[np.argsort(slot[now])]
            own[waiting] = total[by_slot[np.searchsorted(slot[by_slot], slot[waiting])]]
        return total

    @cached_property
    def _by_slot(self) -> tuple[Ints, Small]:
        """The changes ordered by slot, then round, and the round in which the next one takes its place."""
        import numpy as np

        slot = self._slot[: self._changes]
        order = np.argsort(slot, kind="stable")
        until = np.full(len(order), self._schedule.rounds + 1, dtype=np.int32)
        same = slot[order[1:]] == slot[order[:-1]]
        until[:-1][same] = self._since[order[1:]][same]
        return order, until

    @cached_property
    def _first_change(self) -> Ints:
        """Where every member's changes begin among those ordered by slot, and where the last one's end."""
        import numpy as np

        order, _ = self._by_slot
        members = np.arange(self._schedule.pattern.group_size + 1)
        return self._slot[order].searchsorted(members * self._chunks)

    @cached_property
    def _is_end(self) -> Bools:
        import numpy as np

        is_end = np.zeros(len(self._current), dtype=bool)
        member, chunk = self._schedule.pattern.ends(self._chunks)
        is_end[member * self._chunks + chunk] = True
        return is_end

    @cached_property
    def _pairs(self) -> tuple[Small, Small]:
        """The data that every sum is made of: the member's own, and what it received."""
        import numpy as np

        none = np.empty(0, dtype=np.int32)
        own = np.concatenate([none, *(batch for batch, _ in self.sums)])
        return own, np.concatenate([none, *(batch for _, batch in self.sums)])

    @cached_property
    def _sizes(self) -> Small:
        """How many leaves every datum is the sum of."""
        import numpy as np

        sizes = np.ones(self._data, dtype=np.int32)
        done = self._leaves
        for own, received in self.sums:
            sizes[done : done + len(own)] = sizes[own] + sizes[received]
            done += len(own)
        return sizes


def _repeats(slot: Ints) -> bool:
    """Whether a slot stands there more than once."""
    import numpy as np

    ordered = np.sort(slot)
    return bool((ordered[1:] == ordered[:-1]).any())
