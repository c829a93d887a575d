"""Where the computations of a module stand in its text, and where it calls them: the index of a text.

The text is in normal form: a header is a line at the margin that ends with ``{``, and its computation goes
on until a ``}`` at the margin.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

# A line's beginning is looked for by the end of the line before it, which is several times as fast as ^.
_HEADER_LINE = r"(?!HloModule)(ENTRY\s++)?%?([^\s%(){}=,]++) (?!= )[^\n]*+(?<=\{)(?=\n|\Z)"
_INSTRUCTION_LINE = r"[ \t]*+(?:ROOT )?%?[^\s=,(){}]++ = "
_HEADER, _FIRST_HEADER = re.compile(rf"\n{_HEADER_LINE}"), re.compile(_HEADER_LINE)
_INSTRUCTION, _FIRST_INSTRUCTION = re.compile(rf"\n{_INSTRUCTION_LINE}"), re.compile(_INSTRUCTION_LINE)
_PRINTED = re.compile(
    r"\n*+(?<![^\n])(?!HloModule)(ENTRY )?%?([^\s=,(){}\[\]<>:\"%]++) (?!= )[^\n]*+(?<=\{)"
    r"((?:\n  (?:ROOT )?%?[^\s=,(){}]++ = [^\n]*+)*+)\n\}(?=\n|\Z|, execution_thread=)"
)
"""A computation as XLA prints it, after empty lines: found and known to be in normal form at once."""
_CALL = re.compile(
    r" (?:c(?:alls|ondition|alled_computations)|b(?:ody|ranch_computations)|t(?:o_apply|rue_computation)"
    r"|false_computation)=(\{?)%?([^\s,{}()=]++)"
)
_NEXT_NAME = re.compile(r",\s?%?([^\s,{}()=]++)")


class Computation(NamedTuple):
    """A named computation; `start` and `stop` bound its instructions in the text.

    Instructions outside of any computation count as one without a name.
    """

    start: int
    stop: int
    name: str
    is_entry: bool


class Computations:
    """The computations of a text in normal form, found by name and by the positions of their instructions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.gaps: list[tuple[int, int]] = []
        """Start and end of what is no computation as XLA prints it: headers of modules, tables, anything."""
        self.all = [*self._read()]
        self._starts = [computation.start for computation in self.all]

    def _read(self) -> Iterator[Computation]:
        text, position = self.text, 0
        while position < len(text):
            while printed := _PRINTED.match(text, position):
                yield Computation(*printed.span(3), printed[2], printed[1] is not None)
                position = printed.end()
            header = (None if position else _FIRST_HEADER.match(text)) or _HEADER.search(text, position)
            stop = len(text) if header is None else header.start()
            if (not position and _FIRST_INSTRUCTION.match(text)) or _INSTRUCTION.search(text, position, stop):
                yield Computation(position, stop, "", False)
            gap = position
            if header is None:
                position = len(text)
            elif _PRINTED.match(text, stop):
                position = stop
            else:
                end = text.find("\n}", header.end())
                stop, position = (len(text), len(text)) if end < 0 else (end, end + 2)
                yield Computation(header.end(), stop, header[2], header[1] is not None)
            self.gaps.append((gap, position))

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        named: dict[str, list[int]] = defaultdict(list)
        for number, computation in enumerate(self.all):
            named[computation.name].append(number)
        return named

    @cached_property
    def entry(self) -> str | None:
        """The name of the first entry, None where the text has none, or not all of its header."""
        return next((computation.name for computation in self.all if computation.is_entry), None)

    def around(self, position: int) -> Computation:
        """The computation in which a position stands."""
        place = bisect_right(self._starts, position)
        if place and position < self.all[place - 1].stop:
            return self.all[place - 1]
        start = self.all[place - 1].stop if place else 0
        stop = self.all[place].start if place < len(self.all) else len(self.text)
        return Computation(start, stop, "", False)

    def named(self, name: str, position: int) -> Computation | None:
        """The computation that a name means at a position: the last one defined so far, else the first.

        A text may hold several modules, which use names again.
        """
        found = self._named.get(name)
        if not found or not name:
            return None
        return self.all[found[max(0, bisect_right(found, position, key=self._starts.__getitem__) - 1)]]

    def breaks_off(self) -> str | None:
        """The name of the computation in which the text ends, None when its last one is complete."""
        last = self.all[-1] if self.all else None
        return last.name if last and last.name and last.stop == len(self.text) else None

    @cached_property
    def sites(self) -> dict[str, list[int]]:
        """Where the text seems to call a computation of each name; a string may pretend to."""
        sites: dict[str, list[int]] = defaultdict(list)
        for match in _CALL.finditer(self.text):
            braced, name = match.groups()
            sites[name].append(match.start())
            position = match.end()
            while braced and (following := _NEXT_NAME.match(self.text, position)):
                places = sites[following[1]]
                if not places or places[-1] != match.start():
                    places.append(match.start())
                position = following.end()
        return sites


def line_at(text: str, position: int) -> tuple[int, int]:
    """Start and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end
