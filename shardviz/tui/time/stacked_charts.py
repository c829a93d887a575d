"""Frames of timelines above one another, as one canvas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from shardviz.render.times.gantt import Gantt


class StackedCharts:
    """A canvas: frames above one another, each with the lines that stand below it, several under titles."""

    def __init__(
        self,
        frames: Sequence[tuple[Gantt, Sequence[Text]]],
        titles: Sequence[str],
        width: int,
        is_old: bool,
    ) -> None:
        self._frames = [frame for frame, _ in frames]
        self._below = [below for _, below in frames]
        self._titles, self.width, self._is_old = titles, width, is_old
        heights = (frame.height + len(below) + bool(titles) for frame, below in frames)
        self._tops = [*accumulate(heights, initial=0)]
        self.height = self._tops[-1]

    def line(self, y: int, left: int, right: int) -> Text:
        number, row = self._part_at(y)
        if row < 0:
            line = Text.assemble((self._titles[number], "bold"))[left:right]
        else:
            frame = self._frames[number]
            if row < frame.height:
                line = frame.line(row, left, right)
            else:
                line = self._below[number][row - frame.height][left:right]
        if self._is_old:
            line.stylize("dim")
        return line

    def op_at(self, x: int, y: int) -> tuple[int, int] | None:
        """The part and the operation under a cell."""
        if not 0 <= y < self.height:
            return None
        number, row = self._part_at(y)
        op = self._frames[number].op_at(x, row) if row >= 0 else None
        return None if op is None else (number, op)

    def line_of(self, place: tuple[int, int]) -> int | None:
        """The line with an operation of a part; None where the window does not show it."""
        number, op = place
        found = self._frames[number].place_of(op)
        return None if found is None else self._tops[number] + bool(self._titles) + found[0]

    def share_at(self, x: int) -> float:
        """The share of the window to the left of the middle of a column."""
        frame = self._frames[0]
        return min(max((x + 0.5 - frame.left) / frame.columns, 0.0), 1.0)

    @property
    def columns(self) -> int:
        """Columns that the window takes."""
        return self._frames[0].columns

    def _part_at(self, y: int) -> tuple[int, int]:
        """The part that has a line, and the line within its frame: -1 for its title."""
        number = next(i for i in range(len(self._frames)) if y < self._tops[i + 1])
        return number, y - self._tops[number] - bool(self._titles)
