"""The buffers after one round as a table: a row for every device, a column for every chunk. A window of any
size shows some of it; a page all of a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.text import Text

from shardviz.render.canvas import visible
from shardviz.render.caption import DeviceLabels, coordinates
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.pieces import (
    FORMS,
    NAMES,
    BufferRow,
    BufferRows,
    FrameStats,
    cell_padding,
    cell_text,
    chunk_columns,
    chunk_name,
    sampled,
)
from shardviz.stepping.collective_run import CollectiveRun

MAX_ROWS = 16
"""Devices of one group in a summary at most."""
MAX_COLUMNS = 6
"""Chunks in a summary that cannot show all."""
LEAST = 3
"""Columns of the narrowest cell."""
GAP = 2
WIDEST, TALLEST = 24, 3
"""Columns and lines of a cell at most, in a window that has room for more."""
LOOKED_AT = 64
"""Chunks that decide how wide cells are, of more than that."""


@dataclass(frozen=True)
class TableShape:
    """Common to tables that are alike: the number of a form among `FORMS`, columns of a cell, where what a
    device has sent begins (None where there is no room to say it), all columns, and lines of a cell."""

    form: int
    cell: int = 0
    sent_at: int | None = None
    width: int = 0
    tall: int = 1


class BufferTable:
    """Frame `number` of some groups: a canvas, in which each group has a line that names the chunks.

    With `max_rows` it is a summary on a page of `width` columns: the first and the last of more devices, and
    of chunks that do not fit. `moving`: arrivals are marked, and each device's row ends with what it
    has sent. `ended`: only what is part of the result. Without a `shape` it has its own. The `lens` is a
    member that is marked.
    """

    def __init__(
        self,
        run: CollectiveRun,
        number: int,
        groups: Sequence[int],
        width: int,
        palette: Palette,
        max_rows: int | None = None,
        moving: bool = True,
        ended: bool = False,
        shape: TableShape | None = None,
        lens: int | None = None,
    ) -> None:
        self._run, self._number, self.groups, self._palette = run, number, groups, palette
        self._moving, self._ended, self._lens = moving, ended, lens
        self.page, self.scrolls = width, max_rows is None
        pattern = run.schedule.pattern
        size = pattern.group_size
        self._slots = pattern.kind == "all_to_all"
        self._members: Sequence[int | None] = range(size) if max_rows is None else visible(size, max_rows)
        # The last device of a group has the longest label; of few, all are looked at.
        deciding = self._shown if max_rows else (0, size - 1)
        positions = [run.groups[group][member] for group in groups for member in deciding]
        self._labels = DeviceLabels(run.mesh, positions, palette, width // 4)
        self._gutter = max(self._labels.width, *(title.cell_len for title in self._titles)) + GAP
        self._columns = self._chosen_columns()
        self._gap = self._columns.index(None) if None in self._columns[-2:-1] else len(self._columns)
        self._makers: dict[tuple[int, int], BufferRows] = {}
        self._rows: dict[tuple[int, int, int, int], BufferRow] = {}
        if shape is not None:
            self.shape = shape

    @property
    def summarised(self) -> bool:
        """True if devices or chunks are left out."""
        return None in self._members or None in self._columns

    @cached_property
    def shape(self) -> TableShape:
        """The richest form in which the table fits the page alone."""
        return table_shape(self, self.stats)

    @cached_property
    def stats(self) -> FrameStats:
        """Every row that is drawn."""
        every = len(self._columns)
        return FrameStats(
            [self._row(group, member, 0, every) for group in self.groups for member in self._shown]
        )

    @property
    def width(self) -> int:
        return self.shape.width

    @property
    def height(self) -> int:
        return len(self.groups) * self._lines_of_group

    @property
    def _lines_of_group(self) -> int:
        return 1 + len(self._members) * self.shape.tall

    def lines(self) -> list[Text]:
        """All lines, for a page."""
        return [self.line(y, 0, self.page) for y in range(self.height)]

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""
        number, index = divmod(y, self._lines_of_group)
        row_number, offset = divmod(index - 1, self.shape.tall)
        is_text = not index or offset == self.shape.tall // 2
        member = self._members[row_number] if index else None
        if index and member is None:
            return Text("⋮".rjust(self._gutter - GAP), DIM)
        pitch = self.shape.cell + 1
        first = max(0, (left - self._gutter) // pitch)
        stop = min(len(self._columns), max(first, -(-(right - self._gutter) // pitch) + 1))
        start = self._left_of(first, self.shape.cell) if first else 0
        line = Text() if first else self._label(number, member) if is_text else Text(" " * self._gutter)
        group, shown = self.groups[number], self._columns[first:stop]
        if member is None:
            width = self.shape.cell
            names = (
                " " if each is None else self._written(group, each)[:width].center(width) for each in shown
            )
            line.append_text(Text(" ").join(Text(name, DIM) for name in names))
            line.rstrip()
        else:
            row = self._row(group, member, first, stop)
            line.append_text(Text(" ").join(self._texts(row, shown, is_text)))
            if is_text and stop == len(self._columns):
                self._append_rest(line, row, start)
        return line[left - start : right - start] if left > start or line.cell_len > right - start else line

    def member_at(self, _x: int, y: int) -> int | None:
        """The member whose row a line belongs to; None where there is none."""
        index = y % self._lines_of_group
        return self._members[(index - 1) // self.shape.tall] if index else None

    def room(self, tail: int) -> int:
        """The width of cells that leaves `tail` columns of the page after them."""
        gaps = self._columns.count(None)
        room = self.page - tail - self._gutter - 2 * gaps + 1
        return max(room // max(len(self._columns) - gaps, 1) - 1, LEAST)

    def end_of_cells(self, cell: int) -> int:
        """The column after the last cell if all are `cell` columns wide."""
        return self._left_of(len(self._columns), cell) - 1

    @property
    def longest_heading(self) -> int:
        """Characters of the last name over a column."""
        return len(self._written(self.groups[0], self._columns[-1])) if self._columns else 0

    def _left_of(self, index: int, cell: int) -> int:
        """The column in which the cell of a place begins if all are `cell` wide; that of the gap is one."""
        return self._gutter + index * (cell + 1) - (cell - 1) * (index > self._gap)

    def _chosen_columns(self) -> list[int | None]:
        if self.scrolls:
            return [*chunk_columns(self._run)] if self._run.followed else []
        every = chunk_columns(self._run)
        fits = (self.page - self._gutter + 1) // (LEAST + 1)
        chosen = visible(len(every), fits)
        if None in chosen:
            chosen = visible(len(every), min(fits - 1, MAX_COLUMNS))
        return [None if index is None else every[index] for index in chosen]

    def _label(self, number: int, member: int | None) -> Text:
        if member is None:
            label = self._titles[number].copy()
        else:
            position = self._run.groups[self.groups[number]][member]
            label = self._labels.of(position, member == self._lens)
        return label.append(" " * (self._gutter - label.cell_len))

    def _texts(self, row: BufferRow, columns: Sequence[int | None], is_text: bool) -> list[Text]:
        """The cells of a row: the line with their texts, or one above or below it."""
        cells, shape = iter(row.cells), self.shape
        texts = []
        for column in columns:
            cell = None if column is None else next(cells)
            if not is_text:
                texts.append(cell_padding(cell, shape.cell))
            elif column is None:
                texts.append(Text("…", DIM))
            else:
                texts.append(cell_text(cell, shape.cell, FORMS[shape.form]))
        return texts

    def _append_rest(self, line: Text, row: BufferRow, start: int) -> None:
        """Append what waits to go on, and what was sent; the line begins in column `start`."""
        width = self.shape.width - start
        for number, cell in enumerate(row.passing):
            text = cell.text(len(cell.name) + 2, FORMS[NAMES])
            rest = f" +{len(row.passing) - number}"
            needed = 1 + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0)
            if line.cell_len + 3 + needed > width:
                if line.cell_len + len(rest) <= width:
                    line.append(rest, DIM)
                break
            line.append(" " if number else "  │ ", DIM).append_text(text)
        if self.shape.sent_at is not None and row.sent:
            line.append(" " * (self.shape.sent_at - start - line.cell_len)).append(row.sent, DIM)

    def _written(self, group: int, column: int | None) -> str:
        """The name of a chunk, or the device of a slot."""
        run, schedule = self._run, self._run.schedule
        if column is None:
            return ""
        if self._slots:
            member = column // schedule.pattern.pieces(schedule.chunks)
            return str(run.mesh.device_id(run.groups[group][member]))
        return chunk_name(run, column, group)

    @cached_property
    def _titles(self) -> list[Text]:
        """The coordinates of each group along the other axes; empty where there is only one group."""
        run = self._run
        others = [axis for axis in run.mesh.axis_names if axis not in run.operation.axes]
        if len(run.groups) == 1:
            others = []
        firsts = [run.groups[group][0] for group in self.groups]
        titles = [coordinates(run.mesh, first, self._palette, others) for first in firsts]
        for title in titles:
            title.truncate(self.page // 4, overflow="ellipsis")
        return titles

    @property
    def _shown(self) -> list[int]:
        return [member for member in self._members if member is not None]

    def _row(self, group: int, member: int, first: int, stop: int) -> BufferRow:
        key = (group, member, first, stop)
        if key not in self._rows:
            if (first, stop) not in self._makers:
                frame, columns = self._run.frames[self._number], self._columns[first:stop]
                made = BufferRows(self._run, frame, columns, self._palette, self._moving, self._ended)
                self._makers[first, stop] = made
            self._rows[key] = self._makers[first, stop].row(group, member)
        return self._rows[key]


def table_shape(table: BufferTable, stats: FrameStats) -> TableShape:
    """The shape in which frames with the rows and page of `table` are drawn so that nothing moves. One form
    for all. On a page what was sent gives way, but only to richer numbers; in a window nothing does."""
    lengths = dict(stats.labels())
    passing, sent = stats.longest_passing, max((len(row.sent) for row in stats.rows), default=0)
    sent += GAP * bool(sent)
    tails = [passing + sent] if table.scrolls else dict.fromkeys((passing + sent, passing, 0))
    rooms = [table.room(tail) for tail in tails]
    found = [next((form for form in lengths if lengths[form] + 2 <= room), NAMES) for room in rooms]
    form = next(each for each in found if FORMS[each].rank == FORMS[found[-1]].rank)
    longest = lengths.get(form, 1)
    if table.scrolls:
        cell = max(longest, stats.longest_name, table.longest_heading) + 2
    else:
        cell = min(longest + 2, table.room(0))
    used = table.end_of_cells(cell) + passing
    fits = table.scrolls or used + sent <= table.page
    width = used + sent if table.scrolls else table.page
    return TableShape(form, cell, used + GAP if sent and fits else None, width)


def scrolled_shape(run: CollectiveRun, group: int, width: int, height: int, palette: Palette) -> TableShape:
    """The shape of all frames of a group in a window of `width` columns and `height` lines, which it uses."""
    columns = chunk_columns(run) if run.followed else ()
    table = BufferTable(run, 0, [group], width, palette)
    shape = table_shape(table, sampled(run, group, columns[:LOOKED_AT], palette))
    if not columns:
        return shape
    more = min((width - shape.width) // len(columns), max(0, WIDEST - shape.cell))
    if more > 0:
        added = more * len(columns)
        sent_at = None if shape.sent_at is None else shape.sent_at + added
        shape = replace(shape, cell=shape.cell + more, sent_at=sent_at, width=shape.width + added)
    lines = (height - 1) // run.schedule.pattern.group_size
    return replace(shape, tall=TALLEST) if lines >= TALLEST else shape


def shown_groups(run: CollectiveRun) -> range:
    """The groups that are drawn: all if they fit, else the first."""
    size = run.schedule.pattern.group_size
    count = len(run.groups) if run.frames.before is not None else 1
    return range(count if count * size <= MAX_ROWS else 1)
