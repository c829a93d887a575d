"""Parts of mesh axes: ``X:(2)4`` are 4 of the devices along X, with 2 such parts in front of it.

An axis of N devices is seen as a row-major grid of (before, size, N / (before × size)); the part is its
middle dimension. Shardy writes sub-axes so (https://openxla.org/shardy/sharding_representation)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_PART = re.compile(r"([A-Za-z]\w*):\(([1-9]\d*)\)([1-9]\d*)", re.ASCII)


class SubAxis(NamedTuple):
    """A part of `axis` with `size` devices; the parts of the axis in front of it have `before` together."""

    axis: str
    before: int
    size: int

    def __str__(self) -> str:
        return f"{self.axis}:({self.before}){self.size}"


@lru_cache(maxsize=4096)
def axis_part(name: str) -> SubAxis | None:
    """The part that a name such as ``X:(1)2`` means; None for a whole axis."""
    if ":" not in name:
        return None
    match = _PART.fullmatch(name)
    return None if match is None else SubAxis(match[1], int(match[2]), int(match[3]))


def whole_axis(name: str) -> str:
    """The mesh axis of a name: the axis itself, or the one that it is a part of."""
    part = axis_part(name)
    return name if part is None else part.axis


def are_apart(one: str, other: str) -> bool:
    """Return whether an array may use both axes, or parts: they share no device, and their cuts nest."""
    first, second = axis_part(one), axis_part(other)
    if whole_axis(one) != whole_axis(other):
        return True
    if first is None or second is None:
        return False
    first, second = sorted((first, second))
    return second.before % (first.before * first.size) == 0


def finest_parts(axis_sizes: Mapping[str, int], names: Iterable[str]) -> tuple[str, ...]:
    """The finest parts that make up all names, axis by axis, major first; the axis itself where no name is a
    part of it. Cuts that do not divide each other make further ones only where they nest: every name must
    divide its axis."""
    cuts: dict[str, set[int]] = {axis: {1, size} for axis, size in axis_sizes.items()}
    for name in names:
        part = axis_part(name)
        if part is not None:
            cuts[part.axis] |= {part.before, part.before * part.size}
    return tuple(
        str(SubAxis(axis, start, stop // start)) if len(edges) > 2 else axis
        for axis, edges in cuts.items()
        for start, stop in (pairwise(sorted(edges)) if len(edges) > 2 else [(1, 1)])
    )


def in_parts(axes: Iterable[str], finest: Collection[str]) -> tuple[str, ...]:
    """The finest axes and parts that make up some axes, or parts of axes: axis by axis, in their order."""
    return tuple(part for axis in axes for part in finest if _is_within(part, axis))


def _is_within(name: str, whole: str) -> bool:
    part, span = axis_part(name), axis_part(whole)
    if part is None or span is None:
        return whole_axis(name) == whole
    start, stop = span.before, span.before * span.size
    return part.axis == span.axis and start <= part.before and part.before * part.size <= stop


def joined_parts(axes: Iterable[str], axis_sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The axes, with neighbouring parts of one axis joined to one part, or to the whole axis. An axis without
    a size stays in parts."""
    joined: list[str] = []
    for name in axes:
        part, last = axis_part(name), axis_part(joined[-1]) if joined else None
        if part and last and part.axis == last.axis and last.before * last.size == part.before:
            joined.pop()
            part = SubAxis(part.axis, last.before, last.size * part.size)
        if part is not None:
            name = part.axis if part.size == axis_sizes.get(part.axis) else str(part)
        joined.append(name)
    return tuple(joined)
