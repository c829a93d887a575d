"""Where each array's spec stands in the text of the specs, so that an error can point at it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardviz.errors import NotationError
from shardviz.notation.spec_string import list_end

_BETWEEN = re.compile(r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)|->|[,;]|$")
"""What ends a spec, and parentheses, whose commas do not."""


@dataclass(frozen=True)
class SpecPlaces:
    """The text of all specs; arrays are counted within their part of a chain, the result last."""

    text: str

    def error(self, part: int, array: int, problem: str, hint: str) -> NotationError:
        """A `NotationError` that points at the spec of one array."""
        start, stop = self._bounds(part, array)
        return NotationError(problem, self.text, start, stop, hint)

    def _bounds(self, part: int, array: int) -> tuple[int, int]:
        parts: list[list[tuple[int, int]]] = [[]]
        start = 0
        for mark in _BETWEEN.finditer(_without_lists(self.text)):
            if mark.group().startswith("("):
                continue
            piece = self.text[start : mark.start()]
            begin = start + len(piece) - len(piece.lstrip())
            parts[-1].append((begin, max(begin + 1, begin + len(piece.strip()))))
            if mark.group() == ";":
                parts.append([])
            start = mark.end()
        bounds = parts[part] if part < len(parts) else []
        return bounds[array] if array < len(bounds) else (len(self.text), len(self.text) + 1)


def _without_lists(text: str) -> str:
    """The text with blanks for the brackets around the specs of all operands."""
    for part in re.finditer(r"(?:\A|;)\s*", text):
        end = list_end(text, part.end())
        if end is not None:
            text = f"{text[: part.end()]} {text[part.end() + 1 : end]} {text[end + 1 :]}"
    return text
