"""From tiles of devices to mesh axes and parts of axes.

Notations that number devices (HLO shardings, einshard) say which devices hold which block of a dimension.
A `PartitionSpec` can say the same when the block's number is made of digits of the device's number, written
in the mixed radix of the mesh, whose last axis is the lowest digit: a whole digit is an axis, a digit of a
digit a part of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis


class Digit(NamedTuple):
    """The part ``number // stride % size`` of a number."""

    size: int
    stride: int


def digits_of_sizes(sizes: Sequence[int]) -> list[Digit]:
    """The digits of a number that counts through `sizes` in row-major order, major first."""
    digits, stride = [], 1
    for size in reversed(sizes):
        digits.append(Digit(size, stride))
        stride *= size
    return digits[::-1]


def shortest_iota(reshape: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """The iota with the fewest dimensions that gives the same order after its transpose.

    Dimensions of size 1 go, and those that stay side by side are one, as XLA prints them.
    """
    kept = [i for i in range(len(reshape)) if reshape[i] > 1]
    runs: list[list[int]] = []
    for i in (kept.index(i) for i in perm if i in kept):
        if runs and runs[-1][-1] + 1 == i:
            runs[-1].append(i)
        else:
            runs.append([i])
    order = sorted(runs) or [[]]
    sizes = [math.prod(reshape[kept[i]] for i in run) for run in order]
    return sizes, [order.index(run) for run in runs or [[]]]


def through_transpose(digit: Digit, reshape: Sequence[int], perm: Sequence[int]) -> tuple[Digit, ...] | None:
    """The digits of a device's number behind one digit of its place in a transposed iota, the shortest one.

    Place p of ``arange(prod(reshape)).reshape(reshape).transpose(perm).flatten()`` holds the device. None
    when the digit cuts a dimension of the iota at a place that is not one of its own digits.
    """
    devices = digits_of_sizes(reshape)
    places = digits_of_sizes([reshape[i] for i in perm])
    found = []
    for place, i in zip(places, perm, strict=True):
        common = _common(digit, place)
        if common is None:
            return None
        if common.size > 1:
            found.append(Digit(common.size, devices[i].stride * common.stride))
    return tuple(found)


def _common(digit: Digit, place: Digit) -> Digit | None:
    """The digit of a place's own number that `digit` takes of it, of size 1 where it takes none; None where
    it begins or ends at a place that does not divide that number."""
    whole = place.stride * place.size
    start, stop = max(digit.stride, place.stride), min(digit.stride * digit.size, whole)
    if start >= stop:
        return Digit(1, 1)
    if start % place.stride or stop % start or whole % stop:
        return None
    return Digit(stop // start, start // place.stride)


def digits_of_blocks(
    parts: Sequence[int], blocks: Sequence[tuple[int, ...]]
) -> tuple[tuple[Digit, ...], ...] | None:
    """For each dimension the digits of a device's number that make up its block, major first.

    `parts` is how many blocks each dimension has, `blocks` which of them the devices 0, 1, 2, … hold.
    None when they are not made of digits.
    """
    lowest: dict[tuple[int, ...], int] = {}
    for device, block in enumerate(blocks):
        lowest.setdefault(block, device)
    result = []
    for dim, count in enumerate(parts):
        line = [lowest.get(tuple(i if d == dim else 0 for d in range(len(parts)))) for i in range(count)]
        digits = _digits_of_line(line)
        if digits is None:
            return None
        result.append(digits)
    for device, block in enumerate(blocks):
        if any(value(digits, device) != index for digits, index in zip(result, block, strict=True)):
            return None
    return tuple(result)


def value(digits: Sequence[Digit], number: int) -> int:
    """The number that some digits of `number` make, major first."""
    result = 0
    for size, stride in digits:
        result = result * size + number // stride % size
    return result


def axes_of_digits(digits: Sequence[Digit], mesh: Mesh, ordered: bool = True) -> tuple[str, ...] | None:
    """The mesh axes and parts of axes, major first, that make the same digits; None when there are none.

    Axes of size 1 make no digit and are never among them. With `ordered` false the order of the
    digits does not matter.
    """
    if not ordered:
        digits = sorted(digits, key=lambda digit: -digit.stride)
    axes: list[str] = []
    for digit in merged(digits):
        left = digit.size
        for axis, place in zip(mesh.axis_names, digits_of_sizes(mesh.axis_sizes), strict=True):
            common = _common(digit, place)
            if common is None:
                return None
            if common.size > 1:
                before = place.size // (common.size * common.stride)
                axes.append(axis if common.size == place.size else str(SubAxis(axis, before, common.size)))
                left //= common.size
        if left > 1:
            return None
    return tuple(axes)


def axes_of_groups(
    groups: Sequence[Sequence[Digit]], mesh: Mesh, sets: int = 0
) -> tuple[tuple[str, ...], ...] | None:
    """`axes_of_digits` of each group, of which so many at the end are sets; None where one has none."""
    ordered = len(groups) - sets
    axes = [axes_of_digits(group, mesh, number < ordered) for number, group in enumerate(groups)]
    known = tuple(dim for dim in axes if dim is not None)
    return known if len(known) == len(axes) else None


def axis_digit(name: str, mesh: Mesh) -> Digit:
    """The digit of a device's place that an axis of the mesh, or a part of one, is."""
    return Digit(mesh.axis_size(name), mesh.stride(name))


def merged(digits: Sequence[Digit]) -> list[Digit]:
    """Neighbours joined that are one larger digit; digits of size 1 dropped."""
    joined: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if joined and joined[-1].stride == digit.size * digit.stride:
            digit = Digit(joined.pop().size * digit.size, digit.stride)
        joined.append(digit)
    return joined


def _digits_of_line(line: Sequence[int | None]) -> tuple[Digit, ...] | None:
    """The digits, major first, of which ``line[i]`` is the number whose digits make i."""
    digits: list[Digit] = []
    done = 1
    while done < len(line):
        stride = line[done]
        if stride is None or stride < 1:
            return None
        size = 1
        while size * done < len(line) and line[size * done] == size * stride:
            size += 1
        if len(line) % (done * size):
            return None
        digits.append(Digit(size, stride))
        done *= size
    return tuple(reversed(digits))
