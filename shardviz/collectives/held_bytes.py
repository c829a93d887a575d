"""The bytes that every member of a group holds and still needs after each round, as running sums."""

from __future__ import annotations

import numpy as np

from shardviz.collectives.trace import Trace
from shardviz.collectives.values import Bools, Ints, Values

MAX_NUMBERS = 2**22
"""Sums that are kept: of all members after some of the rounds."""


class HeldBytes:
    """Bytes of the chunks that each member has and that are part of its result, or will be sent or added to.

    `chunk_bytes` are those of every chunk, or of each. Sums are kept of all rounds, or of every few: then a
    query adds the pieces that came or were needed for the last time since.
    """

    def __init__(self, trace: Trace, chunk_bytes: int | Ints) -> None:
        self._spans, self._chunk_bytes = trace.spans, chunk_bytes
        self._members = trace.schedule.pattern.group_size
        rounds = trace.schedule.rounds
        self._every = -(-(rounds + 1) * self._members // MAX_NUMBERS)
        """The rounds from one that is kept to the next."""
        rows = rounds // self._every + 1
        last = (rows - 1) * self._every
        changes = self._sums(self._spans.begin, self._spans.begin <= last, rows)
        changes -= self._sums(self._spans.end, self._spans.end <= last, rows)
        self._kept: Ints = changes.reshape(rows, self._members).cumsum(axis=0)

    def after(self, number: int) -> Ints:
        """The bytes of each member after a round; 0 is before the first."""
        row, since = divmod(number, self._every)
        if not since:
            kept: Ints = self._kept[row]
            return kept
        found: Ints = self._kept[row].copy()
        for sign, when in ((1, self._spans.begin), (-1, self._spans.end)):
            found += sign * self._sums(when, (number - since < when) & (when <= number))
        return found

    def _sums(self, when: Values, chosen: Bools, rows: int = 0) -> Ints:
        """The bytes of some pieces by member; with `rows`, by the first round kept, then by member."""
        place = self._spans.member[chosen]
        if rows:
            row = when[chosen]
            if self._every > 1:
                row = -(-row // self._every)
            place = row * np.int64(self._members) + place
        count = max(1, rows) * self._members
        if isinstance(self._chunk_bytes, int):
            return np.bincount(place, minlength=count) * self._chunk_bytes
        # As real numbers sums are exact up to 2**53 bytes.
        weights = self._chunk_bytes[self._spans.chunk[chosen]]
        return np.bincount(place, weights, count).astype(np.int64)
