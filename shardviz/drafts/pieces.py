"""A spec as text in pieces, those that name mesh axes apart, so that a view can colour them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.sharding import PartitionSpec

_UNREDUCED = "{U_"


@dataclass(frozen=True)
class Piece:
    """A piece of text; `axis` is the mesh axis that it names, or "" where it names none."""

    text: str
    axis: str = ""


def spec_pieces(spec: PartitionSpec | None) -> tuple[Piece, ...]:
    """The spec string of an array: ``X``, ``_``."""
    from shardviz.notation import write_spec

    text = write_spec(spec)
    cutter = _Cutter(text)
    for axis in () if spec is None else spec.axes:
        cutter.name(axis)
    return cutter.finish(() if spec is None else spec.unreduced)


def array_pieces(
    name: str, dims: Sequence[str], spec: PartitionSpec, axis_names: Sequence[str] | None = None
) -> tuple[Piece, ...]:
    """The array as the scaling book writes it: ``A[I_``, ``X``, ``, J]``."""
    from shardviz.notation import write_book

    cutter = _Cutter(write_book(name, dims, spec, axis_names))
    cutter.skip(name)
    for dim, axes in zip(dims, spec.dims, strict=True):
        cutter.skip(dim)
        for axis in axes:
            cutter.name(axis)
    return cutter.finish(spec.unreduced)


class _Cutter:
    """Cuts a text at names that stand in it in this order, with signs alone between them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[Piece] = []
        self._done = 0
        self._place = 0

    def skip(self, word: str) -> None:
        self._place = self._text.index(word, self._place) + len(word)

    def name(self, axis: str) -> None:
        start = self._text.index(axis, self._place)
        self._pieces += [Piece(self._text[self._done : start]), Piece(axis, axis)]
        self._done = self._place = start + len(axis)

    def finish(self, unreduced: Sequence[str]) -> tuple[Piece, ...]:
        """All pieces, with the axes of the partial sums at the end."""
        if unreduced:
            self.skip(_UNREDUCED)
        for axis in unreduced:
            self.name(axis)
        return tuple(piece for piece in (*self._pieces, Piece(self._text[self._done :])) if piece.text)
