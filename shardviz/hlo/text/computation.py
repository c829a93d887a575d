"""The index of a text: the computations of a module, and the places that call them.

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

from shardviz.hlo.text.opcodes import CALLING

_HEADER_LINE = r"(?!HloModule)(?P<entry>ENTRY\s++)?%?(?P<name>[^\s%(){}=,]++) (?!= )[^\n]*+(?<=\{)(?=\n|\Z)"
_INSTRUCTION_LINE = r"[ \t]*+(?:ROOT )?%?[^\s=,(){}]++ = "
# A line's beginning is looked for by the end of the line before it, which is several times as fast as ^.
_MARK, _FIRST_HEADER = re.compile(rf"\n(?:(\}})|{_HEADER_LINE})"), re.compile(_HEADER_LINE)
_INSTRUCTION, _FIRST_INSTRUCTION = re.compile(rf"\n{_INSTRUCTION_LINE}"), re.compile(_INSTRUCTION_LINE)
_CALL = re.compile(rf", (?:{'|'.join(CALLING)})=(\{{?)%?([^\s,{{}}()=]++)")
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
        self.all = [*self._read()]
        """Every computation, in the order of the text."""
        self._starts = [each.start for each in self.all]

    def _read(self) -> Iterator[Computation]:
        text, start = self.text, 0
        header = _FIRST_HEADER.match(text)
        for mark in _MARK.finditer(text):
            if header is None and mark[1]:
                continue
            if header is None:
                if not start or mark.start() - start > 2:
                    yield from self._outside(start, mark.start())
                header = mark
            elif mark[1]:
                yield Computation(header.end(), mark.start(), header["name"], header["entry"] is not None)
                header, start = None, mark.end()
        if header is not None:
            yield Computation(header.end(), len(text), header["name"], header["entry"] is not None)
        else:
            yield from self._outside(start, len(text))

    def _outside(self, start: int, stop: int) -> Iterator[Computation]:
        """The instructions between two computations, as one, if there are any."""
        is_first = not start and _FIRST_INSTRUCTION.match(self.text) is not None
        if start < stop and (is_first or _INSTRUCTION.search(self.text, start, stop)):
            yield Computation(start, stop, "", False)

    @property
    def head(self) -> str:
        """The text in front of the first computation, with the line that begins it: header and tables."""
        return self.text[: next((each.start for each in self.all if each.name), len(self.text))]

    @cached_property
    def _named(self) -> dict[str, list[Computation]]:
        named: dict[str, list[Computation]] = defaultdict(list)
        for each in self.all:
            named[each.name].append(each)
        return named

    @cached_property
    def entry(self) -> Computation | None:
        """The first entry, None where the text has none, or not all of its header."""
        return next((each for each in self.all if each.is_entry), None)

    def around(self, position: int) -> Computation:
        """The computation in which a position stands."""
        number = bisect_right(self._starts, position)
        if number and position < self.all[number - 1].stop:
            return self.all[number - 1]
        start = self.all[number - 1].stop if number else 0
        stop = self._starts[number] if number < len(self.all) else len(self.text)
        return Computation(start, stop, "", False)

    def named(self, name: str, position: int) -> Computation | None:
        """The computation that a name means at a position: the last one defined so far, else the first.

        A text may hold several modules, which use names again.
        """
        found = self._named.get(name)
        if not found or not name:
            return None
        if len(found) == 1:
            return found[0]
        return found[max(0, bisect_right(found, position, key=lambda each: each.start) - 1)]

    def breaks_off(self) -> str | None:
        """The name of the computation in which the text ends, None when its last one is complete."""
        last = self.all[-1] if self.all else None
        return None if last is None or last.stop < len(self.text) else last.name or None

    @property
    def has_sites(self) -> bool:
        """Return whether `sites` have been looked up."""
        return "sites" in self.__dict__

    @cached_property
    def sites(self) -> dict[str, list[int]]:
        """The places that seem to call a computation, by its name; a string may pretend to."""
        sites: dict[str, list[int]] = defaultdict(list)
        for match in _CALL.finditer(self.text):
            braced, name = match.groups()
            place = match.start() + 1
            sites[name].append(place)
            position = match.end()
            while braced and (following := _NEXT_NAME.match(self.text, position)):
                places = sites[following[1]]
                if not places or places[-1] != place:
                    places.append(place)
                position = following.end()
        return sites


def line_at(text: str, position: int) -> tuple[int, int]:
    """Start and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end
