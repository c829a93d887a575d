"""Who holds what after one round: a row for every device, a column for every chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.text import Text

from shardviz.collectives import Frame
from shardviz.render.layouts.grid import DIM, visible
from shardviz.render.palette import Palette
from shardviz.render.rounds.buffer_rows import BufferRow, BufferRows
from shardviz.render.rounds.chunk_names import chunk_name
from shardviz.render.rounds.device_label import coordinates, device_labels
from shardviz.render.rounds.empty_chunks import empty_chunks
from shardviz.render.rounds.piece_label import FORMS, Cell, Form
from shardviz.stepping.collective_run import CollectiveRun

MAX_ROWS = 16
"""Devices of one group in a picture at most."""
LEAST = 3
"""Columns of the narrowest cell."""
GAP = 2
NOTHING = "·"
NAMES = len(FORMS) - 1


@dataclass(frozen=True)
class Shape:
    """How pictures are drawn alike: the number of a form among `FORMS`, the columns of a cell, and where what
    a device has sent begins; None where there is no room to say it."""

    form: int
    cell: int
    sent_at: int | None


class BufferPicture:
    """One frame for some of the groups, within `width` columns.

    `moving`: what has just arrived is marked, and beside each device stands what it has sent. `ended`: only
    what is part of the result.
    """

    def __init__(
        self,
        walk: CollectiveRun,
        frame: Frame,
        groups: Sequence[int],
        width: int,
        palette: Palette,
        max_rows: int = MAX_ROWS,
        moving: bool = True,
        ended: bool = False,
    ) -> None:
        self._walk, self.groups, self._palette, self.width = walk, groups, palette, width
        pattern = walk.schedule.pattern
        self._members = visible(pattern.group_size, max_rows)
        self._slots = pattern.kind == "all_to_all"
        self._pieces = pattern.pieces(walk.schedule.chunks)
        count = pattern.group_size * self._pieces if self._slots else walk.schedule.chunks
        empty = None if self._slots else empty_chunks(walk)
        shown = range(count) if empty is None else (~empty).nonzero()[0].tolist()
        self._gutter = max(label.cell_len for label in (*self._labels[0], *self._titles)) + GAP
        fits = (width - self._gutter + 1) // (LEAST + 1)
        chosen = visible(len(shown), fits)
        if None in chosen:
            chosen = visible(len(shown), min(fits - 1, 6))
        self._columns = [None if column is None else shown[column] for column in chosen]
        self._maker = BufferRows(walk, frame, self._columns, palette, moving, ended)

    @property
    def summarised(self) -> bool:
        """Whether devices or chunks are left out."""
        return None in self._members or None in self._columns

    @cached_property
    def shape(self) -> Shape:
        """The richest form in which the picture fits the page alone."""
        return common_shape([self])

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell that is drawn."""
        for row in self._every_row:
            yield from (cell for cell in (*row.cells, *row.passing) if cell is not None)

    @property
    def vacant(self) -> bool:
        """Whether a device has nothing in some column."""
        return any(None in row.cells for row in self._every_row)

    @property
    def passing(self) -> bool:
        """Whether anything waits to go on that has no slot."""
        return any(row.passing for row in self._every_row)

    @property
    def sent(self) -> str:
        """What the first device that has sent anything has sent."""
        return next((row.sent for row in self._every_row if row.sent), "")

    def lines(self, shape: Shape | None = None) -> list[Text]:
        """For every group a line that names the columns, then its devices."""
        shape = shape or self.shape
        drawn = []
        for group, title, labels, rows in zip(
            self.groups, self._titles, self._labels, self._rows, strict=True
        ):
            drawn.append(self._header(group, title, shape.cell))
            waiting = iter(zip(labels, rows, strict=True))
            for member in self._members:
                if member is None:
                    drawn.append(Text("⋮".rjust(self._gutter - GAP), DIM))
                    continue
                label, row = next(waiting)
                line = Text.assemble(label, " " * (self._gutter - label.cell_len))
                line.append_text(Text(" ").join(self._texts(row, shape)))
                self._append_passing(line, row)
                if shape.sent_at is not None and row.sent:
                    line.append(" " * (shape.sent_at - line.cell_len)).append(row.sent, DIM)
                drawn.append(line)
        return drawn

    def used(self, cell: int) -> int:
        """Columns of labels and cells of a width."""
        gaps = self._columns.count(None)
        return self._gutter + (len(self._columns) - gaps) * (cell + 1) + 2 * gaps - 1

    def widest_cell(self, tail: int) -> int:
        """How wide cells may be, so that `tail` columns are left after them."""
        gaps = self._columns.count(None)
        room = self.width - tail - self._gutter - 2 * gaps + 1
        return max(room // max(len(self._columns) - gaps, 1) - 1, LEAST)

    def longest(self, form: Form) -> int | None:
        """Characters of the longest label in a form; None where a piece cannot be written in it."""
        longest = 1
        for row in self._every_row:
            for cell in row.cells:
                if cell is not None:
                    label = cell.label(form)
                    if label is None:
                        return None
                    longest = max(longest, len(label))
        return longest

    @cached_property
    def tails(self) -> tuple[int, int]:
        """Columns of what waits to go on, and of what was sent."""
        passing = max(sum(len(each.name) + 3 for each in row.passing) for row in self._every_row)
        sent = max(len(row.sent) for row in self._every_row)
        return (passing + 3 if passing else 0), (sent + 2 if sent else 0)

    def _texts(self, row: BufferRow, shape: Shape) -> list[Text]:
        cells = iter(row.cells)
        texts = []
        for column in self._columns:
            if column is None:
                texts.append(Text("…", DIM))
                continue
            cell = next(cells)
            nothing = Text(NOTHING.center(shape.cell), DIM)
            texts.append(nothing if cell is None else cell.text(shape.cell, FORMS[shape.form]))
        return texts

    def _append_passing(self, line: Text, row: BufferRow) -> None:
        for number, cell in enumerate(row.passing):
            text = cell.text(len(cell.name) + 2, FORMS[NAMES])
            rest = f" +{len(row.passing) - number}"
            needed = 1 + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0)
            if line.cell_len + 3 + needed > self.width:
                if line.cell_len + len(rest) <= self.width:
                    line.append(rest, DIM)
                return
            line.append(" " if number else "  │ ", DIM).append_text(text)

    def _header(self, group: int, title: Text, width: int) -> Text:
        """The group's place in the mesh, and the names of the columns."""
        walk, schedule = self._walk, self._walk.schedule
        line = Text.assemble(title, " " * (self._gutter - title.cell_len))
        names = []
        for column in self._columns:
            if column is None:
                names.append(Text(" "))
                continue
            if self._slots:
                member = column // self._pieces
                name = str(walk.mesh.device_id(walk.groups[group][member]))
            else:
                name = chunk_name(schedule.pattern, schedule.chunks, column, group)
            names.append(Text(name[:width].center(width), DIM))
        line.append_text(Text(" ").join(names))
        line.rstrip()
        return line

    @cached_property
    def _labels(self) -> list[list[Text]]:
        walk = self._walk
        positions = [[walk.groups[group][member] for member in self._shown] for group in self.groups]
        flat = [position for group in positions for position in group]
        labels = device_labels(walk.mesh, flat, self._palette, self.width // 4)
        size = len(self._shown)
        return [labels[start : start + size] for start in range(0, len(labels), size)]

    @cached_property
    def _titles(self) -> list[Text]:
        """Where each group stands along the other axes; nothing where there is only one group."""
        walk = self._walk
        others = [axis for axis in walk.mesh.axis_names if axis not in walk.operation.axes]
        if len(walk.groups) == 1:
            others = []
        firsts = [walk.groups[group][0] for group in self.groups]
        titles = [coordinates(walk.mesh, first, self._palette, others) for first in firsts]
        for title in titles:
            title.truncate(self.width // 4, overflow="ellipsis")
        return titles

    @property
    def _shown(self) -> list[int]:
        return [member for member in self._members if member is not None]

    @cached_property
    def _rows(self) -> list[list[BufferRow]]:
        return [[self._maker.row(group, member) for member in self._shown] for group in self.groups]

    @cached_property
    def _every_row(self) -> list[BufferRow]:
        return [row for rows in self._rows for row in rows]


def common_shape(pictures: Sequence[BufferPicture]) -> Shape:
    """How frames of one walk, with the same rows and width, are drawn so that nothing moves between them.

    One form for all; what was sent gives way only to richer numbers.
    """
    passing = max(picture.tails[0] for picture in pictures)
    sent = max(picture.tails[1] for picture in pictures)
    tails = list(dict.fromkeys((passing + sent, passing, 0)))
    found = [_form(pictures, pictures[0].widest_cell(tail)) for tail in tails]
    form = next(each for each in found if FORMS[each].rank == FORMS[found[-1]].rank)
    lengths = (picture.longest(FORMS[form]) or 1 for picture in pictures)
    cell = min(max(*lengths, LEAST - 2) + 2, pictures[0].widest_cell(0))
    used = pictures[0].used(cell) + passing
    return Shape(form, cell, used + 2 if sent and used + sent <= pictures[0].width else None)


def _form(pictures: Sequence[BufferPicture], cell: int) -> int:
    """The richest form of which every label fits cells of a width; names, cut where they must be."""
    for number, form in enumerate(FORMS):
        lengths = [picture.longest(form) for picture in pictures]
        if all(length is not None and length + 2 <= cell for length in lengths):
            return number
    return NAMES
