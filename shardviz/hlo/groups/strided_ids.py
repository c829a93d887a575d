"""Sets of device ids as nests of loops: how a million ids stay a few numbers.

A `Loop` is (size, stride). A nest of them, major first, stands for the ids ``sum(i_k * stride_k)`` in
row-major order of the indices: ``((2, 4), (4, 1))`` is 0 … 7, ``((4, 1), (2, 4))`` is 0, 4, 1, 5, 2, 6, 3, 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Loop = tuple[int, int]


def row_major(sizes: Sequence[int]) -> tuple[Loop, ...]:
    """The nest that counts 0, 1, 2, … over the given sizes."""
    nest, stride = [], 1
    for size in reversed(sizes):
        nest.append((size, stride))
        stride *= size
    return tuple(reversed(nest))


def merge(nest: Iterable[Loop]) -> tuple[Loop, ...]:
    """The same ids in the same order with the fewest loops."""
    merged: list[Loop] = []
    for size, stride in nest:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(merged)


def cut(nest: Iterable[Loop], count: int) -> tuple[tuple[Loop, ...], tuple[Loop, ...]] | None:
    """A nest as an outer one of `count` ids and the inner rest; None when that cuts no loop evenly."""
    outer: list[Loop] = []
    inner: list[Loop] = []
    for size, stride in merge(nest):
        if count % size == 0:
            outer.append((size, stride))
            count //= size
        elif size % count == 0:
            outer.append((count, stride * (size // count)))
            inner.append((size // count, stride))
            count = 1
        else:
            return None
        if count == 1:
            break
    rest = merge(nest)[len(outer) :]
    return tuple(outer), (*inner, *rest)


def pieces(loop: Loop, sizes: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Which parts of which digits a loop runs over, in the row-major numbering of `sizes`.

    Each piece is (index into sizes, how many parts lie above it, its own size), major first: the
    loop (2, 1) over sizes (2, 4) is [(1, 2, 2)], the minor half of the second digit. None when the loop
    crosses digits without dividing them.
    """
    count, low = loop
    high = low * count
    found, covered = [], 1
    stride = 1
    for index in range(len(sizes) - 1, -1, -1):
        top = stride * sizes[index]
        start, stop = max(low, stride), min(high, top)
        if start < stop:
            if start % stride or top % stop or stop % start:
                return None
            found.append((index, top // stop, stop // start))
            covered *= stop // start
        stride = top
    return found[::-1] if covered == count else None


def through(positions: Iterable[Loop], nest: Sequence[Loop]) -> tuple[Loop, ...] | None:
    """Loops over positions as loops over the ids that `nest` puts there; None when they cut it unevenly."""
    sizes = [size for size, _ in nest]
    found: list[Loop] = []
    for loop in positions:
        parts = pieces(loop, sizes)
        if parts is None:
            return None
        found.extend((size, nest[i][1] * (sizes[i] // (above * size))) for i, above, size in parts)
    return merge(found)


def ids(nest: Iterable[Loop]) -> list[int]:
    """Every id, in order."""
    offsets = [0]
    for size, stride in nest:
        offsets = [offset + stride * i for offset in offsets for i in range(size)]
    return offsets


def length(nest: Iterable[Loop]) -> int:
    """How many ids there are."""
    return math.prod(size for size, _ in nest)


def nest_of(offsets: Sequence[int]) -> tuple[Loop, ...] | None:
    """The nest whose ids are `offsets`, which begin with 0; None when there is none."""
    nest: list[Loop] = []
    done = 1
    while done < len(offsets):
        stride = offsets[done]
        if stride <= 0:
            return None
        size = 1
        while size * done < len(offsets) and offsets[size * done] == size * stride:
            size += 1
        while len(offsets) % (size * done):
            size -= 1
        if size == 1:
            return None
        nest.insert(0, (size, stride))
        done *= size
    return tuple(nest) if ids(nest) == list(offsets) else None
