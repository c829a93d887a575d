"""A piece in a cell: its numbers, its addends or how many there are, as richly as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from shardviz.collectives import Piece
from shardviz.render.grid import DIM
from shardviz.render.number_text import numbers
from shardviz.render.palette import PARTIAL

ARRIVED = "▸"
"""Stands before a piece that came in the last round."""
EMPTY = "–"
"""A chunk without any element."""
LISTED = 16
"""Numbers in a cell at most; of more, the first two and the last."""


@dataclass(frozen=True)
class Cell:
    """A piece as it is drawn: `labels` from the longest to the shortest, what of it is marked, a style."""

    labels: tuple[str, ...]
    style: Style
    arrived: bool = False
    needed: bool = True
    partial: bool = False

    def label(self, width: int) -> str:
        """What stands in a cell of `width` columns; two of them are for marks."""
        room = width - 2
        return next((label for label in self.labels if len(label) <= room), self.labels[-1][:room])

    def text(self, width: int) -> Text:
        """In exactly `width` columns."""
        label = self.label(width)
        if not self.needed:
            return Text(f"({label})".center(width), DIM)
        if not self.partial:
            return Text(f"{ARRIVED if self.arrived else ' '}{label} ".center(width), self.style)
        if len(label) + 4 <= width:
            label = f"{ARRIVED if self.arrived else ' '}{label} "
        elif self.arrived:
            label = (ARRIVED + label).ljust(width, PARTIAL)
        return Text(label.center(width, PARTIAL), self.style)


@dataclass(frozen=True)
class Naming:
    """How the pieces of one frame are written.

    `named` puts the chunk's name before its numbers. `members` is how many addends a complete sum has, 1
    where nothing is added. `combined` is ``+``, ``max`` or ``min``. `added`: the last round added to pieces,
    so that one that arrived shows how it came to be.
    """

    named: bool
    members: int
    combined: str
    added: bool


def piece_cell(piece: Piece, name: str, style: Style, naming: Naming) -> Cell:
    """A piece of the chunk `name` in its colour."""
    if piece.values is not None and not len(piece.values):
        return Cell((EMPTY,), DIM)
    partial = len(piece.contributions) < naming.members
    labels = tuple(dict.fromkeys(_labels(piece, name, naming, partial)))
    return Cell(labels, style, piece.arrived, piece.needed, partial)


def _labels(piece: Piece, name: str, naming: Naming, partial: bool) -> Iterator[str]:
    """Ways to write a piece, the longest first."""
    count = len(piece.contributions)
    summed = count > 1 and (partial or (naming.added and piece.arrived))
    many = f" {'Σ' if naming.combined == '+' else 'of '}{count}" if summed else ""
    values = piece.values
    if values is None:
        if many:
            yield many.strip()
        yield name
        return
    shown = numbers(values[: LISTED + 1])
    addends = piece.addends if summed and count * len(values) <= LISTED else None
    if addends:
        each = [_joined(parts, naming.combined) for parts in zip(*map(numbers, addends), strict=True)]
        if not partial:
            yield " ".join(f"{parts}={total}" for parts, total in zip(each, shown, strict=True))
        yield " ".join(each)
    whole = [" ".join(shown)] if len(shown) <= LISTED else []
    last = numbers(values[-1:])
    if len(shown) > 3:
        whole += [" ".join((*shown[:2], "…", *last)), " ".join((shown[0], "…", *last))]
    if len(shown) > 1:
        whole.append(f"{shown[0]} …")
    for words in whole:
        if naming.named:
            yield f"{name} {words}{many}"
        yield words + many
        if len(shown) == 1:
            yield words
    if many:
        yield many.strip()
    yield name


def _joined(addends: Sequence[str], combined: str) -> str:
    """``3+5-2``, ``(1+2j)+(3+0j)``, ``max(3,5)``."""
    if combined != "+":
        return f"{combined}({','.join(addends)})"
    return "+".join(f"({each})" if "j" in each else each for each in addends).replace("+-", "-")
