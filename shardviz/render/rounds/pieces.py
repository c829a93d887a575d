"""Pieces in cells, in the form that a picture has room for, and the rows of a frame: a device's cells, pieces
that wait to go on, and those it sent. Columns are chunks; in an all-to-all they are a slot for every member
(what a device has for it, then what it got from it), and pieces between two others have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.collectives.frames import Frame, Piece
from shardviz.collectives.values import Values, plain_values
from shardviz.errors import plural
from shardviz.render.palette import DIM, GLYPHS, PARTIAL, SUBSCRIPTS, Palette, glyph
from shardviz.render.rounds.round_traffic import Moves, RoundTraffic, empty_chunks
from shardviz.stepping.collective_run import CollectiveRun

ARRIVED = "▸"
"""Stands before a piece that came in the last round."""
NOTHING = "·"
"""Stands where a device has no piece."""
EMPTY = "–"
"""A chunk without any element."""
LISTED = 16
"""Numbers in a cell at most; of more, the first two and the last."""
NAMED = 3
"""Chunks, and devices, that are named one by one."""


class LabelForm(NamedTuple):
    """The way every piece of a picture is written: `first` and `last` numbers before and after ``…`` where
    there are more, with `first` None all numbers, with 0 none but the piece's name. `addends`: sums are
    written out; `counted`: sums say of how many; `named`: the chunk's name stands before its numbers."""

    first: int | None
    last: int = 0
    addends: bool = False
    counted: bool = False
    named: bool = False

    @property
    def rank(self) -> int:
        """0 with addends, 1 with all numbers, 2 with some, 3 with none."""
        if self.addends:
            return 0
        return 1 if self.first is None else 2 if self.first else 3


FORMS = (
    LabelForm(None, addends=True, named=True),
    *(
        LabelForm(first, last, counted=counted, named=named)
        for first, last in ((None, 0), (2, 1), (1, 1), (1, 0))
        for counted, named in ((True, True), (True, False), (False, False))
    ),
    LabelForm(0, counted=True),
)
"""From the richest to the shortest."""


@dataclass(frozen=True)
class PieceCell:
    """A piece as it is drawn: its name, its `numbers` (None: none; or the first and last of `length`), its
    marks. `sums` are its written addends (``3+5``, ``3+5=8``), `count` how many of a sum (``Σ2``); `wraps`:
    its type cannot hold the sum; `named`: its name may stand before its numbers."""

    name: str
    numbers: tuple[str, ...] | None
    length: int
    style: Style
    arrived: bool = False
    needed: bool = True
    partial: bool = False
    sums: tuple[str, ...] = ()
    count: str = ""
    wraps: bool = False
    named: bool = False

    @property
    def empty(self) -> bool:
        return self.numbers is not None and not self.length

    def label(self, form: LabelForm) -> str | None:
        """The cell's text without marks; None for what cannot be written in that form."""
        if self.empty:
            return EMPTY
        if self.numbers is None or form.rank == 3:
            return self.count or self.name
        if form.addends and self.count:
            return ", ".join(self.sums) or None
        if form.first is None or self.length <= form.first + form.last:
            if self.length > LISTED:
                return None
            words = ", ".join(self.numbers)
        else:
            words = ", ".join((*self.numbers[: form.first], "…", *self.numbers[-1:] * form.last))
        name = f"{self.name} " if form.named and self.named else ""
        return f"{name}{words}{' ' if form.counted and self.count else ''}{self.count * form.counted}"

    def text(self, width: int, form: LabelForm) -> Text:
        """In exactly `width` columns, the first and the last of them for marks."""
        label = (self.label(form) or self.name)[: width - 2]
        if self.empty:
            return Text(label.center(width), DIM)
        if not self.needed:
            return Text(f"({label})".center(width), DIM)
        side = PARTIAL if self.partial else " "
        return Text(f"{ARRIVED if self.arrived else side}{label}{side}".center(width), self.style)

    def padding(self, width: int) -> Text:
        """A line of it above or below its text, in exactly `width` columns."""
        if self.empty or not self.needed:
            return Text(" " * width)
        stripe = f"{PARTIAL}  " if self.partial else " "
        return Text((stripe * width)[:width], self.style)


def number(value: bool | int | float | complex) -> str:
    """``3``, ``0.3333``, ``1.5e+10``, ``1+2j``, ``nan``: four digits of what is not whole."""
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{number(value.real)}{sign}{number(value.imag)}j"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"
    return str(value)


def numbers(values: Values) -> list[str]:
    return [number(value) for value in plain_values(values.reshape(-1))]


def chunk_name(run: CollectiveRun, chunk: int, group: int = 0) -> str:
    """The name of a chunk of a group; groups that run at the same time have names of their own."""
    pattern, chunks = run.schedule.pattern, run.schedule.chunks
    n = pattern.group_size
    if pattern.kind == "all_to_all" and chunks == n * n and (group + 1) * n <= len(GLYPHS):
        origin, target = divmod(chunk, n)
        return glyph(group * n + origin) + str(target).translate(SUBSCRIPTS)
    return glyph(group * chunks + chunk)


