"""The time of each collective of a program on the links that its group has, and which links it occupies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.collective_time import TIMED, collective_time
from shardviz.hardware.levels import LinkLevel
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.timeline.durations import Duration
from shardviz.timeline.program_timeline import Lane

if TYPE_CHECKING:
    from shardviz.hlo.collective import Collective
    from shardviz.sharding import Mesh

_SUB_AXIS = re.compile(r"(.+):\((\d+)\)(\d+)")
UNKNOWN_LINKS = Lane("axis", "links")
"""The lane of collectives whose axes nobody knows."""
HOST = Lane("host", "host")
COPIES = Lane("copy", "HBM copies")
COMPUTE = Lane("compute", "compute")

Channel = tuple[str, int]
"""The links of a physical dimension, by its name, in one of the two directions."""
HOST_CHANNELS: tuple[Channel, ...] = (("host", 0), ("host", 1))


@dataclass(frozen=True)
class LinkUse:
    """A collective on the links: how long, drawn on which lane, and the channels that it occupies."""

    duration: Duration
    lane: Lane
    channels: tuple[Channel, ...]


class LinkTimes:
    """The collectives of one program on a machine; alike ones are worked out once."""

    def __init__(self, machine: Machine, placed: PlacedMesh | None, mesh: Mesh | None) -> None:
        self._machine = machine
        self._placed = placed
        self._mesh = mesh
        self._known: dict[tuple[object, ...], LinkUse] = {}
        self.assumed: set[str] = set()
        """Groups that no mesh explains, in words."""

    def of(self, record: Collective, config: str = "") -> LinkUse:
        """The use of the links by a collective; `config` is what the compiler wrote on its algorithm."""
        pairs = record.groups if record.op == "collective-permute" else None
        key = (
            record.op,
            record.axes,
            record.bytes,
            record.group_size,
            pairs,
            record.between_slices,
            record.is_host_transfer,
            config,
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._use(record, config)
        return found

    def _use(self, record: Collective, config: str) -> LinkUse:
        if record.is_host_transfer:
            unknown = Duration(
                None, "unknown", "host", "no bandwidth between host and device is known", record.bytes
            )
            return LinkUse(unknown, HOST, HOST_CHANNELS)
        levels = self._levels(record)
        if levels is None or record.op not in TIMED:
            why = "its devices are not known" if levels is None else f"{record.op} has no formula"
            return LinkUse(Duration(None, "unknown", "", why, record.bytes), UNKNOWN_LINKS, ())
        size = record.wire_bytes if record.op == "collective-permute" else record.bytes
        shift = self._shift(record)
        distances = None
        if shift is not None and len(levels) == 1 and levels[0].size > 1:
            distances = (shift % levels[0].size,)
        try:
            time = collective_time(
                record.op,
                size,
                levels,
                strategy=config,
                distances=distances,
                in_rounds=True,
                measured=self._machine.measured,
            )
        except QuestionError as error:
            return LinkUse(Duration(None, "unknown", "", error.message, record.bytes), UNKNOWN_LINKS, ())
        duration = Duration(
            time.seconds, "links", time.bound, time.convention, record.bytes, 0, time.bandwidth_seconds
        )
        names = dict.fromkeys(level.name for level in levels)
        ways = [0, 1] if shift is None else [int(2 * shift > self._size_of(record.axes))]
        channels = tuple((name, way) for name in names for way in ways)
        return LinkUse(duration, self._lane(record, levels), channels)

    def _lane(self, record: Collective, levels: Iterable[LinkLevel]) -> Lane:
        if record.between_slices or any(level.kind == "network" for level in levels):
            name = next((level.name for level in levels if level.kind == "network"), "network")
            return Lane("network", name)
        if not record.axes:
            return UNKNOWN_LINKS
        return Lane("axis", ", ".join(record.axes))

    def _levels(self, record: Collective) -> tuple[LinkLevel, ...] | None:
        """The physical dimensions of a collective's groups."""
        if record.group_size <= 1 and record.groups is not None:
            return ()
        if self._placed is not None and record.axes:
            return self._along(self._placed, record.axes)
        if record.between_slices and self._machine.network is not None:
            return (LinkLevel("network", max(2, record.group_size), self._machine.network, "DCN"),)
        levels = self._machine.family.levels_of_any(max(2, record.group_size))
        self.assumed |= {f"a ring of {level.size}" for level in levels if level.kind == "ring"}
        return levels or None

    def _along(self, placed: PlacedMesh, axes: tuple[str, ...]) -> tuple[LinkLevel, ...]:
        """The dimensions of whole axes, and of sub-axes such as ``Y:(2)2``."""
        if all(_SUB_AXIS.fullmatch(axis) is None for axis in axes):
            return placed.group_levels(axes)
        found: list[LinkLevel] = []
        for axis in axes:
            part = _SUB_AXIS.fullmatch(axis)
            if part is None:
                found += placed.group_levels((axis,))
                continue
            before, size = int(part[2]), int(part[3])
            after = self._size_of((part[1],)) // (before * size)
            found += _part(placed.group_levels((part[1],)), after, size)
        return tuple(found)

    def _size_of(self, axes: tuple[str, ...]) -> int:
        size = 1
        for axis in axes:
            part = _SUB_AXIS.fullmatch(axis)
            sizes = self._mesh.shape if self._mesh is not None else {}
            size *= int(part[3]) if part else sizes.get(axis, 1)
        return size

    def _shift(self, record: Collective) -> int | None:
        """The places along its axis by which most of a permute's data move; None for any other collective."""
        mesh = self._mesh
        if record.op != "collective-permute" or mesh is None or len(record.axes) != 1 or not record.groups:
            return None
        axis = record.axes[0]
        if axis not in mesh.shape:
            return None
        number = mesh.axis_names.index(axis)
        size, stride = mesh.axis_sizes[number], 1
        for length in mesh.axis_sizes[number + 1 :]:
            stride *= length
        order = mesh.device_order
        place = {device: position for position, device in enumerate(order)} if order is not None else None
        shifts: Counter[int] = Counter()
        for source, target in record.groups:
            a, b = (place[source], place[target]) if place is not None else (source, target)
            shifts[(b // stride - a // stride) % size] += 1
        shifts.pop(0, None)
        return shifts.most_common(1)[0][0] if shifts else None


def _part(levels: tuple[LinkLevel, ...], after: int, size: int) -> list[LinkLevel]:
    """The part of an axis of `size` members, `after` places apart; the fastest level is the last."""
    found: list[LinkLevel] = []
    for level in reversed(levels):
        if size <= 1:
            break
        skipped = min(after, level.size)
        rest = level.size // skipped
        taken = min(size, rest)
        if taken > 1:
            kind = level.kind if taken == level.size or level.kind != "ring" else "line"
            load = level.load if skipped == 1 else 0
            found.insert(0, replace(level, kind=kind, size=taken, hops=level.hops * skipped, load=load))
        after, size = max(1, after // level.size), -(-size // taken)
    return found
