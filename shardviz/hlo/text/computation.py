"""The index of a text: the computations of a module, and the places that call them.

The text is in normal form: a header is a line at the margin that ends with ``{``, and its computation goes
on until a ``}`` at the margin.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

# A line's beginning is looked for by the end of the line before it, which is several times as fast as ^.
_HEADER_LINE = r"(?!HloModule)(ENTRY\s++)?%?([^\s%(){}=,]++) (?!= )[^\n]*+(?<=\{)(?=\n|\Z)"
_INSTRUCTION_LINE = r"[ \t]*+(?:ROOT )?%?[^\s=,(){}]++ = "
_HEADER, _FIRST_HEADER = re.compile(rf"\n{_HEADER_LINE}"), re.compile(_HEADER_LINE)
_INSTRUCTION, _FIRST_INSTRUCTION = re.compile(rf"\n{_INSTRUCTION_LINE}"), re.compile(_INSTRUCTION_LINE)
REGULAR: str = (
    r"(?:[a-z]\w*+\[[\d,<=?]*+\](?:\{[^\s{}]*+\})?+"
    r"|\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\)) [a-z][a-z\d-]*+\("
)
"""A shape and an opcode with XLA's own spaces, up to the operands."""
_PRINTED = re.compile(
    r"\n(?<!\n\n)\n*+(?!HloModule)(ENTRY )?+%?([^\s=,(){}\[\]<>:\"%]++) (?!= )[^\n]*+(?<=\{)"
    rf"((?:\n  (?:%|ROOT %?|)[^\s=,(){{}}]++ = {REGULAR}[^\n]*+)*+)\n\}}(?=\n|\Z|, execution_thread=)"
)
"""A computation as XLA prints it: found and known to be in normal form at once."""
_CALLING = (
    *("calls", "to_apply", "body", "condition", "true_computation", "false_computation"),
    *("branch_computations", "called_computations"),
)
# An equals sign is looked for, and what stands in front of it: a text has fewer of them than of spaces.
_CALL = re.compile(
    rf"=(?<=[nsy]=)(?:{'|'.join(f'(?<= {key}=)' for key in _CALLING)})(\{{?)%?([^\s,{{}}()=]++)"
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
        """Start and end of what is not a computation as XLA prints it: headers of modules, tables."""
        self._spans: list[tuple[int, int]] = []
        self._names: list[str] = []
        self._entries: set[int] = set()
        position = 0
        for printed in _PRINTED.finditer(text):
            start, stop = printed.span()
            if start > position:
                position = self._read_gap(position, start)
            if start >= position:
                if printed[1]:
                    self._entries.add(len(self._names))
                self._spans.append(printed.span(3))
                self._names.append(printed[2])
                position = stop
        self._read_gap(position, len(text))

    def _read_gap(self, start: int, stop: int) -> int:
        """Add the computations, as XLA does not print them, of text[start:stop]; where the last one ends."""
        text = self.text
        while start < stop:
            header = (None if start else _FIRST_HEADER.match(text)) or _HEADER.search(text, start, stop)
            before = stop if header is None else header.start()
            if (not start and _FIRST_INSTRUCTION.match(text)) or _INSTRUCTION.search(text, start, before):
                self._spans.append((start, before))
                self._names.append("")
            gap, start = start, stop
            if header is not None:
                end = text.find("\n}", header.end())
                end, start = (len(text), len(text)) if end < 0 else (end, end + 2)
                if header[1]:
                    self._entries.add(len(self._names))
                self._spans.append((header.end(), end))
                self._names.append(header[2])
            self.gaps.append((gap, start))
        return start

    @property
    def head(self) -> str:
        """The text in front of the first computation, with the line that begins it: header and tables."""
        starts = (start for (start, _), name in zip(self._spans, self._names, strict=True) if name)
        return self.text[: next(starts, len(self.text))]

    @cached_property
    def all(self) -> list[Computation]:
        """Every computation, in the order of the text."""
        return [*map(self._computation, range(len(self._names)))]

    def _computation(self, number: int) -> Computation:
        return Computation(*self._spans[number], self._names[number], number in self._entries)

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        named: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self._names):
            named[name].append(number)
        return named

    @cached_property
    def entry(self) -> str | None:
        """The name of the first entry, None where the text has none, or not all of its header."""
        return self._names[min(self._entries)] if self._entries else None

    def around(self, position: int) -> Computation:
        """The computation in which a position stands."""
        place = bisect_left(self._spans, (position + 1,))
        if place and position < self._spans[place - 1][1]:
            return self._computation(place - 1)
        start = self._spans[place - 1][1] if place else 0
        stop = self._spans[place][0] if place < len(self._spans) else len(self.text)
        return Computation(start, stop, "", False)

    def named(self, name: str, position: int) -> Computation | None:
        """The computation that a name means at a position: the last one defined so far, else the first.

        A text may hold several modules, which use names again.
        """
        found = self._named.get(name)
        if not found or not name:
            return None
        before = bisect_right(found, position, key=lambda number: self._spans[number][0])
        return self._computation(found[max(0, before - 1)])

    def breaks_off(self) -> str | None:
        """The name of the computation in which the text ends, None when its last one is complete."""
        is_complete = not self._names or self._spans[-1][1] < len(self.text)
        return None if is_complete else self._names[-1] or None

    @cached_property
    def sites(self) -> dict[str, list[int]]:
        """The places that seem to call a computation, by its name; a string may pretend to."""
        sites: dict[str, list[int]] = defaultdict(list)
        for match in _CALL.finditer(self.text):
            braced, name = match.groups()
            place = self.text.rfind(" ", 0, match.start())
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
