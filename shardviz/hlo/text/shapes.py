"""Shapes as HLO prints them, and tuples of them, nested: what they are, and how they lie in memory.

``bf16[512,384]{1,0:T(8,128)(2,1)S(1)}`` lies in rows, padded to tiles of 8 by 128, in memory space 1. The
format is XLA's, ``xla/layout.h``; what the spaces are on a TPU is seen in libtpu's text (space 1 is its VMEM,
2, 4 and 6 hold scalars, 3 is CMEM on v4), space 5 is the host's memory in ``xla/layout.h``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from shardviz.errors import NotationError
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS

_TOKEN = re.compile(r"([a-z][a-z0-9]*)[ \t]*\[([^\]]*)\]|\{[^{}]*\}|/\*|[()]")
_SIZE = re.compile(r"(?:<=)?(\d{1,15})")
MAX_ELEMENTS = 2**62
HBM, HOST = 0, 5
"""Memory spaces; any other is on the chip."""

_ARRAY = re.compile(
    r"([a-z][a-z0-9]*)\[((?:[ ]*(?:<=)?[ ]*\d{1,19}[ ]*(?:,|(?=\])))*+)\](?:\{([\d,]*)(?::([^{}]*))?\})?"
)
_LENGTH = re.compile(r"\d+")
_ONE_ELEMENT = re.compile(r"[a-z][a-z0-9]*\[(?:1(?:,1)*)?\](?:\{[^{}]*\})?")
_SPACE = re.compile(r"S\((\d{1,3})\)")
_TILE = re.compile(r"T\(([\d,]{1,40})\)")


@dataclass(frozen=True)
class ArrayShape:
    """Element type and sizes of one array; layouts are left out. A bounded size is its bound."""

    dtype: str
    sizes: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return array_bytes(self.sizes, self.dtype)

    def part(self, cuts: Iterable[int]) -> ArrayShape:
        """One device's part where each dimension is cut, rounded up where the parts are not equal."""
        sizes = zip(self.sizes, cuts, strict=True)
        return ArrayShape(self.dtype, tuple(-(-size // max(1, cut)) for size, cut in sizes))

    def resized(self, dim: int, size: int) -> ArrayShape:
        return ArrayShape(self.dtype, (*self.sizes[:dim], size, *self.sizes[dim + 1 :]))


Shape = ArrayShape | list["Shape"]
"""An array, or a tuple's elements."""


def parse_shape(text: str) -> Shape:
    """One shape; where the text is a list of operands with their shapes, use `parse_shapes`. Raises
    `NotationError` when it holds none, or an array of an unknown type or an impossible size."""
    shapes = parse_shapes(text)
    if len(shapes) != 1:
        raise NotationError("this is not one shape", text, 0, len(text), "write f32[4,8] or (f32[4], f32[8])")
    return shapes[0]


def parse_shapes(text: str) -> list[Shape]:
    """Every shape in a text, in order; what stands between them is passed over."""
    outermost: list[Shape] = []
    open_tuples = [outermost]
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece == "(":
            inner: list[Shape] = []
            open_tuples[-1].append(inner)
            open_tuples.append(inner)
        elif piece == ")":
            if len(open_tuples) > 1:
                open_tuples.pop()
        elif token[1]:
            open_tuples[-1].append(_array(text, token))
    return outermost


def arrays(shape: Shape) -> Iterator[ArrayShape]:
    """The arrays of a shape, depth first, tokens left out."""
    waiting = [shape]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(item))
        elif item.dtype != "token":
            yield item


@lru_cache(maxsize=4096)
def one_array(text: str) -> ArrayShape | None:
    """The one array of a shape, maybe in a tuple; None where there are several, or the text is damaged."""
    try:
        shapes = [*arrays(parse_shape(text))]
    except NotationError:
        return None
    return shapes[0] if len(shapes) == 1 else None


def is_number(shape: str) -> bool:
    """Return whether a shape is that of an array of one element."""
    return _ONE_ELEMENT.fullmatch(shape) is not None


def _array(text: str, token: re.Match[str]) -> ArrayShape:
    dtype, sizes = token[1], []
    for part in map(str.strip, token[2].split(",") if token[2].strip() else []):
        size = _SIZE.fullmatch(part)
        if size is None:
            raise NotationError(f"{part[:30]!r} is not a size", text, token.start(2), token.end(2))
        sizes.append(int(size[1]))
    if dtype not in BITS:
        raise NotationError(f"unknown element type {dtype}", text, token.start(1), token.end(1))
    if len(sizes) > 64 or math.prod(sizes) > MAX_ELEMENTS:
        raise NotationError("no array is that large", text, token.start(), token.end())
    return ArrayShape(dtype, tuple(sizes))


class PlacedArray(NamedTuple):
    """One array of a shape; `bytes` are those that it takes, padding included, `space` where."""

    dtype: str
    sizes: tuple[int, ...]
    bytes: int
    space: int = HBM


@lru_cache(maxsize=16384)
def placed_arrays(shape: str) -> tuple[PlacedArray, ...]:
    """The arrays of a shape, or of a tuple of them, depth first. Tokens, unknown types and impossible sizes
    are left out."""
    shapes = []
    for dtype, sizes, order, rest in _ARRAY.findall(shape):
        lengths, bits = tuple(map(int, _LENGTH.findall(sizes))), BITS.get(dtype, 0)
        nbytes = -(-math.prod(_padded(lengths, order, rest) if rest else lengths) * bits // 8)
        space = _SPACE.search(rest) if rest else None
        if bits:
            shapes.append(PlacedArray(dtype, lengths, nbytes, int(space[1]) if space else HBM))
    return tuple(shapes)


@lru_cache(maxsize=16384)
def bytes_in(shape: str) -> int:
    """The bytes of a shape that lie in HBM."""
    return sum(array.bytes for array in placed_arrays(shape) if array.space == HBM)


def _padded(sizes: tuple[int, ...], order: str, rest: str) -> tuple[int, ...]:
    """The sizes in the order of memory, the last the fastest, as whole tiles."""
    tile = _TILE.search(rest)
    by_place = [int(dim) for dim in order.split(",") if dim]
    if tile is None or sorted(by_place) != [*range(len(sizes))]:
        return sizes
    lengths = [int(length) for length in tile[1].split(",") if length]
    padded = [sizes[dim] for dim in reversed(by_place)]
    padded = [1] * (len(lengths) - len(padded)) + padded
    for index, length in zip(range(len(padded) - len(lengths), len(padded)), lengths, strict=True):
        padded[index] = -(-padded[index] // max(1, length)) * max(1, length)
    return tuple(padded)
