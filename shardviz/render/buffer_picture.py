"""Who holds what after one round: a row for every device, a column for every chunk.

In an all-to-all the columns are a device's slots, one for every member: what it has for that member, then
what it got from it. Pieces on their way between two others stand after the slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.text import Text

from shardviz.collectives import Frame, Piece
from shardviz.render.chunk_names import chunk_name, chunk_style
from shardviz.render.device_label import coordinates, device_labels
from shardviz.render.grid import DIM, visible
from shardviz.render.palette import Palette
from shardviz.render.piece_label import EMPTY, Cell, Naming, piece_cell
from shardviz.stepping.walk import Walk

MAX_ROWS = 16
"""Devices of one group in a picture at most."""
LEAST = 3
"""Columns of the narrowest cell."""
GAP = 2
NOTHING = "·"
COMBINED = {"pmax": "max", "pmin": "min"}


@dataclass(frozen=True)
class _Row:
    """A device's line: its cells by column, what is on its way through it, what it has just sent."""

    label: Text
    cells: tuple[Cell | None, ...]
    passing: tuple[Cell, ...]
    sent: str


class BufferPicture:
    """One frame for some of the groups, within `width` columns.

    `moving`: what has just arrived is marked, and beside each device stands what it has sent.
    """

    def __init__(
        self,
        walk: Walk,
        frame: Frame,
        groups: Sequence[int],
        width: int,
        palette: Palette,
        max_rows: int = MAX_ROWS,
        moving: bool = True,
    ) -> None:
        self._walk, self._frame, self._groups, self._palette = walk, frame, groups, palette
        self._width, self._moving = width, moving
        pattern = walk.schedule.pattern
        self._members = visible(pattern.group_size, max_rows)
        self._slots = pattern.kind == "all_to_all"
        self._pieces = pattern.pieces(walk.schedule.chunks)
        count = pattern.group_size * self._pieces if self._slots else walk.schedule.chunks
        self._gutter = max(label.cell_len for label in (*self._labels[0], *self._titles))
        room = width - self._gutter - 1
        fits = room // (LEAST + 1)
        self._columns = visible(count, fits)
        if None in self._columns:
            self._columns = visible(count, min(fits - 1, 6))

    @cached_property
    def cell_width(self) -> int:
        """Columns of the narrowest cell that shows as much as fits."""
        gaps = self._columns.count(None)
        room = self._width - self._gutter - GAP - 2 * gaps
        most = max(room // (len(self._columns) - gaps) - 1, LEAST)
        cells = [cell for rows in self._rows for row in rows for cell in row.cells]
        used = (len(cell.label(most)) + 2 for cell in cells if cell is not None and cell.needed)
        return max(used, default=LEAST)

    @property
    def summarised(self) -> bool:
        """Whether devices or chunks are left out."""
        return None in self._members or None in self._columns

    @cached_property
    def marks(self) -> frozenset[str]:
        """Which marks there are: ``arrived``, ``partial``, ``counted``, ``unneeded``, ``passing``."""
        found = {"passing"} if self._passing else set()
        for row in (row for rows in self._rows for row in rows):
            for cell in (*row.cells, *row.passing):
                if cell is not None:
                    found |= {name for name in ("arrived", "partial") if getattr(cell, name) and cell.needed}
                    found |= set() if cell.needed else {"unneeded"}
                    found |= {"counted"} if "Σ" in cell.label(self.cell_width) else set()
        return frozenset(found)

    def lines(self, cell: int) -> list[Text]:
        """For every group a line that names the columns, then its devices; cells are `cell` columns wide."""
        drawn = []
        every = [row for rows in self._rows for row in rows]
        gaps = self._columns.count(None)
        used = self._gutter + GAP + (len(self._columns) - gaps) * (cell + 1) + 2 * gaps
        passing = max(sum(len(each.labels[-1]) + 3 for each in row.passing) for row in every)
        used += passing + 3 if passing else 0
        with_sent = used + 1 + max(len(row.sent) for row in every) <= self._width
        for group, title, rows in zip(self._groups, self._titles, self._rows, strict=True):
            drawn.append(self._header(group, title, cell))
            waiting = iter(rows)
            for member in self._members:
                if member is None:
                    drawn.append(Text("⋮".rjust(self._gutter), DIM))
                    continue
                row = next(waiting)
                line = Text.assemble(row.label, " " * (self._gutter + GAP - row.label.cell_len))
                line.append_text(Text(" ").join(self._cells(row, cell)))
                self._append_passing(line, row)
                if with_sent and row.sent:
                    line.append(" " * (used + 1 - line.cell_len)).append(row.sent, DIM)
                drawn.append(line)
        return drawn

    def _cells(self, row: _Row, width: int) -> list[Text]:
        cells = iter(row.cells)
        texts = []
        for column in self._columns:
            if column is None:
                texts.append(Text("…", DIM))
                continue
            cell = next(cells)
            texts.append(Text(NOTHING.center(width), DIM) if cell is None else cell.text(width))
        return texts

    def _append_passing(self, line: Text, row: _Row) -> None:
        for number, cell in enumerate(row.passing):
            text = replace(cell, labels=cell.labels[-1:]).text(len(cell.labels[-1]) + 2)
            rest = f" +{len(row.passing) - number}"
            needed = 1 + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0)
            if line.cell_len + 3 + needed > self._width:
                if line.cell_len + len(rest) <= self._width:
                    line.append(rest, DIM)
                return
            line.append(" " if number else "  │ ", DIM).append_text(text)

    def _header(self, group: int, title: Text, width: int) -> Text:
        """The group's place in the mesh, and the names of the columns."""
        walk, schedule = self._walk, self._walk.schedule
        line = Text.assemble(title, " " * (self._gutter + GAP - title.cell_len))
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
        positions = [[walk.groups[group][member] for member in self._shown] for group in self._groups]
        flat = [position for group in positions for position in group]
        labels = device_labels(walk.mesh, flat, self._palette, self._width // 4)
        size = len(self._shown)
        return [labels[start : start + size] for start in range(0, len(labels), size)]

    @cached_property
    def _titles(self) -> list[Text]:
        """Where each group stands along the other axes; nothing where there is only one group."""
        walk = self._walk
        others = [axis for axis in walk.mesh.axis_names if axis not in walk.operation.axes]
        if len(walk.groups) == 1:
            others = []
        firsts = [walk.groups[group][0] for group in self._groups]
        titles = [coordinates(walk.mesh, first, self._palette, others) for first in firsts]
        for title in titles:
            title.truncate(self._width // 4, overflow="ellipsis")
        return titles

    @property
    def _shown(self) -> list[int]:
        return [member for member in self._members if member is not None]

    @property
    def _passing(self) -> bool:
        return any(row.passing for rows in self._rows for row in rows)

    @cached_property
    def _rows(self) -> list[list[_Row]]:
        found = []
        for group, labels in zip(self._groups, self._labels, strict=True):
            found.append(
                [self._row(group, member, label) for member, label in zip(self._shown, labels, strict=True)]
            )
        return found

    def _row(self, group: int, member: int, label: Text) -> _Row:
        chosen: dict[int, Piece] = {}
        passing = []
        for piece in self._frame.pieces(member, group):
            column = self._column(member, piece.chunk)
            other = chosen.get(-1 if column is None else column)
            if column is None or (other is not None and not self._ends(member, piece.chunk)):
                passing += [piece] if piece.needed else []
                continue
            if other is not None and other.needed:
                passing.append(other)
            chosen[column] = piece
        cells = tuple(
            self._cell(chosen[column], group) if column in chosen else None
            for column in self._columns
            if column is not None
        )
        sent = self._sent(group, member)
        waiting = tuple(self._cell(piece, group) for piece in passing)
        return _Row(label, cells, tuple(cell for cell in waiting if cell.labels != (EMPTY,)), sent)

    def _column(self, member: int, chunk: int) -> int | None:
        """The column of a chunk on a member; None for one that only passes through."""
        if not self._slots:
            return chunk
        pair, piece = divmod(chunk, self._pieces)
        origin, target = divmod(pair, self._walk.schedule.pattern.group_size)
        if member not in (origin, target):
            return None
        return (origin if member == target else target) * self._pieces + piece

    def _ends(self, member: int, chunk: int) -> bool:
        """Whether a chunk of an all-to-all is to end on the member."""
        return chunk // self._pieces % self._walk.schedule.pattern.group_size == member

    def _cell(self, piece: Piece, group: int) -> Cell:
        schedule = self._walk.schedule
        name = chunk_name(schedule.pattern, schedule.chunks, piece.chunk, group)
        style = chunk_style(self._palette, schedule.chunks, piece.chunk, group)
        cell = piece_cell(piece, name, style, self._naming)
        return cell if self._moving else replace(cell, arrived=False)

    @cached_property
    def _naming(self) -> Naming:
        pattern, sends = self._walk.schedule.pattern, self._frame.sends
        return Naming(
            self._slots,
            pattern.group_size if pattern.reduces else 1,
            COMBINED.get(self._walk.operation.name, "+"),
            self._moving and sends is not None and bool(sends.reduce.any()),
        )

    def _sent(self, group: int, member: int) -> str:
        """What a member has just sent: ``α→1``, ``2 chunks→1 α→3``."""
        sends = self._frame.sends
        if sends is None or not self._moving:
            return ""
        schedule, walk = self._walk.schedule, self._walk
        mine = (sends.src == member).nonzero()[0]
        by_chunks: dict[tuple[int, ...], list[int]] = {}
        targets: dict[int, list[int]] = {}
        for target, chunk in zip(sends.dst[mine].tolist(), sends.chunk[mine].tolist(), strict=True):
            targets.setdefault(target, []).append(chunk)
        for target, chunks in targets.items():
            by_chunks.setdefault(tuple(sorted(chunks)), []).append(target)
        words = []
        for carried, receivers in by_chunks.items():
            ids = [str(walk.mesh.device_id(walk.groups[group][receiver])) for receiver in receivers]
            to = ",".join(ids) if len(ids) < 4 else f"{len(ids)} devices"
            names = [chunk_name(schedule.pattern, schedule.chunks, chunk, group) for chunk in carried]
            what = ",".join(names) if len(names) < 4 else f"{len(names)} chunks"
            if len(names) > 2 and list(carried) == list(range(carried[0], carried[-1] + 1)):
                what = f"{names[0]}–{names[-1]}"
            words.append(f"{what}→{to}")
        return " ".join(words) if len(words) < 4 else f"{len(mine)} chunks→{len(targets)} devices"
