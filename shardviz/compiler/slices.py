"""How the axes of a mesh lie over several slices: the leading ones across them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def parts_by_slice(sizes: Sequence[int], slices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each axis, its size within a slice and across the slices.

    >>> parts_by_slice((4, 8), 2)
    ((2, 8), (2, 1))
    """
    across: list[int] = []
    for size in sizes:
        across.append(math.gcd(size, slices // math.prod(across)))
    return tuple(size // part for size, part in zip(sizes, across, strict=True)), tuple(across)
