"""Numbers of devices by their digits, as HLO's iotas and groups, tilings and einshard have them.

A `Digit` is the part ``number // stride % size`` of a number. A nest of digits, major first, stands for the
numbers ``sum(i_k * stride_k)`` in row-major order of the indices: ``((4, 1), (2, 4))`` is 0, 4, 1, 5, 2, 6,
3, 7. So a million devices stay a few numbers. A position in a mesh is a number in the mixed radix of its
axes: on X=2, Y=4 the digit (2, 4) is X, and (2, 2), the major half of the other, is ``Y:(1)2``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shardviz.sharding.axis_parts import SubAxis


class Digit(NamedTuple):
    """The part ``number // stride % size`` of a number."""

    size: int
    stride: int


Nest = tuple[Digit, ...]
AxisSizes = Mapping[str, int]


def row_major(sizes: Sequence[int]) -> Nest:
    """The digits of a number that counts 0, 1, 2, … through the given sizes."""
    digits, stride = [], 1
    for size in reversed(sizes):
        digits.append(Digit(size, stride))
        stride *= size
    return tuple(reversed(digits))


def transposed(sizes: Sequence[int], perm: Sequence[int]) -> Nest:
    """``arange(n).reshape(sizes).transpose(perm)``."""
    digits = row_major(sizes)
    return tuple(digits[i] for i in perm)


def shortest_iota(reshape: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """The iota with the fewest dimensions that gives the same order after its transpose: those of size 1 go,
    and those that stay side by side are one, as XLA prints them."""
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


def numbers(nest: Iterable[tuple[int, int]]) -> list[int]:
    values = [0]
    for size, stride in nest:
        values = [number + stride * i for number in values for i in range(size)]
    return values


def length(nest: Iterable[Digit]) -> int:
    return math.prod(digit.size for digit in nest)


def value(digits: Iterable[Digit], number: int) -> int:
    """The number that some digits of `number` make, major first."""
    result = 0
    for size, stride in digits:
        result = result * size + number // stride % size
    return result


def merged(nest: Iterable[Digit]) -> Nest:
    """The same numbers in the same order with the fewest digits."""
    digits: list[Digit] = []
    for digit in nest:
        if digit.size == 1:
            continue
        if digits and digits[-1].stride == digit.size * digit.stride:
            digit = Digit(digits.pop().size * digit.size, digit.stride)
        digits.append(digit)
    return tuple(digits)


def cut(nest: Iterable[Digit], count: int) -> tuple[Nest, Nest] | None:
    """A nest as an outer one of `count` numbers and the inner rest; None when that cuts no digit evenly."""
    outer: list[Digit] = []
    inner = [*merged(nest)]
    while count > 1 and inner:
        size, stride = inner.pop(0)
        taken = math.gcd(size, count)
        if taken not in (size, count):
            return None
        outer.append(Digit(taken, stride * (size // taken)))
        count //= taken
        if taken < size:
            inner.insert(0, Digit(size // taken, stride))
    return tuple(outer), tuple(inner)


def nest_of(numbers_in_order: Sequence[int | None]) -> Nest | None:
    """The nest whose numbers are these, which begin with 0; None when there is none."""
    nest: list[Digit] = []
    done, total = 1, len(numbers_in_order)
    while done < total:
        stride = numbers_in_order[done]
        if stride is None or stride <= 0:
            return None
        size = 1
        while size * done < total and numbers_in_order[size * done] == size * stride:
            size += 1
        while total % (size * done):
            size -= 1
        if size == 1:
            return None
        nest.insert(0, Digit(size, stride))
        done *= size
    return tuple(nest) if numbers(nest) == list(numbers_in_order) else None


def pieces(digit: Digit, sizes: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """The parts that a digit is made of, in the row-major numbering of `sizes`.

    Each is (index into sizes, how many parts lie above it, its own size), major first: the digit (2, 1) over
    sizes (2, 4) is [(1, 2, 2)], the minor half of the second one. None when it crosses the digits of `sizes`
    without dividing them."""
    parts, covered = [], 1
    for index, whole in enumerate(row_major(sizes)):
        top = whole.stride * whole.size
        start, stop = max(digit.stride, whole.stride), min(digit.stride * digit.size, top)
        if start < stop:
            if start % whole.stride or top % stop or stop % start:
                return None
            parts.append((index, top // stop, stop // start))
            covered *= stop // start
    return parts if covered == digit.size else None


def through(digits: Iterable[Digit], nest: Sequence[Digit]) -> Nest | None:
    """Digits of a place as digits of the number that `nest` has there; None when they cut it unevenly."""
    mapped: list[Digit] = []
    for digit in digits:
        parts = pieces(digit, [whole.size for whole in nest]) if digit.size > 1 else []
        if parts is None:
            return None
        for index, above, size in parts:
            whole = nest[index]
            mapped.append(Digit(size, whole.stride * (whole.size // (above * size))))
    return merged(mapped)


def digits_of_blocks(parts: Sequence[int], blocks: Sequence[tuple[int, ...]]) -> tuple[Nest, ...] | None:
    """For each dimension the digits of a device's number that make up its block, major first; None when there
    are none. `parts` is how many blocks each dimension has, `blocks` which of them the devices 0, 1, 2, …
    hold."""
    lowest: dict[tuple[int, ...], int] = {}
    for device, block in enumerate(blocks):
        lowest.setdefault(block, device)
    nests = []
    for dim, count in enumerate(parts):
        line = [lowest.get(tuple(i if d == dim else 0 for d in range(len(parts)))) for i in range(count)]
        if (digits := nest_of(line)) is None:
            return None
        nests.append(digits)
    for device, block in enumerate(blocks):
        if any(value(digits, device) != index for digits, index in zip(nests, block, strict=True)):
            return None
    return tuple(nests)


def part_name(part: SubAxis, sizes: AxisSizes) -> str:
    """``Y:(1)2``, or the name alone of a part that is the whole axis."""
    return part.axis if part.size == sizes[part.axis] else str(part)


def part_digits(parts: Iterable[SubAxis], sizes: AxisSizes) -> list[Digit]:
    """The digit of a position that each axis, or part of one, makes in a mesh of those `sizes`."""
    digits = dict(zip(sizes, row_major(tuple(sizes.values())), strict=True))
    return [
        Digit(size, digits[axis].stride * (digits[axis].size // (before * size)))
        for axis, before, size in parts
    ]


def axes_of_digits(digits: Iterable[Digit], sizes: AxisSizes) -> tuple[str, ...] | None:
    """The mesh axes and parts of axes, major first, that make the same digits; None when there are none. Axes
    of size 1 make no digit and are never among them."""
    axes: list[str] = []
    names = [*sizes]
    for digit in merged(digits):
        if (parts := pieces(digit, tuple(sizes.values()))) is None:
            return None
        axes += (part_name(SubAxis(names[index], above, size), sizes) for index, above, size in parts)
    return tuple(axes)


def axes_of_groups(
    groups: Sequence[Sequence[Digit]], sizes: AxisSizes, sets: int = 0
) -> tuple[tuple[str, ...], ...] | None:
    """`axes_of_digits` of each group, of which so many at the end are sets; None where one has none."""
    by_group: list[tuple[str, ...]] = []
    for left, group in zip(range(len(groups), 0, -1), groups, strict=True):
        in_order = sorted(group, key=lambda digit: -digit.stride) if left <= sets else group
        if (axes := axes_of_digits(in_order, sizes)) is None:
            return None
        by_group.append(axes)
    return tuple(by_group)
