"""Where the computations of a module stand in its text; only those that are asked for are looked at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

_HEADER = re.compile(r"(ENTRY\s+)?%?([^\s%(){}=,]+)")
_FOLLOWING = re.compile(r"[ \t]*+\n\s*+(ENTRY\s++)?%?([^\s%(){}=,]++) [^\n]*+(?<=\{)\n")
"""The header of a computation right behind the end of another, as XLA writes one."""
_ENTRY = re.compile(r"ENTRY +%?([^\s%(){}=,]++)[^\n]*+(?<=\{)(?:\n|$)")
_NAMED = re.compile(r"\n\n(?:ENTRY )?%?([^\s%(){}=,]++) (?:\(.*)?\{\n")


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

    @cached_property
    def entry(self) -> str | None:
        """The name of the first entry, None where the text has none, or not all of its header."""
        start = 0 if self._text.startswith("ENTRY ") else self._text.find("\nENTRY ") + 1
        match = _ENTRY.match(self._text, start)
        return match[1] if match else None

    def around(self, position: int) -> Computation:
        """The computation in which a position stands."""
        place = bisect_right(self._starts, position)
        if place and position < self._found[place - 1].stop:
            return self._found[place - 1]
        found = self._look(self._found[place - 1].stop if place else 0, position)
        self._starts.insert(place, found.start)
        self._found.insert(place, found)
        return found

    def named(self, name: str, position: int) -> Computation | None:
        """The computation of a name: the last one before its caller, as a text may hold several modules."""
        places = self._bodies.get(name, [])
        place = bisect_right(places, position)
        return self.around(places[place - 1]) if place else None

    @cached_property
    def _bodies(self) -> dict[str, list[int]]:
        """Where the computations of each name begin; XLA writes an empty line before each."""
        found: dict[str, list[int]] = defaultdict(list)
        for match in _NAMED.finditer(self._text):
            found[match[1]].append(match.end())
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
        following = _FOLLOWING.match(text, start, position) if end >= 0 else None
        if following is not None and following[2] != "HloModule":
            body = following.end() - 1
            return Computation(body, self._end(body), following[2], following[1] is not None)
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