def chunk_style(palette: Palette, run: CollectiveRun, chunk: int, group: int) -> Style:
    return palette.shard(group * run.schedule.chunks + chunk)


def chunk_names(
    run: CollectiveRun, chunks: Sequence[int], group: int, palette: Palette | None = None
) -> Text:
    """``α,γ``, ``α–ω``, ``12 chunks``: chunks in their colours, numbered modulo all."""
    is_run = len(chunks) >= NAMED and chunks[-1] - chunks[0] == len(chunks) - 1
    shown = (chunks[0], chunks[-1]) if is_run else chunks if len(chunks) <= NAMED else ()
    names = []
    for each in (chunk % run.schedule.chunks for chunk in shown):
        style = "" if palette is None else chunk_style(palette, run, each, group)
        names.append(Text(chunk_name(run, each, group), style))
    return Text("–" if is_run else ",").join(names) if names else Text(plural(len(chunks), "chunk"))


def sent_words(run: CollectiveRun, group: int, moves: Moves, arrow: str = "→") -> str:
    """``α→1``, ``2 chunks→1 α→3``, ``12 chunks→5 devices``; "" for nothing."""
    firsts: dict[int, list[int]] = {}
    for first, other in zip(moves.first, moves.others, strict=True):
        firsts.setdefault(other, []).append(first)
    by_chunks: dict[tuple[int, ...], list[int]] = {}
    for other, those in firsts.items():
        by_chunks.setdefault(tuple(sorted(those)), []).append(other)

    def to(others: Sequence[int]) -> str:
        if len(others) > NAMED:
            return f"{arrow}{len(others):,} devices"
        return arrow + ",".join(str(run.mesh.device_id(run.groups[group][other])) for other in others)

    if len(by_chunks) > NAMED:
        return f"{plural(len(moves) * moves.span, 'chunk')}{to([*firsts])}"
    words = []
    for starts, others in by_chunks.items():
        spans = [range(start, start + moves.span) for start in starts]
        chunks = spans[0] if len(spans) == 1 else [*chain(*spans)]
        words.append(f"{chunk_names(run, chunks, group).plain}{to(others)}")
    return " ".join(words)


def cell_text(cell: PieceCell | None, width: int, form: LabelForm, bare: bool = False) -> Text:
    """A cell, or its place where nothing is; `bare` without room for marks."""
    if cell is None:
        return Text(NOTHING.center(width), DIM)
    if not bare:
        return cell.text(width, form)
    return Text(cell.name[:width].ljust(width), cell.style if cell.needed else DIM)


MAX_ROWS = 16
"""Devices of one group at most, of which all are drawn."""
MAX_CELLS = 48
"""Chunks of a device that have a cell each; of more a bar tells how many are there."""
MAX_PIECES = 640
"""Pieces that are looked at; of more only names are drawn."""
NAMES = len(FORMS) - 1


class BufferRow(NamedTuple):
    """A device's line: its cells by column, what is on its way through it, what it has just sent."""

    cells: tuple[PieceCell | None, ...]
    passing: tuple[PieceCell, ...]
    sent: str


