"""The part of a target's traffic that leaves a slice or a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.hardware import Placement
    from shardviz.hlo import Collective
    from shardviz.reports.target_result import TargetResult
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class Traffic:
    """The collectives of an answer by where their groups lie, in terms of a `unit`, "slice" or "node".

    The groups of those in `between` have one device of each unit that they reach, so that all bytes cross
    its edge; the groups of those in `inside` lie in one unit; those in `both` do some of each.
    """

    unit: str
    between: tuple[Collective, ...]
    both: tuple[Collective, ...]
    inside: tuple[Collective, ...]


def traffic_of(compiled: TargetResult, mesh: Mesh) -> Traffic | None:
    """The parts of the traffic; None where all devices are in one slice or node, or nobody knows."""
    placement = compiled.placement
    if placement is None or placement.units < 2:
        return None
    parts: dict[str, list[Collective]] = {"between": [], "both": [], "inside": []}
    for one in compiled.collectives:
        if one.wire_bytes:
            parts["between" if one.between_slices else _part(one, placement, mesh)].append(one)
    return Traffic(placement.unit, *map(tuple, parts.values()))


def _part(one: Collective, placement: Placement, mesh: Mesh) -> str:
    """Which part of the traffic a collective is."""
    groups = [*_units_of_groups(one, placement, mesh)]
    if all(len({*units}) < 2 for units in groups):
        return "inside"
    return "between" if all(len({*units}) == len(units) for units in groups) else "both"


def _units_of_groups(one: Collective, placement: Placement, mesh: Mesh) -> Iterable[list[int]]:
    """For each group, the slice or node of each of its devices."""
    if one.groups:
        home = dict(zip(placement.ids, placement.places, strict=True))
        return [[home[id].slice for id in group if id in home] for group in one.groups]
    units: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, place in enumerate(placement.places):
        units[_group(position, one.axes, mesh)].append(place.slice)
    return units.values()


def _group(position: int, axes: tuple[str, ...], mesh: Mesh) -> tuple[int, ...]:
    """The coordinates that devices of one group over `axes` have in common: all but those along `axes`."""
    coordinates: list[int] = []
    for number, (name, size) in enumerate(zip(mesh.axis_names, mesh.axis_sizes, strict=True)):
        coordinate = position // prod(mesh.axis_sizes[number + 1 :]) % size
        for axis in axes:
            base, _, part = axis.partition(":(")
            if base == name:
                before, _, count = part.partition(")") if part else ("1", "", str(size))
                inner = size // (int(before) * int(count))
                coordinate -= coordinate // inner % int(count) * inner
        coordinates.append(coordinate)
    return tuple(coordinates)
