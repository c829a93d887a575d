"""Where the lines of a long text begin, so that a piece of any of them is found at constant cost."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

LINES_AT_ONCE = 4096
"""Lines that are searched before the searcher may be stopped."""


class LineIndex:
    """The lines of a text, without their ends. `width` are the characters of the longest."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts = array("q", [0])
        position = text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = text.find("\n", position + 1)
        if starts[-1] < len(text):
            starts.append(len(text) + 1)
        self._starts = starts
        self.count = len(starts) - 1
        self.width = max((stop - start - 1 for start, stop in pairwise(starts)), default=0)

    def line(self, number: int, left: int = 0, right: int | None = None) -> str:
        """Characters `left` to `right` of a line."""
        start, stop = self._starts[number] + left, self._starts[number + 1] - 1
        return self.text[start : stop if right is None else min(stop, start - left + right)]

    def start(self, number: int) -> int:
        """The place of a line's first character."""
        return self._starts[number]

    def line_at(self, position: int) -> int:
        """The number of the line that has this character of the text."""
        return bisect_right(self._starts, position) - 1

    def searched(self, query: str) -> Iterator[list[int]]:
        """The numbers of the lines that have `query` in them, however its letters are cased, a part of the
        text after the other: whoever asks may stop in between."""
        pattern = re.compile(re.escape(query), re.IGNORECASE)
        for first in range(0, self.count, LINES_AT_ONCE):
            last = min(first + LINES_AT_ONCE, self.count)
            found = []
            position, end = self._starts[first], self._starts[last] - 1
            while match := pattern.search(self.text, position, end):
                found.append(self.line_at(match.start()))
                position = self._starts[found[-1] + 1]
            yield found
