"""Arrays as they lie in memory: HLO's layouts, with tiles and memory spaces.

``bf16[512,384]{1,0:T(8,128)(2,1)S(1)}`` lies in rows, padded to tiles of 8 by 128, in memory space 1. The
format is XLA's, ``xla/layout.h``; what the spaces are on a TPU is seen in libtpu's text (space 1 is its VMEM,
2, 4 and 6 hold scalars, 3 is CMEM on v4), space 5 is the host's memory in ``xla/layout.h``.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from shardviz.sharding.array import BITS

HBM, HOST = 0, 5
"""Memory spaces; any other is on the chip."""

_ARRAY = re.compile(
    r"([a-z][a-z0-9]*)\[((?:[ ]*(?:<=)?[ ]*\d{1,19}[ ]*(?:,|(?=\])))*+)\](?:\{([\d,]*)(?::([^{}]*))?\})?"
)
_LENGTH = re.compile(r"\d+")
_SPACE = re.compile(r"S\((\d{1,3})\)")
_TILE = re.compile(r"T\(([\d,]{1,40})\)")


class PlacedArray(NamedTuple):
    """One array of a shape; `bytes` are those that it takes, padding included, `space` where."""

    dtype: str
    sizes: tuple[int, ...]
    bytes: int
    space: int = HBM


@lru_cache(maxsize=16384)
def placed_arrays(shape: str) -> tuple[PlacedArray, ...]:
    """The arrays of a shape, or of a tuple of them, depth first.

    Tokens, unknown types and impossible sizes are left out.
    """
    found = []
    for dtype, sizes, order, rest in _ARRAY.findall(shape):
        bits = BITS.get(dtype, 0)
        if not bits:
            continue
        lengths = tuple(map(int, _LENGTH.findall(sizes)))
        space = _SPACE.search(rest) if rest else None
        padded = _padded(lengths, order, rest) if rest else lengths
        found.append(
            PlacedArray(dtype, lengths, -(-math.prod(padded) * bits // 8), int(space[1]) if space else HBM)
        )
    return tuple(found)


@lru_cache(maxsize=16384)
def bytes_in(shape: str, space: int = HBM) -> int:
    """The bytes of a shape that lie in a memory space."""
    return sum(array.bytes for array in placed_arrays(shape) if array.space == space)


def _padded(sizes: tuple[int, ...], order: str, rest: str) -> tuple[int, ...]:
    """The sizes in the order of memory, the last the fastest, as whole tiles."""
    tile = _TILE.search(rest)
    by_place = [int(dim) for dim in order.split(",") if dim]
    if tile is None or sorted(by_place) != [*range(len(sizes))]:
        return sizes
    lengths = [int(length) for length in tile[1].split(",") if length]
    found = [sizes[dim] for dim in reversed(by_place)]
    found = [1] * (len(lengths) - len(found)) + found
    for place, length in zip(range(len(found) - len(lengths), len(found)), lengths, strict=True):
        found[place] = -(-found[place] // max(1, length)) * max(1, length)
    return tuple(found)
