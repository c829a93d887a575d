"""The rows of one frame: for every device its cells, the pieces that wait to go on, and those it has sent.
The columns are chunks. In an all-to-all they are a device's slots, one for every member: what it has for that
member, then what it got from it. Pieces on their way between two others have no slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardviz.collectives.frames import Frame, Piece
from shardviz.collectives.schedule import Sends
from shardviz.collectives.values import Bools
from shardviz.render.palette import Palette
from shardviz.render.rounds.pieces import FORMS, Naming, PieceCell, chunk_name, chunk_style, piece_cell
from shardviz.stepping.collective_run import CollectiveRun

COMBINED = {"pmax": "max", "pmin": "min"}
MAX_CELLS = 48
"""Chunks of a device that have a cell each; of more a bar tells how many are there."""
MAX_PIECES = 640
"""Pieces that are looked at; of more only names are drawn."""
NAMES = len(FORMS) - 1


@dataclass(frozen=True)
class BufferRow:
    """A device's line: its cells by column, what is on its way through it, what it has just sent."""

    cells: tuple[PieceCell | None, ...]
    passing: tuple[PieceCell, ...]
    sent: str


class BufferRows:
    """The rows of a frame for some columns. `moving`: arrivals are marked, and rows list what was sent.
    `ended`: only what is part of the result."""

    def __init__(
        self,
        run: CollectiveRun,
        frame: Frame,
        columns: Sequence[int | None],
        palette: Palette,
        moving: bool,
        ended: bool,
    ) -> None:
        self._run, self._frame, self._palette = run, frame, palette
        self._moving, self._ended = moving, ended
        self._columns = [column for column in columns if column is not None]
        schedule = run.schedule
        self._slots = schedule.pattern.kind == "all_to_all"
        self._pieces = schedule.pattern.pieces(schedule.chunks)
        self._empty = empty_chunks(run)
        self._wanted = frozenset(self._columns)
        self._within = None
        if self._columns and not self._slots:
            self._within = range(min(self._columns), max(self._columns) + 1)
        sends = frame.sends
        self._naming = Naming(
            self._slots,
            schedule.pattern.group_size if schedule.pattern.reduces else 1,
            COMBINED.get(run.operation.name, "+"),
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
        origin, target = divmod(pair, self._run.schedule.pattern.group_size)
        if member not in (origin, target):
            return None
        return (origin if member == target else target) * self._pieces + piece

    def _ends(self, member: int, chunk: int) -> bool:
        return chunk // self._pieces % self._run.schedule.pattern.group_size == member

    def _cell(self, piece: Piece, group: int) -> PieceCell:
        style = chunk_style(self._palette, self._run, piece.chunk, group)
        cell = piece_cell(piece, chunk_name(self._run, piece.chunk, group), style, self._naming)
        return cell if self._moving else replace(cell, arrived=False)

    def sent(self, group: int, member: int) -> str:
        """The chunks that a member has just sent, without empty ones: ``α→1``, ``2 chunks→1 α→3``."""
        sends = self._frame.sends
        if sends is None or not self._moving:
            return ""
        run = self._run
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
            ids = [str(run.mesh.device_id(run.groups[group][receiver])) for receiver in receivers]
            to = ",".join(ids) if len(ids) < 4 else f"{len(ids)} devices"
            names = [chunk_name(run, chunk, group) for chunk in carried]
            what = ",".join(names) if len(names) < 4 else f"{len(names)} chunks"
            if len(names) > 2 and list(carried) == list(range(carried[0], carried[-1] + 1)):
                what = f"{names[0]}–{names[-1]}"
            words.append(f"{what}→{to}")
        return " ".join(words) if len(words) < 4 else f"{len(mine)} chunks→{len(targets)} devices"


def empty_chunks(run: CollectiveRun) -> Bools | None:
    """A flag for each chunk, True if it is empty; None where none is, and where all are."""
    if isinstance(run.chunk_bytes, int):
        return None
    empty = run.chunk_bytes == 0
    return empty if empty.any() and not empty.all() else None


def carried(run: CollectiveRun, sends: Sends) -> Sends:
    """The sends of a round without those of empty chunks."""
    empty = empty_chunks(run)
    if empty is None:
        return sends
    sends = sends.expanded(run.schedule.chunks)
    kept = ~empty[sends.chunk]
    return Sends(sends.src[kept], sends.dst[kept], sends.chunk[kept], sends.reduce[kept])


def empty_note(run: CollectiveRun) -> str:
    """A sentence on how many chunks are empty, and why; "" where none is."""
    empty = empty_chunks(run)
    if empty is None or run.schedule.pattern.kind == "all_to_all":
        return ""
    chunks = run.schedule.chunks
    count = int(empty.sum())
    are = "is" if count == 1 else "are"
    return f"{count:,} of the {chunks:,} chunks {are} empty: a shard has fewer numbers than chunks"


def drawn_columns(run: CollectiveRun) -> Sequence[int] | None:
    """The columns of a device's cells, as `BufferRows` counts them; None where they are too many, or chunks
    are not tracked."""
    columns = chunk_columns(run) if run.followed else None
    return columns if columns is not None and len(columns) <= MAX_CELLS else None


def chunk_columns(run: CollectiveRun) -> Sequence[int]:
    """The columns of chunks that are not empty."""
    pattern, chunks = run.schedule.pattern, run.schedule.chunks
    if pattern.kind == "all_to_all":
        return range(pattern.group_size * pattern.pieces(chunks))
    empty = empty_chunks(run)
    found: Sequence[int] = range(chunks) if empty is None else (~empty).nonzero()[0].tolist()
    return found


@dataclass(frozen=True)
class FrameStats:
    """Rows that are to be drawn alike: how wide labels are, which marks there are. `forms` are the numbers of
    those among `FORMS` that may be taken."""

    rows: Sequence[BufferRow]
    forms: Sequence[int] = range(len(FORMS))

    @cached_property
    def cells(self) -> list[PieceCell]:
        """All cells of the rows, and what waits to go on."""
        return [cell for row in self.rows for cell in (*row.cells, *row.passing) if cell is not None]

    @property
    def vacant(self) -> bool:
        """True if a device has nothing in some column."""
        return any(None in row.cells for row in self.rows)

    @property
    def passing(self) -> bool:
        """True if anything without a slot waits to go on."""
        return any(row.passing for row in self.rows)

    @property
    def sent(self) -> str:
        """The words for what the first device that has sent anything has sent."""
        return next((row.sent for row in self.rows if row.sent), "")

    @property
    def longest_sent(self) -> int:
        """Characters of what a device has sent."""
        return max((len(row.sent) for row in self.rows), default=0)

    @property
    def longest_passing(self) -> int:
        """Columns of what waits to go on, with the line before it."""
        longest = max((sum(len(each.name) + 3 for each in row.passing) for row in self.rows), default=0)
        return longest + 3 if longest else 0

    @property
    def longest_name(self) -> int:
        return max((len(cell.name) for cell in self.cells), default=1)

    def labels(self) -> Iterator[tuple[int, int]]:
        """The forms in which every piece can be written, the richest first, and the longest label in each."""
        cells = [cell for row in self.rows for cell in row.cells if cell is not None]
        for number in self.forms:
            lengths = [
                None if label is None else len(label) for label in (c.label(FORMS[number]) for c in cells)
            ]
            known = [length for length in lengths if length is not None]
            if len(known) == len(lengths):
                yield number, max(known, default=1)


def sampled(run: CollectiveRun, group: int, columns: Sequence[int], palette: Palette) -> FrameStats:
    """Every device's row in the first and the last frame and some between; of large groups some rows. Where
    sums are made, all forms say whose, or of how many; where pieces are too many, they have names."""
    rounds, size = run.schedule.rounds, run.schedule.pattern.group_size
    pieces = size * len(columns)
    frames = sorted({rounds, *range(0, rounds, max(1, -(-rounds // max(1, MAX_PIECES // max(1, pieces)))))})
    members = range(size)
    if pieces > MAX_PIECES:
        frames, members = sorted({0, rounds // 2}), range(min(2, size))
    makers = [BufferRows(run, run.frames[number], columns, palette, True, False) for number in frames]
    reduces = run.schedule.pattern.reduces
    forms = [
        number
        for number, form in enumerate(FORMS)
        if (number == NAMES or pieces <= MAX_PIECES) and (not reduces or form.addends or form.counted)
    ]
    return FrameStats([maker.row(group, member) for maker in makers for member in members], forms)
