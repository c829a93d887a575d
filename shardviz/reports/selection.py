"""The collectives of a program that somebody asks for, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.hlo.collective import OPS
from shardviz.reports.alike import AlikeEntries, alike
from shardviz.reports.entries import CollectiveEntry

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

Sort = Literal["cost", "order", "bytes"]
_Group = TypeVar("_Group", bound=AlikeEntries)
_PLACE_ENDS = re.compile(r"[/:]|$")


@dataclass(frozen=True)
class Selection:
    """The part of a program that is shown.

    `sort` is "cost" (exposed seconds, or bytes sent where there are none), "order" (the program's) or
    "bytes" (those that a device sends in all runs). `top` is how many groups are shown, None for all. `ops`
    are HLO's names, `axes` mesh axes of which one must be among a collective's, `least_bytes` those of all
    runs, and `source` is a file, ``file:line`` or a part of a scope, or of the path of an argument that is
    moved or whose gradient is summed.
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

    def groups(self, entries: Iterable[CollectiveEntry]) -> tuple[AlikeEntries, ...]:
        """All that pass the filters, alike ones together, in the order that is asked for."""
        return self.in_order(alike(self.chosen(entries)))

    def in_order(self, groups: tuple[_Group, ...]) -> tuple[_Group, ...]:
        """Groups in the order that is asked for; of equal cost as they come, and those whose cost nobody can
        tell first."""
        if self.sort == "order":
            return groups
        by_time = self.sort == "cost" and any(each.exposed is not None for each in groups)
        return tuple(sorted(groups, key=_expense if by_time else _sent))

    def shown(self, entries: Iterable[CollectiveEntry]) -> tuple[CollectiveEntry, ...]:
        """The entries of the first `top` groups, in program order."""
        found = self.chosen(entries)
        if self.top is None:
            return found
        first = {id(each) for group in self.groups(found)[: self.top] for each in group.entries}
        return tuple(each for each in found if id(each) in first)

    def check(self, entries: Iterable[CollectiveEntry], mesh: Mesh | None = None) -> None:
        """Raise `QuestionError` for an operation or an axis that the program does not have."""
        moving = [each.collective for each in entries]
        ops = dict.fromkeys(each.op for each in moving)
        axes = dict.fromkeys(() if mesh is None else mesh.axis_names)
        axes |= dict.fromkeys(axis.partition(":")[0] for each in moving for axis in each.axes)
        for asked, known, kind in ((self.ops, ops, "operation"), (self.axes, axes, "mesh axis")):
            for name in asked:
                # A collective that this program happens to lack is a fair question.
                if name not in known and name not in (OPS if kind == "operation" else ()):
                    there = f"this program has {', '.join(known)}" if known else f"this program has no {kind}"
                    raise QuestionError(
                        f"{quote(name)} is not {'an' if kind == 'operation' else 'a'} {kind} of this program",
                        did_you_mean(name, known) + there,
                    )

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
    return any(place in each for each in ("/".join(entry.scopes), entry.argument, *entry.gradient_of))


BY_COST = Selection()
"""Everything, the most expensive first."""


def _expense(group: AlikeEntries) -> tuple[float, float, float]:
    if group.exposed is None:
        return (-1.0, 0.0, _sent(group))
    return (0.0, -group.exposed, _sent(group))


def _sent(group: AlikeEntries) -> float:
    return float("-inf") if group.wire_bytes is None else -group.wire_bytes
