"""Values over sizes on two logarithmic axes: a field of marks with the labels of both beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

from rich.style import Style
from rich.text import Text

Mark = tuple[str, Style]
BLANK: Mark = (" ", Style())
CROSSING = "┆"
GAP = 2
"""Columns between the labels of sizes at least."""
LEAST_WIDTH = 10


class LogChart:
    """A field of `height` lines, `cells`, in a picture of `width` columns: values go upwards, at powers of
    ten as `written`; sizes go to the right, as many of them named by `size_text` as have room."""

    def __init__(
        self,
        values: Iterable[float],
        sizes: Sequence[int],
        width: int,
        height: int,
        written: Callable[[float], str],
        size_text: Callable[[int], str],
    ) -> None:
        logs = [math.log10(value) for value in values]
        # At least a decade, so that equal values lie in the middle.
        spare = max(0.0, 1.0 - (max(logs) - min(logs))) / 2
        self._low, self._high = min(logs) - spare, max(logs) + spare
        self.height = height
        powers = range(math.ceil(self._low), math.floor(self._high) + 1)
        marks = [10.0**power for power in powers] or [10 ** ((self._low + self._high) / 2)]
        self._labels = {self.row(mark): written(mark) for mark in marks}
        self._gutter = max(map(len, self._labels.values()))
        self.width = max(width - self._gutter - 2, LEAST_WIDTH)
        self._sizes, self._size_text = sizes, size_text
        self._first, self._span = math.log2(sizes[0]), math.log2(sizes[-1]) - math.log2(sizes[0])
        self.cells = [[BLANK] * self.width for _ in range(height)]

    def row(self, value: float) -> int:
        return round((self._high - math.log10(value)) / (self._high - self._low) * (self.height - 1))

    def column(self, size: float) -> int:
        share = (math.log2(size) - self._first) / self._span if self._span else 0.0
        return round(share * (self.width - 1))

    def size_at(self, column: int) -> float:
        return float(2 ** (self._first + column / (self.width - 1) * self._span))

    def rows(self, points: Iterable[tuple[int, float]]) -> list[int | None]:
        """The row of every column, on straight lines between points; None where a value is 0."""
        rows: list[int | None] = [None] * self.width
        for (first, before), (last, after) in pairwise(points):
            for column in range(self.column(first), self.column(last) + 1):
                way = math.log2(self.size_at(column) / first) / math.log2(last / first)
                share = min(max(way, 0.0), 1.0)
                if before > 0 and after > 0:
                    rows[column] = self.row(before ** (1 - share) * after**share)
        return rows

    def lines(self, crossed: Collection[int] = (), name: str = "") -> list[Text]:
        """The field with its labels; in columns that are `crossed` a line goes on through the axis below,
        whose sizes are those of `name`."""
        lines = []
        for number, cells in enumerate(self.cells):
            label = self._labels.get(number, "")
            line = Text(f"{label:>{self._gutter}} {'┤' if label else '│'}")
            for cell in cells:
                line.append(*cell)
            line.rstrip()
            lines.append(line)
        marked = self._marked_sizes()
        signs = dict.fromkeys(crossed, CROSSING) | {column: "┴" for column, _, _ in marked}
        words = ""
        for _, start, label in marked:
            words += " " * (start - len(words)) + label
        lead = (f"{name} " if name else "").rjust(self._gutter + 2)[-self._gutter - 2 :]
        axis = "".join(signs.get(column, "─") for column in range(self.width))
        return [*lines, Text(f"{' ' * self._gutter} └{axis}"), Text(lead + words)]

    def _marked_sizes(self) -> list[tuple[int, int, str]]:
        """Columns that are marked, with where their labels begin: every size, or every n-th that has room."""
        for stride in range(1, len(self._sizes)):
            found = [self._label(size) for size in self._sizes[::stride]]
            if all(start + len(label) + GAP <= after for (_, start, label), (_, after, _) in pairwise(found)):
                return found
        return [self._label(self._sizes[0])]

    def _label(self, size: int) -> tuple[int, int, str]:
        column, label = self.column(size), self._size_text(size)
        return column, min(max(column - len(label) // 2, 0), self.width - len(label)), label
