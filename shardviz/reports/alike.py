"""Collectives that are the same but for the layer that they stand in, together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from shardviz.reports.entries import CollectiveEntry

_NUMBER = re.compile(r"\d+")
EVERY = "*"
"""In a name, in place of a number in which its collectives differ."""


@dataclass(frozen=True)
class AlikeEntries:
    """Entries that differ in numbers of their scopes and arguments alone, in program order.

    `name` is their place (`CollectiveEntry.place`), with `EVERY` in place of such a number.
    Sums are None where one of them is not known.
    """

    entries: tuple[CollectiveEntry, ...]
    name: str

    @property
    def first(self) -> CollectiveEntry:
        return self.entries[0]

    @property
    def runs(self) -> int | None:
        """The runs of all of them."""
        return _sum(each.runs for each in self.entries)

    @property
    def bytes(self) -> int | None:
        """`Collective.bytes` of all runs."""
        return _sum(each.all_bytes for each in self.entries)

    @property
    def wire_bytes(self) -> int | None:
        """Bytes that a device sends at least, in all runs."""
        return _sum(each.all_wire_bytes for each in self.entries)

    @property
    def seconds(self) -> float | None:
        """Seconds of all runs, hidden or not."""
        return _float_sum(each.all_seconds for each in self.entries)

    @property
    def exposed(self) -> float | None:
        """Seconds of all runs for which the device waits."""
        return _float_sum(each.all_exposed for each in self.entries)


def alike(entries: Iterable[CollectiveEntry], by_schedule: bool = True) -> tuple[AlikeEntries, ...]:
    """The entries in groups, in the order of each group's first.

    Without `by_schedule`, those that the compiler has begun earlier and those that it has not are together,
    and so are those of several source lines.
    """
    found: dict[tuple[object, ...], list[CollectiveEntry]] = {}
    for each in entries:
        one = each.collective
        key = (
            (one.op, one.axes, one.operand_shape, one.result_shape, one.dtype, one.arrays, one.bytes),
            (one.source, one.is_async) if by_schedule else (),
            (one.between_slices, one.is_host_transfer, one.count is None),
            # Without axes the groups tell who takes part.
            () if one.axes else one.groups,
            (each.phase, numberless("/".join(each.scopes)), numberless(each.argument), each.link),
            numberless(" ".join(each.gradient_of)),
        )
        found.setdefault(key, []).append(each)
    return tuple(
        AlikeEntries(tuple(those), common_name(each.place for each in those)) for those in found.values()
    )


def numberless(name: str) -> str:
    """A name with `EVERY` in place of its numbers."""
    return _NUMBER.sub(EVERY, name)


def common_name(alike_names: Iterable[str]) -> str:
    """Names that are the same without their numbers as one, in which only the numbers that differ are
    replaced."""
    names = list(dict.fromkeys(alike_names))
    numbers = [_NUMBER.findall(name) for name in names]
    same = iter([len(set(column)) == 1 for column in zip(*numbers, strict=False)])
    return _NUMBER.sub(lambda number: number[0] if next(same, False) else EVERY, names[0])


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(each for each in found if each is not None)


def _float_sum(numbers: Iterable[float | None]) -> float | None:
    found = list(numbers)
    return None if None in found else math.fsum(each for each in found if each is not None)
