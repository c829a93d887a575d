"""The costs of the collectives of a program in all, by one of their properties."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from shardviz.reports.entries import CollectiveEntry

By = Literal["op", "axes", "link", "phase", "source"]

_KEYS: dict[By, Callable[[CollectiveEntry], str]] = {
    "op": lambda each: each.collective.op,
    "axes": lambda each: ", ".join(each.collective.axes),
    "link": lambda each: each.link,
    "phase": lambda each: each.phase or "",
    "source": lambda each: each.collective.source,
}


@dataclass(frozen=True)
class CostSum:
    """The entries of one `name` ("" where it is not known), in all their runs on one device.

    `bytes` and `wire_bytes` are as those of `Collective`; they and the seconds are without the `unknown`
    entries, which are in loops of unknown length. `exposed` and `seconds` are None without a machine, or
    where none of the entries has an estimate; `untimed` counts those that have none.
    """

    name: str
    count: int
    runs: int
    bytes: int
    wire_bytes: int
    seconds: float | None
    exposed: float | None
    unknown: int = 0
    untimed: int = 0


def sums(entries: Iterable[CollectiveEntry], by: By) -> tuple[CostSum, ...]:
    """A sum for each name, the most expensive first: by exposed seconds, then by bytes sent."""
    found: defaultdict[str, list[CollectiveEntry]] = defaultdict(list)
    for each in entries:
        found[_KEYS[by](each)].append(each)
    made = [_summed(name, those) for name, those in found.items()]
    return tuple(sorted(made, key=lambda each: (-(each.exposed or 0.0), -each.wire_bytes)))


def _summed(name: str, entries: list[CollectiveEntry]) -> CostSum:
    known = [each for each in entries if each.runs is not None]
    timed = [each for each in known if each.seconds is not None]
    return CostSum(
        name,
        len(entries),
        sum(each.runs or 0 for each in known),
        sum(each.all_bytes or 0 for each in known),
        sum(each.all_wire_bytes or 0 for each in known),
        math.fsum(each.all_seconds or 0.0 for each in timed) if timed else None,
        math.fsum(each.all_exposed or 0.0 for each in timed) if timed else None,
        len(entries) - len(known),
        len(known) - len(timed),
    )


def all_of(parts: Sequence[CostSum]) -> CostSum:
    """The sum of sums that share no entry."""
    timed = [each for each in parts if each.seconds is not None]
    return CostSum(
        "",
        sum(each.count for each in parts),
        sum(each.runs for each in parts),
        sum(each.bytes for each in parts),
        sum(each.wire_bytes for each in parts),
        math.fsum(each.seconds or 0.0 for each in timed) if timed else None,
        math.fsum(each.exposed or 0.0 for each in timed) if timed else None,
        sum(each.unknown for each in parts),
        sum(each.untimed for each in parts),
    )
