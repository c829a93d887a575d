"""A piece in a cell: its numbers, its addends or how many there are, in the form its picture has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.style import Style
from rich.text import Text

from shardviz.collectives.frames import Piece
from shardviz.collectives.values import Values, plain_values
from shardviz.render.palette import DIM, GLYPHS, PARTIAL, SUBSCRIPTS, Palette, glyph
from shardviz.stepping.collective_run import CollectiveRun

ARRIVED = "▸"
"""Stands before a piece that came in the last round."""
NOTHING = "·"
"""Stands where a device has no piece."""
EMPTY = "–"
"""A chunk without any element."""
LISTED = 16
"""Numbers in a cell at most; of more, the first two and the last."""


@dataclass(frozen=True)
class LabelForm:
    """The way every piece of a picture is written.

    `first` and `last` are how many numbers stand before and after ``…`` where there are more than `first` +
    `last`; with `first` None all do, and with 0 none: pieces have their names. `addends`: sums are written
    out; `counted`: sums say of how many. `named`: the chunk's name stands before its numbers.
    """

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
    """A piece as it is drawn: its name, its numbers (None where there are none), what of it is marked.

    `numbers` are all of them, or the first ones and the last of `length`. `sums` are its addends
    (``3+5``, ``3+5=8``) where they can be written out, `count` is how many (``Σ2``) where it is a sum;
    `wraps`: its type cannot hold the sum. `named`: its name may stand before its numbers.
    """

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
        """True if it has no element."""
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


@dataclass(frozen=True)
class Naming:
    """Common to the pieces of one frame. `named`: chunks have names beside their numbers. `members` is how
    many addends a complete sum has, 1 where nothing is added. `combined` is ``+``, ``max`` or ``min``.
    `added`: the last round added to pieces, so that one that arrived shows how it came to be."""

    named: bool
    members: int
    combined: str
    added: bool


def piece_cell(piece: Piece, name: str, style: Style, naming: Naming) -> PieceCell:
    """A piece of the chunk `name` in its colour."""
    count = piece.count
    partial = count < naming.members
    summed = count > 1 and (partial or (naming.added and piece.arrived))
    many = f"{'Σ' if naming.combined == '+' else 'of '}{count}" if summed else ""
    values = piece.values
    if values is None:
        return PieceCell(name, None, 0, style, piece.arrived, piece.needed, partial, count=many)
    shown = numbers(values if len(values) <= LISTED else values[[0, 1, -1]])
    sums: tuple[str, ...] = ()
    wraps = False
    addends = piece.addends if summed and count * len(values) <= LISTED else None
    if addends:
        each = [_joined(parts, naming.combined) for parts in zip(*map(numbers, addends), strict=True)]
        sums = tuple(each)
        if not partial:
            sums = tuple(f"{parts}={total}" for parts, total in zip(each, shown, strict=True))
        wraps = naming.combined == "+" and "int" in values.dtype.name and _wraps(addends, shown)
    return PieceCell(
        name,
        tuple(shown),
        len(values),
        style,
        piece.arrived,
        piece.needed,
        partial,
        sums,
        many,
        wraps,
        naming.named,
    )


def _wraps(addends: Sequence[Any], totals: Sequence[str]) -> bool:
    """True if whole numbers add up to more than their type can hold."""
    columns = zip(*map(numbers, addends), strict=True)
    return any(sum(map(int, parts)) != int(total) for parts, total in zip(columns, totals, strict=True))


def _joined(addends: Sequence[str], combined: str) -> str:
    if combined != "+":
        return f"{combined}({','.join(addends)})"
    return "+".join(f"({each})" if "j" in each else each for each in addends).replace("+-", "-")


def number(value: bool | int | float | complex) -> str:
    """``3``, ``0.3333``, ``1.5e+10``, ``1+2j``, ``nan``: four digits of what is not whole."""
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{number(value.real)}{sign}{number(value.imag)}j"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"
    return str(value)


def numbers(values: Values) -> list[str]:
    """Every element, in row-major order."""
    return [number(value) for value in plain_values(values.reshape(-1))]


def chunk_name(run: CollectiveRun, chunk: int, group: int = 0) -> str:
    """The name of a chunk of a group; groups that run at the same time have names of their own."""
    pattern, chunks = run.schedule.pattern, run.schedule.chunks
    n = pattern.group_size
    if pattern.kind == "all_to_all" and chunks == n * n and (group + 1) * n <= len(GLYPHS):
        origin, target = divmod(chunk, n)
        return glyph(group * n + origin) + str(target).translate(SUBSCRIPTS)
    return glyph(group * chunks + chunk)


def chunk_style(palette: Palette, run: CollectiveRun, chunk: int, group: int = 0) -> Style:
    """The colour of a chunk of a group."""
    return palette.shard(group * run.schedule.chunks + chunk)


def cell_text(cell: PieceCell | None, width: int, form: LabelForm, bare: bool = False) -> Text:
    """A cell, or its place where nothing is; `bare` without room for marks."""
    if cell is None:
        return Text(NOTHING.center(width), DIM)
    if not bare:
        return cell.text(width, form)
    return Text(cell.name[:width].ljust(width), cell.style if cell.needed else DIM)
