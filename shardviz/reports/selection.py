"""The collectives of a program that somebody asks for, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from shardviz.reports.alike import AlikeEntries
from shardviz.reports.entries import CollectiveEntry

Sort = Literal["cost", "order", "bytes"]
_PLACE_ENDS = re.compile(r"[/:]|$")


@dataclass(frozen=True)
class Selection:
    """The collectives to show of a program.

    `sort` is "cost" (exposed seconds, or bytes sent where there are none), "order" (the program's) or
    "bytes" (those that a device sends in all runs). `top` is how many groups are shown, None for all. `ops`
    are HLO's names, `axes` mesh axes of which one must be among a collective's, `least_bytes` those of all
    runs, and `source` is a file, ``file:line`` or a part of a scope or an argument's path.
    """

    sort: Sort = "cost"
    top: int | None = None
    ops: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    least_bytes: float = 0
    source: str = ""

    def chosen(self, entries: Iterable[CollectiveEntry]) -> tuple[CollectiveEntry, ...]:
        """The entries that pass the filters, in program order. Those of loops of unknown length may have any
        number of bytes."""
        return tuple(each for each in entries if self._has(each))

    def sorted(self, groups: Sequence[AlikeEntries]) -> tuple[AlikeEntries, ...]:
        """The groups in the order that is asked for; of equal cost in program order, and those whose cost
        nobody can tell first."""
        if self.sort == "order":
            return tuple(groups)
        by_time = self.sort == "cost" and any(each.exposed is not None for each in groups)
        return tuple(sorted(groups, key=_expense if by_time else _sent))

    def _has(self, entry: CollectiveEntry) -> bool:
        one = entry.collective
        if self.ops and one.op not in self.ops:
            return False
        if self.axes and not {axis.partition(":")[0] for axis in one.axes} & {*self.axes}:
            return False
        if entry.all_bytes is not None and entry.all_bytes < self.least_bytes:
            return False
        return not self.source or _stands_in(entry, self.source)


def _stands_in(entry: CollectiveEntry, place: str) -> bool:
    source = entry.collective.source
    start = source.find(place)
    if start >= 0 and (start == 0 or source[start - 1] == "/"):
        return _PLACE_ENDS.match(source, start + len(place)) is not None
    return place in "/".join(entry.scopes) or place in entry.argument


BY_COST = Selection()
"""Everything, the most expensive first."""


def _expense(group: AlikeEntries) -> tuple[float, float, float]:
    if group.exposed is None:
        return (-1.0, 0.0, _sent(group))
    return (0.0, -group.exposed, _sent(group))


def _sent(group: AlikeEntries) -> float:
    return float("-inf") if group.wire_bytes is None else -group.wire_bytes
