"""Some frames of a walk, looked at to draw all of them alike: how wide labels are, which marks there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardviz.render.palette import Palette
from shardviz.render.rounds.buffer_rows import BufferRow, BufferRows
from shardviz.render.rounds.empty_chunks import empty_chunks
from shardviz.render.rounds.piece_label import FORMS, Cell
from shardviz.stepping.collective_run import CollectiveRun

MAX_CELLS = 48
"""Chunks of a device that have a cell each; of more a bar tells how many are there."""
MAX_PIECES = 640
"""Pieces that are looked at; of more only names are drawn."""
NAMES = len(FORMS) - 1


def drawn_columns(walk: CollectiveRun) -> list[int] | None:
    """The columns of a device's cells, as `BufferRows` counts them; None where they are too many."""
    columns = all_columns(walk)
    return columns if columns is not None and len(columns) <= MAX_CELLS else None


def all_columns(walk: CollectiveRun) -> list[int] | None:
    """The columns of chunks that are not empty; None where nobody follows who holds which."""
    pattern, chunks = walk.schedule.pattern, walk.schedule.chunks
    if not walk.followed:
        return None
    if pattern.kind == "all_to_all":
        return [*range(pattern.group_size * pattern.pieces(chunks))]
    empty = empty_chunks(walk)
    return [*range(chunks)] if empty is None else (~empty).nonzero()[0].tolist()


@dataclass(frozen=True)
class LookedAt:
    """Frames of one group of a walk; `columns` are those that are drawn."""

    walk: CollectiveRun
    group: int
    columns: Sequence[int]
    palette: Palette

    @property
    def all_seen(self) -> bool:
        """Whether there are few enough pieces to write more than their names."""
        return self.walk.schedule.pattern.group_size * len(self.columns) <= MAX_PIECES

    @cached_property
    def rows(self) -> list[BufferRow]:
        """Every device's row in the first and the last frame and some between; of large groups some rows."""
        rounds, size = self.walk.schedule.rounds, self.walk.schedule.pattern.group_size
        some = max(1, MAX_PIECES // max(1, size * len(self.columns)))
        frames = sorted({rounds, *range(0, rounds, max(1, -(-rounds // some)))})
        members = range(size)
        if not self.all_seen:
            frames, members = sorted({0, rounds // 2}), range(min(2, size))
        return [
            BufferRows(
                self.walk, self.walk.frames[number], self.columns, self.palette, bool(number), False
            ).row(self.group, member)
            for number in frames
            for member in members
        ]

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells of the rows, and what waits to go on."""
        return [cell for row in self.rows for cell in (*row.cells, *row.passing) if cell is not None]

    @property
    def vacant(self) -> bool:
        """Whether a device has nothing in some column."""
        return any(None in row.cells for row in self.rows)

    @property
    def passing(self) -> bool:
        """Whether anything waits to go on that has no slot."""
        return any(row.passing for row in self.rows)

    @property
    def sent(self) -> str:
        """What the first device that has sent anything has sent."""
        return next((row.sent for row in self.rows if row.sent), "")

    @property
    def longest_sent(self) -> int:
        """Characters of what a device has sent."""
        return max((len(row.sent) for row in self.rows), default=0)

    def labels(self) -> Iterator[tuple[int, int]]:
        """The forms in which every piece can be written, the richest first, and the longest label in each.

        Where sums are made, all forms say whose, or of how many.
        """
        cells = [cell for row in self.rows for cell in row.cells if cell is not None]
        for number, form in enumerate(FORMS):
            if number < NAMES and not self.all_seen:
                continue
            if self.walk.schedule.pattern.reduces and not (form.addends or form.counted):
                continue
            lengths = [None if label is None else len(label) for label in (c.label(form) for c in cells)]
            known = [length for length in lengths if length is not None]
            if len(known) == len(lengths):
                yield number, max(known, default=1)

    @property
    def longest_name(self) -> int:
        return max((len(cell.name) for cell in self.cells), default=1)
