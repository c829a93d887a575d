"""What stands in the picture of one frame: for every device its cells, what waits to go on, what it has sent.

The columns are chunks. In an all-to-all they are a device's slots, one for every member: what it has for that
member, then what it got from it. Pieces on their way between two others have no slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.style import Style

from shardviz.collectives import Frame, Piece
from shardviz.render.palette import Palette
from shardviz.render.rounds.chunk_names import chunk_name, chunk_style
from shardviz.render.rounds.empty_chunks import empty_chunks
from shardviz.render.rounds.piece_label import Cell, Naming, piece_cell
from shardviz.stepping.collective_run import CollectiveRun

COMBINED = {"pmax": "max", "pmin": "min"}


@dataclass(frozen=True)
class BufferRow:
    """A device's line: its cells by column, what is on its way through it, what it has just sent."""

    cells: tuple[Cell | None, ...]
    passing: tuple[Cell, ...]
    sent: str


class BufferRows:
    """The rows of a frame for some columns. `moving`: what has just arrived is marked, what was sent is told.

    `ended`: only what is part of the result.
    """

    def __init__(
        self,
        walk: CollectiveRun,
        frame: Frame,
        columns: Sequence[int | None],
        palette: Palette,
        moving: bool,
        ended: bool,
    ) -> None:
        self._walk, self._frame, self._palette = walk, frame, palette
        self._moving, self._ended = moving, ended
        self._columns = [column for column in columns if column is not None]
        schedule = walk.schedule
        self._slots = schedule.pattern.kind == "all_to_all"
        self._pieces = schedule.pattern.pieces(schedule.chunks)
        self._empty = empty_chunks(walk)
        self._wanted = frozenset(self._columns)
        self._within = None
        if self._columns and not self._slots:
            self._within = range(min(self._columns), max(self._columns) + 1)
        sends = frame.sends
        self._naming = Naming(
            self._slots,
            schedule.pattern.group_size if schedule.pattern.reduces else 1,
            COMBINED.get(walk.operation.name, "+"),
            moving and sends is not None and bool(sends.reduce.any()),
        )

    def row(self, group: int, member: int) -> BufferRow:
        """A member's row."""
        chosen: dict[int, Piece] = {}
        passing: list[Piece] = []
        for piece in self._frame.pieces(member, group, self._within):
            if self._ended and not piece.needed:
                continue
            if not self._slots and piece.chunk not in self._wanted:
                continue
            column = self._column(member, piece.chunk)
            other = chosen.get(-1 if column is None else column)
            if column is None or (other is not None and not self._ends(member, piece.chunk)):
                passing += [piece] if piece.needed else []
                continue
            if other is not None and other.needed:
                passing.append(other)
            chosen[column] = piece
        cells = tuple(
            self._cell(chosen[column], group) if column in chosen else None for column in self._columns
        )
        waiting = tuple(self._cell(piece, group) for piece in passing)
        return BufferRow(cells, tuple(cell for cell in waiting if not cell.empty), self.sent(group, member))

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
        cell = piece_cell(
            piece, self._name(piece.chunk, group), self._style(piece.chunk, group), self._naming
        )
        return cell if self._moving else replace(cell, arrived=False)

    def _name(self, chunk: int, group: int) -> str:
        schedule = self._walk.schedule
        return chunk_name(schedule.pattern, schedule.chunks, chunk, group)

    def _style(self, chunk: int, group: int) -> Style:
        return chunk_style(self._palette, self._walk.schedule.chunks, chunk, group)

    def sent(self, group: int, member: int) -> str:
        """What a member has just sent: ``α→1``, ``2 chunks→1 α→3``, but for empty chunks."""
        sends = self._frame.sends
        if sends is None or not self._moving:
            return ""
        walk = self._walk
        mine = (sends.src == member).nonzero()[0]
        if self._empty is not None:
            mine = mine[~self._empty[sends.chunk[mine]]]
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
            names = [self._name(chunk, group) for chunk in carried]
            what = ",".join(names) if len(names) < 4 else f"{len(names)} chunks"
            if len(names) > 2 and list(carried) == list(range(carried[0], carried[-1] + 1)):
                what = f"{names[0]}–{names[-1]}"
            words.append(f"{what}→{to}")
        return " ".join(words) if len(words) < 4 else f"{len(mine)} chunks→{len(targets)} devices"
