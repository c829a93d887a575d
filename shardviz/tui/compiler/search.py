"""A search in a page: what is looked for, and the lines that have it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Search:
    """`query` and, once `is_done`, the numbers of the lines that have it, in order. `start` is the line on
    which the cursor was when the search began."""

    query: str
    start: int
    matches: Sequence[int] = ()
    is_done: bool = False

    def first(self) -> int | None:
        """The first match from the start on, round the end; None where there is none."""
        if not self.matches:
            return None
        place = bisect_left(self.matches, self.start)
        return self.matches[place % len(self.matches)]

    def next(self, line: int, step: int) -> int | None:
        """The match after a line, or the one before it, round the ends."""
        if not self.matches:
            return None
        place = bisect_left(self.matches, line + 1) if step > 0 else bisect_left(self.matches, line) - 1
        return self.matches[place % len(self.matches)]

    def words(self, line: int | None) -> str:
        """``2 of 7`` on a match, else how many there are."""
        if not self.query:
            return ""
        if not self.is_done:
            return "…"
        if not self.matches:
            return "not there"
        place = bisect_left(self.matches, line or 0)
        if line is not None and place < len(self.matches) and self.matches[place] == line:
            return f"{place + 1:,} of {len(self.matches):,}"
        return f"{len(self.matches):,}"
