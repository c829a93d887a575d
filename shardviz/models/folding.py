"""Repeated layers as one: names that differ in their numbers alone, of parameters that are split alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardviz.models.splitting import SplitParameter

_NUMBER = re.compile(r"(?<![^./])\d+(?![^./])|(?<=layers_)\d+|(?<=layer_)\d+|(?<=blocks_)\d+|(?<=block_)\d+")
"""The number of a layer: a part of a path of its own, ``layers.12.w1``, or behind a word for it,
``layers_12``."""


@dataclass(frozen=True)
class FoldedParameter:
    """Parameters that are alike but for the numbers in their names, of which `first` is one; `name` has all
    numbers: ``model.layers.0–31.mlp.up_proj.weight``."""

    name: str
    first: SplitParameter
    count: int

    @property
    def elements(self) -> int:
        """Elements of all of them."""
        return self.count * self.first.parameter.elements

    @property
    def bytes_per_device(self) -> int:
        """Bytes of a device for all of them."""
        return self.count * self.first.bytes_per_device


def folded(parameters: Iterable[SplitParameter]) -> tuple[FoldedParameter, ...]:
    """All parameters, those that are alike as one, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[SplitParameter]] = {}
    for each in parameters:
        own = each.parameter
        key = (_NUMBER.sub("#", own.name), own.shape, own.dtype, each.spec, each.is_matched)
        groups.setdefault(key, []).append(each)
    return tuple(found for group in groups.values() for found in _fold(group))


def _fold(group: Sequence[SplitParameter]) -> list[FoldedParameter]:
    """One of all, where every combination of their numbers is there; else each by itself."""
    numbers = [_NUMBER.findall(each.parameter.name) for each in group]
    ranges = [sorted(set(map(int, column))) for column in zip(*numbers, strict=True)]
    if math.prod(map(len, ranges)) != len(group):
        return [FoldedParameter(each.parameter.name, each, 1) for each in group]
    words = iter([number_ranges(column) for column in ranges])
    return [
        FoldedParameter(_NUMBER.sub(lambda _: next(words), group[0].parameter.name), group[0], len(group))
    ]


def alike_pattern(name: str) -> str:
    """The pattern of a name and of those that differ in the numbers of layers alone."""
    return f"^{'[0-9]++'.join(map(re.escape, _NUMBER.split(name)))}$"


def number_ranges(numbers: Sequence[int]) -> str:
    """``0–31``; ``0,2–5,9`` of numbers in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)
