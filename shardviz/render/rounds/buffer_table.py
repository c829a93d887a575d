"""The buffers after one round as a table on a page: a row for every device, a column for every chunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rich.text import Text

from shardviz.render.caption import DeviceLabels, coordinates
from shardviz.render.lines import visible
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.pieces import (
    FORMS,
    NAMES,
    BufferRow,
    BufferRows,
    FrameStats,
    cell_text,
    chunk_columns,
    chunk_name,
)
from shardviz.render.rounds.round_traffic import RoundTraffic
from shardviz.stepping.collective_run import CollectiveRun

MAX_ROWS = 16
"""Devices of one group at most, of which all are drawn."""
GAP = 2


class TableShape(NamedTuple):
    """A number in `FORMS`, a cell's columns, where what was sent begins, if that is shown."""

    form: int
    cell: int = 0
    sent_at: int | None = None


class BufferTable:
    """Frame `number` of some groups: a line that names a group's chunks, then one a device; the first and the
    last of more than `max_rows`, and of chunks that do not fit. `moving`: arrivals are marked, and rows end
    with what was sent. `ended`: only what is part of the result."""

    def __init__(
        self,
        run: CollectiveRun,
        number: int,
        groups: Sequence[int],
        width: int,
        palette: Palette,
        max_rows: int = MAX_ROWS,
        moving: bool = True,
        ended: bool = False,
    ) -> None:
        self._run, self.groups, self.page = run, groups, width
        self._members = visible(run.schedule.pattern.group_size, max_rows)
        positions = [run.groups[group][member] for group in groups for member in self._shown]
        self._labels = DeviceLabels(run.mesh, positions, palette, width // 4)
        # The coordinates of each group along the other axes; nothing where there is only one group.
        others = [axis for axis in run.mesh.axis_names if axis not in run.operation.axes]
        others = others if len(run.groups) > 1 else []
        self._titles = [coordinates(run.mesh, run.groups[group][0], palette, others) for group in groups]
        for title in self._titles:
            title.truncate(width // 4, overflow="ellipsis")
        self._gutter = max(self._labels.width, *(title.cell_len for title in self._titles)) + GAP
        every = chunk_columns(run)
        fits = (width - self._gutter + 1) // 4
        chosen = visible(len(every), fits)
        if None in chosen:
            chosen = visible(len(every), min(fits - 1, 6))
        self._columns = [None if index is None else every[index] for index in chosen]
        traffic = RoundTraffic(run, number) if moving else None
        self._maker = BufferRows(run, run.frames[number], self._columns, palette, moving, ended, traffic)

    @property
    def _shown(self) -> list[int]:
        return [member for member in self._members if member is not None]

    @property
    def summarised(self) -> bool:
        return None in self._members or None in self._columns

    @cached_property
    def shape(self) -> TableShape:
        """The richest form in which the table fits the page. What was sent gives way, but only to richer
        numbers."""
        stats, lengths = self.stats, dict(self.stats.labels())
        passing, sent = stats.longest_passing, max((len(row.sent) for row in stats.rows), default=0)
        sent += GAP * bool(sent)
        rooms = [self._room(tail) for tail in dict.fromkeys((passing + sent, passing, 0))]
        forms = [next((form for form in lengths if lengths[form] + 2 <= room), NAMES) for room in rooms]
        form = next(name for name in forms if FORMS[name].rank == FORMS[forms[-1]].rank)
        cell = min(lengths.get(form, 1) + 2, self._room(0))
        # The column after the last cell if all are that wide; that of a gap is one.
        end = self._gutter + len(self._columns) * (cell + 1) - (cell - 1) * self._columns.count(None) - 1
        used = end + passing
        return TableShape(form, cell, used + GAP if sent and used + sent <= self.page else None)

    @cached_property
    def _rows(self) -> dict[tuple[int, int], BufferRow]:
        return {
            (group, member): self._maker.row(group, member) for group in self.groups for member in self._shown
        }

    @cached_property
    def stats(self) -> FrameStats:
        return FrameStats([*self._rows.values()])

    def lines(self) -> list[Text]:
        run, schedule = self._run, self._run.schedule

        def heading(group: int, column: int) -> str:
            """The name of a chunk, or the device of a slot."""
            if schedule.pattern.kind != "all_to_all":
                return chunk_name(run, column, group)
            member = column // schedule.pattern.pieces(schedule.chunks)
            return str(run.mesh.device_id(run.groups[group][member]))

        lines = []
        cell = self.shape.cell
        for group, title in zip(self.groups, self._titles, strict=True):
            names = (None if chunk is None else heading(group, chunk) for chunk in self._columns)
            cells = [Text(" " if name is None else name[:cell].center(cell), DIM) for name in names]
            lines.append(self._line(title, cells))
            lines[-1].rstrip()
            for member in self._members:
                if member is None:
                    lines.append(Text("⋮".rjust(self._gutter - GAP), DIM))
                    continue
                row = self._rows[group, member]
                held = iter(row.cells)
                cells = [
                    Text("…", DIM) if column is None else cell_text(next(held), cell, FORMS[self.shape.form])
                    for column in self._columns
                ]
                lines.append(self._line(self._labels.of(run.groups[group][member]), cells))
                self._append_rest(lines[-1], row)
        return lines

    def _line(self, label: Text, cells: Sequence[Text]) -> Text:
        return Text.assemble(label, " " * (self._gutter - label.cell_len), Text(" ").join(cells))

    def _room(self, tail: int) -> int:
        """The width of cells that leaves `tail` columns of the page after them."""
        gaps = self._columns.count(None)
        room = self.page - tail - self._gutter - 2 * gaps + 1
        return max(room // max(len(self._columns) - gaps, 1) - 1, 3)

    def _append_rest(self, line: Text, row: BufferRow) -> None:
        for number, cell in enumerate(row.passing):
            text = cell.text(len(cell.name) + 2, FORMS[NAMES])
            rest = f" +{len(row.passing) - number}"
            needed = 1 + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0)
            if line.cell_len + 3 + needed > self.page:
                if line.cell_len + len(rest) <= self.page:
                    line.append(rest, DIM)
                break
            line.append(" " if number else "  │ ", DIM).append_text(text)
        if self.shape.sent_at is not None and row.sent:
            line.append(" " * (self.shape.sent_at - line.cell_len)).append(row.sent, DIM)
        line.truncate(self.page)


def shown_groups(run: CollectiveRun) -> range:
    """The groups that are drawn: all if they fit, else the first."""
    size = run.schedule.pattern.group_size
    count = len(run.groups) if run.frames.before is not None else 1
    return range(count if count * size <= MAX_ROWS else 1)