class BufferRows:
    """The rows of a frame for some columns. `moving`: arrivals are marked. `ended`: only what is part of the
    result. With the round's `traffic` rows list what was sent."""

    def __init__(
        self,
        run: CollectiveRun,
        frame: Frame,
        columns: Sequence[int | None],
        palette: Palette,
        moving: bool = True,
        ended: bool = False,
        traffic: RoundTraffic | None = None,
    ) -> None:
        self._run, self._frame, self._palette, self._traffic = run, frame, palette, traffic
        self._moving, self._ended = moving, ended
        self._columns = [column for column in columns if column is not None]
        schedule = run.schedule
        self._slots = schedule.pattern.kind == "all_to_all"
        self._pieces = schedule.pattern.pieces(schedule.chunks)
        self._wanted = frozenset(self._columns)
        self._within = None
        if self._columns and not self._slots:
            self._within = range(min(self._columns), max(self._columns) + 1)
        sends = frame.sends
        self._members = schedule.pattern.group_size if schedule.pattern.reduces else 1
        self._combined = {"pmax": "max", "pmin": "min"}.get(run.operation.name, "+")
        # A piece that has just been added to shows how it came to be.
        self._added = moving and sends is not None and bool(sends.reduce.any())

    def row(self, group: int, member: int) -> BufferRow:
        chosen: dict[int, Piece] = {}
        passing: list[Piece] = []
        for piece in self._frame.pieces(member, group, self._within):
            if self._ended and not piece.needed:
                continue
            if not self._slots and piece.chunk not in self._wanted:
                continue
            column: int | None = piece.chunk
            pair, within = divmod(piece.chunk, self._pieces)
            origin, target = divmod(pair, self._run.schedule.pattern.group_size)
            if self._slots:  # none for what only passes through
                slot = origin if member == target else target
                column = slot * self._pieces + within if member in (origin, target) else None
            other = chosen.get(-1 if column is None else column)
            ends = target == member
            if column is None or (other is not None and not ends):
                passing += [piece] if piece.needed else []
                continue
            if other is not None and other.needed:
                passing.append(other)
            chosen[column] = piece
        cells = tuple(
            self._cell(chosen[column], group) if column in chosen else None for column in self._columns
        )
        waiting = tuple(self._cell(piece, group) for piece in passing)
        sent = "" if self._traffic is None else sent_words(self._run, group, self._traffic.sent(member))
        return BufferRow(cells, tuple(cell for cell in waiting if not cell.empty), sent)

    def _cell(self, piece: Piece, group: int) -> PieceCell:
        """A piece in the colour of its chunk; with its addends where they are few."""
        count, values = piece.count, piece.values
        partial = count < self._members
        summed = count > 1 and (partial or (self._added and piece.arrived))
        cell = PieceCell(
            chunk_name(self._run, piece.chunk, group),
            None,
            0,
            chunk_style(self._palette, self._run, piece.chunk, group),
            piece.arrived and self._moving,
            piece.needed,
            partial,
            count=f"{'Σ' if self._combined == '+' else 'of '}{count}" if summed else "",
        )
        if values is None:
            return cell
        shown = numbers(values if len(values) <= LISTED else values[[0, 1, -1]])
        cell = replace(cell, numbers=tuple(shown), length=len(values), named=self._slots)
        addends = piece.addends if summed and count * len(values) <= LISTED else None
        if not addends:
            return cell
        columns = [*zip(*map(numbers, addends), strict=True)]
        if self._combined == "+":
            bracketed = ([f"({part})" if "j" in part else part for part in parts] for parts in columns)
            sums = ["+".join(parts).replace("+-", "-") for parts in bracketed]
        else:
            sums = [f"{self._combined}({','.join(parts)})" for parts in columns]
        if not partial:
            sums = [f"{parts}={total}" for parts, total in zip(sums, shown, strict=True)]
        wraps = self._combined == "+" and "int" in values.dtype.name
        totals = zip(columns, shown, strict=True)
        wraps = wraps and any(sum(map(int, parts)) != int(total) for parts, total in totals)
        return replace(cell, sums=tuple(sums), wraps=wraps)


def empty_note(run: CollectiveRun) -> str:
    """A sentence on how many chunks are empty, and why; "" where none is."""
    empty = empty_chunks(run)
    if empty is None or run.schedule.pattern.kind == "all_to_all":
        return ""
    chunks = run.schedule.chunks
    count = int(empty.sum())
    are = "is" if count == 1 else "are"
    return f"{count:,} of the {chunks:,} chunks {are} empty: a shard has fewer numbers than chunks"


class TableShape(NamedTuple):
    """A number in `FORMS`, a cell's columns, where what was sent begins, if that is shown."""

    form: int
    cell: int = 0
    sent_at: int | None = None


def drawn_columns(run: CollectiveRun) -> Sequence[int] | None:
    """The columns of a device's cells, as `BufferRows` counts them; None if too many or not tracked."""
    columns = chunk_columns(run) if run.followed else None
    return columns if columns is not None and len(columns) <= MAX_CELLS else None


def chunk_columns(run: CollectiveRun) -> Sequence[int]:
    """The columns of chunks that are not empty."""
    pattern, chunks = run.schedule.pattern, run.schedule.chunks
    if pattern.kind == "all_to_all":
        return range(pattern.group_size * pattern.pieces(chunks))
    empty = empty_chunks(run)
    columns: Sequence[int] = range(chunks) if empty is None else (~empty).nonzero()[0].tolist()
    return columns


@dataclass(frozen=True)
class FrameStats:
    """Rows drawn alike: how wide labels are, which marks there are; `forms` are allowed places in `FORMS`."""

    rows: Sequence[BufferRow]
    forms: Sequence[int] = range(len(FORMS))

    @cached_property
    def cells(self) -> list[PieceCell]:
        """All cells of the rows, and what waits to go on."""
        return [cell for row in self.rows for cell in (*row.cells, *row.passing) if cell is not None]

    @property
    def passing(self) -> bool:
        """True if anything without a slot waits to go on."""
        return any(row.passing for row in self.rows)

    def labels(self) -> Iterator[tuple[int, int]]:
        """The forms in which every piece can be written, the richest first, and the longest label in each."""
        cells = [cell for row in self.rows for cell in row.cells if cell is not None]
        for number in self.forms:
            labels = [cell.label(FORMS[number]) for cell in cells]
            known = [len(label) for label in labels if label is not None]
            if len(known) == len(labels):
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
    makers = [BufferRows(run, run.frames[number], columns, palette) for number in frames]
    reduces = run.schedule.pattern.reduces
    forms = [
        number
        for number, form in enumerate(FORMS)
        if (number == NAMES or pieces <= MAX_PIECES) and (not reduces or form.addends or form.counted)
    ]
    return FrameStats([maker.row(group, member) for maker in makers for member in members], forms)
