"""Where the computations of a module stand in its text; only those that are asked for are looked at."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

_HEADER = re.compile(r"(ENTRY\s+)?%?([^\s%(){}=,]+)")
_ENTRY = re.compile(r"^ENTRY ", re.MULTILINE)


class Computation(NamedTuple):
    """A named computation; `start` and `stop` bound its instructions in the text.

    Instructions outside of any computation count as one without a name.
    """

    start: int
    stop: int
    name: str
    is_entry: bool


class Computations:
    """The computations of a text, found by the positions of their instructions.

    A header is a line that begins at the margin and ends with ``{``; a ``}`` at the margin ends its body.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._found: list[Computation] = []

    @property
    def has_entry(self) -> bool:
        return _ENTRY.search(self._text) is not None

    def around(self, position: int) -> Computation:
        """The computation in which a position stands."""
        place = bisect_right(self._starts, position)
        if place and position < self._found[place - 1].stop:
            return self._found[place - 1]
        found = self._look(self._found[place - 1].stop if place else 0, position)
        self._starts.insert(place, found.start)
        self._found.insert(place, found)
        return found

    def breaks_off(self) -> str | None:
        """The name of the computation in which the text ends, None when its last one is complete."""
        last = self.around(max(0, len(self._text) - 1))
        return last.name if last.name and self._end(last.start) == len(self._text) else None

    def _look(self, lowest: int, position: int) -> Computation:
        text = self._text
        end = text.rfind("\n}", lowest, position)
        while end >= 0 and text.startswith(")", end + 2):
            end = text.rfind("\n}", lowest, end)
        start = lowest if end < 0 else end + 2
        header = self._next_header(start, position)
        if header is not None:
            brace, match = header
            return Computation(brace + 1, self._end(brace + 1), match[2], match[1] is not None)
        after = self._next_header(position, len(text))
        return Computation(start, after[0] if after else len(text), "", False)

    def _next_header(self, start: int, stop: int) -> tuple[int, re.Match[str]] | None:
        """The first header whose brace is between two positions, and that brace."""
        text = self._text
        while (brace := text.find("{\n", start, stop)) >= 0:
            line = max(start, text.rfind("\n", start, brace) + 1)
            match = None if line and text[line - 1] != "\n" else _HEADER.match(text, line, brace)
            if match is not None and match[2] != "HloModule":
                return brace, match
            start = brace + 2
        return None

    def _end(self, start: int) -> int:
        """Where a body ends: a brace at the margin that closes no literal of several lines."""
        text = self._text
        while (end := text.find("\n}", start)) >= 0:
            if not text.startswith(")", end + 2):
                return end
            start = end + 2
        return len(text)


def line_at(text: str, position: int) -> tuple[int, int]:
    """Start and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end
