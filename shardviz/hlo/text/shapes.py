"""Shapes as HLO prints them: ``bf16[512,512]{1,0:T(8,128)(2,1)S(1)}``, and tuples of them, nested."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from shardviz.errors import NotationError
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS

_TOKEN = re.compile(r"([a-z][a-z0-9]*)[ \t]*\[([^\]]*)\]|\{[^{}]*\}|/\*|[()]")
_SIZE = re.compile(r"(?:<=)?(\d{1,15})")
MAX_ELEMENTS = 2**62


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
    """One shape; where the text is a list of operands with their shapes, use `parse_shapes`.

    Raises `NotationError` when it holds none, or an array of an unknown type or an impossible size.
    """
    found = parse_shapes(text)
    if len(found) != 1:
        raise NotationError("this is not one shape", text, 0, len(text), "write f32[4,8] or (f32[4], f32[8])")
    return found[0]


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
        found = [*arrays(parse_shape(text))]
    except NotationError:
        return None
    return found[0] if len(found) == 1 else None


def _array(text: str, token: re.Match[str]) -> ArrayShape:
    dtype, body = token[1], token[2].strip()
    sizes = []
    for part in body.split(",") if body else []:
        size = _SIZE.fullmatch(part.strip())
        if size is None:
            raise NotationError(f"{part.strip()[:30]!r} is not a size", text, token.start(2), token.end(2))
        sizes.append(int(size[1]))
    if dtype not in BITS:
        raise NotationError(f"unknown element type {dtype}", text, token.start(1), token.end(1))
    if len(sizes) > 64 or math.prod(sizes) > MAX_ELEMENTS:
        raise NotationError("no array is that large", text, token.start(), token.end())
    return ArrayShape(dtype, tuple(sizes))
