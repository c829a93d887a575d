"""The time of each collective of a program on the links that its group has, and which links it occupies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.collective_time import TIMED, collective_time
from shardviz.hardware.links import LinkLevel
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.timeline.durations import Duration, on_host
from shardviz.timeline.program_timeline import LINKS, Lane

if TYPE_CHECKING:
    from shardviz.hlo.collective import Collective
    from shardviz.sharding import Mesh


class LinkTimes:
    """The collectives of one program on a machine; alike ones are worked out once."""

    def __init__(self, machine: Machine, placed: PlacedMesh | None, mesh: Mesh | None) -> None:
        self._machine = machine
        self._placed = placed
        self._mesh = mesh
        self._known: dict[tuple[object, ...], Duration] = {}
        self.assumed: set[str] = set()
        """Groups that no mesh explains, in words."""

    def of(self, record: Collective, config: str = "") -> Duration:
        """The duration of a collective; `config` is what the compiler wrote on its algorithm."""
        key = (
            (record.op, record.axes, record.bytes, record.group_size, config),
            record.groups if record.op == "collective-permute" else None,
            (record.between_slices, record.is_host_transfer),
        )
        if key not in self._known:
            self._known[key] = self._duration(record, config)
        return self._known[key]

    def _duration(self, record: Collective, config: str) -> Duration:
        if record.is_host_transfer:
            return on_host(record.bytes)
        unknown = Duration(None, bytes=record.bytes, lane=LINKS)
        levels = self._levels(record)
        if levels is None:
            return replace(unknown, detail="its devices are not known")
        if record.op not in TIMED:
            return replace(unknown, detail=f"{record.op} has no formula")
        mesh, is_permute = self._mesh, record.op == "collective-permute"
        shift = self._shift(record) if is_permute else None
        is_along_one = shift is not None and len(levels) == 1 and levels[0].size > 1
        try:
            time = collective_time(
                record.op,
                record.wire_bytes if is_permute else record.bytes,
                levels,
                strategy=config,
                distances=(shift % levels[0].size,) if shift is not None and is_along_one else None,
                in_rounds=True,
                measured=self._machine.measured,
            )
        except QuestionError as error:
            return replace(unknown, detail=error.message)
        ways = (0, 1) if shift is None or mesh is None else (int(2 * shift > mesh.group_size(record.axes)),)
        names = dict.fromkeys(level.name for level in levels)
        return Duration(
            time.seconds,
            "links",
            time.bound,
            time.convention,
            record.bytes,
            least=time.bandwidth_seconds,
            lane=_lane(record, levels),
            channels=tuple((name, way) for name in names for way in ways),
        )

    def _levels(self, record: Collective) -> tuple[LinkLevel, ...] | None:
        """The physical dimensions of a collective's groups."""
        if record.group_size <= 1 and record.groups is not None:
            return ()
        if self._placed is not None and record.axes:
            return self._placed.group_levels(record.axes)
        if record.between_slices and self._machine.network is not None:
            return (LinkLevel("network", max(2, record.group_size), self._machine.network, "DCN"),)
        levels = self._machine.family.levels_of_any(max(2, record.group_size))
        self.assumed |= {f"a ring of {level.size}" for level in levels if level.kind == "ring"}
        return levels or None

    def _shift(self, record: Collective) -> int | None:
        """The places along its axis by which most of a permute's data move, where that is one axis."""
        mesh = self._mesh
        if mesh is None or len(record.axes) != 1 or not record.groups or record.axes[0] not in mesh.shape:
            return None
        size, stride = mesh.axis_size(record.axes[0]), mesh.stride(record.axes[0])
        places = {} if mesh.device_order is None else {id: n for n, id in enumerate(mesh.device_order)}
        pairs = ((places.get(a, a), places.get(b, b)) for a, b in record.groups)
        shifts = Counter((target // stride - source // stride) % size for source, target in pairs)
        shifts.pop(0, None)
        return shifts.most_common(1)[0][0] if shifts else None


def _lane(record: Collective, levels: tuple[LinkLevel, ...]) -> Lane:
    network = next((level.name for level in levels if level.kind == "network"), "")
    if record.between_slices or network:
        return Lane("network", network or "network")
    return Lane("axis", ", ".join(record.axes)) if record.axes else LINKS
