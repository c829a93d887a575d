"""Pictures that are drawn line by line: a window shows some of one, a page all."""

from __future__ import annotations

from typing import Protocol

from rich.style import Style
from rich.text import Span, Text

SUMMARY = 6
"""Places in a row or a column that cannot show all its parts: the first ones, a gap, the last."""


class Canvas(Protocol):
    """Lines of text of a known size; `line` draws columns `left` to `right` of one, at constant cost."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    def line(self, y: int, left: int, right: int) -> Text: ...


def visible(count: int, limit: int) -> tuple[int | None, ...]:
    """The parts of `count` to draw: all within `limit`, or the first, None for a gap, the last."""
    if count <= limit:
        return tuple(range(count))
    limit = max(min(limit, SUMMARY), 3)
    return (*range(limit - 2), None, count - 1)


class LineBuilder:
    """Pieces put at their columns, from left to right; what lies outside `left` to `right` is cut off. What
    was put first stays: a piece that begins under it is seen from its end on."""

    def __init__(self, left: int, right: int) -> None:
        self.left = left
        self.right = right
        self._column = left
        self._pieces: list[str] = []
        self._spans: list[Span] = []

    def put(self, column: int, piece: str, style: str | Style = "") -> None:
        """Write a piece, all of whose characters are one column wide."""
        if column + len(piece) <= self._column or column >= self.right:
            return
        if column < self._column:
            piece, column = piece[self._column - column :], self._column
        piece = piece[: self.right - column]
        if column > self._column:
            self._pieces.append(" " * (column - self._column))
        self._pieces.append(piece)
        self._column = column + len(piece)
        if style:
            self._spans.append(Span(column - self.left, self._column - self.left, style))

    def put_text(self, column: int, text: Text) -> None:
        """Write a text with its styles."""
        offset, before = column - self.left, self._column
        plain = text.plain
        self.put(column, plain, text.style)
        if before <= column and column + len(plain) <= self.right:
            # Nearly always nothing is cut off.
            self._spans += [Span(start + offset, end + offset, style) for start, end, style in text.spans]
            return
        first, last = max(offset, before - self.left), self._column - self.left
        for span in text.spans:
            start, end = max(span.start + offset, first), min(span.end + offset, last)
            if start < end:
                self._spans.append(Span(start, end, span.style))

    def text(self) -> Text:
        """The line as it has been written."""
        return Text("".join(self._pieces), spans=self._spans)
