"""Who holds what after one round, as a table of any size: a row for every device, a column for every chunk.

Only what is seen is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from shardviz.render.layouts.grid import DIM
from shardviz.render.palette import Palette
from shardviz.render.rounds.buffer_rows import BufferRow, BufferRows
from shardviz.render.rounds.chunk_names import chunk_name
from shardviz.render.rounds.device_label import device_labels
from shardviz.render.rounds.looked_at import NAMES, LookedAt, all_columns
from shardviz.render.rounds.piece_label import FORMS
from shardviz.stepping.collective_run import CollectiveRun

NOTHING = "·"
GAP = 2
LOOKED_AT = 64
"""Columns that decide how wide cells are, of more than that."""


@dataclass(frozen=True)
class TableShape:
    """How all frames of a walk are drawn: the number of a form, columns of a cell, of a label and of what is
    sent."""

    form: int
    cell: int
    gutter: int
    sent: int


def table_shape(walk: CollectiveRun, group: int, width: int, palette: Palette) -> TableShape:
    """The richest form in which every chunk fits a page beside what was sent; names where none does."""
    columns = all_columns(walk) or []
    last = walk.groups[group][-1]
    gutter = device_labels(walk.mesh, [walk.groups[group][0], last], palette, width // 4)[-1].cell_len + GAP
    seen = LookedAt(walk, group, columns[:LOOKED_AT], palette)
    sent = seen.longest_sent + GAP
    forms = [*seen.labels()]
    fitting = (each for each in forms if gutter + len(columns) * (each[1] + 3) + sent <= width)
    form, longest = next(fitting, forms[-1] if forms else (NAMES, 1))
    names = max(seen.longest_name, len(_name(walk, group, columns[-1])) if columns else 1)
    return TableShape(form, max(longest, names) + 2, gutter, sent)


class BufferTable:
    """Frame `number` of one group: a canvas of `width` columns and `height` lines, of which the first names
    the chunks."""

    def __init__(
        self, walk: CollectiveRun, number: int, group: int, shape: TableShape, palette: Palette
    ) -> None:
        self._walk, self._group, self._shape, self._palette = walk, group, shape, palette
        self._number = number
        self._columns = all_columns(walk) or []
        self._slots = walk.schedule.pattern.kind == "all_to_all"
        self._drawn: dict[tuple[int, int, int], BufferRow] = {}
        self.width = shape.gutter + len(self._columns) * (shape.cell + 1) + shape.sent
        self.height = walk.schedule.pattern.group_size + 1

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""
        shape = self._shape
        pitch = shape.cell + 1
        first = max(0, (left - shape.gutter) // pitch)
        stop = min(len(self._columns), max(first, -(-(right - shape.gutter) // pitch)))
        start = shape.gutter + first * pitch if first else 0
        line = Text() if first else self._label(y)
        shown = self._columns[first:stop]
        if not y:
            for column in shown:
                line.append(_name(self._walk, self._group, column)[: shape.cell].center(pitch), DIM)
        else:
            row = self._row(y - 1, first, stop)
            for cell in row.cells:
                nothing = Text(NOTHING.center(shape.cell), DIM)
                line.append_text(nothing if cell is None else cell.text(shape.cell, FORMS[shape.form]))
                line.append(" ")
            if stop == len(self._columns) and row.sent:
                line.append(" " + row.sent, DIM)
        found = line[left - start : right - start]
        found.rstrip()
        return found

    def _row(self, member: int, first: int, stop: int) -> BufferRow:
        key = (member, first, stop)
        if key not in self._drawn:
            frame = self._walk.frames[self._number]
            columns = self._columns[first:stop]
            rows = BufferRows(self._walk, frame, columns, self._palette, bool(self._number), False)
            self._drawn[key] = rows.row(self._group, member)
        return self._drawn[key]

    def _label(self, y: int) -> Text:
        if not y:
            return Text(" " * self._shape.gutter)
        position = self._walk.groups[self._group][y - 1]
        label = device_labels(self._walk.mesh, [position], self._palette, self._shape.gutter - GAP)[0]
        return Text.assemble(label, " " * (self._shape.gutter - label.cell_len))


def _name(walk: CollectiveRun, group: int, column: int) -> str:
    """What stands over a column: a chunk, or the device of a slot."""
    schedule = walk.schedule
    if schedule.pattern.kind == "all_to_all":
        member = column // schedule.pattern.pieces(schedule.chunks)
        return str(walk.mesh.device_id(walk.groups[group][member]))
    return chunk_name(schedule.pattern, schedule.chunks, column, group)
