"""The time of one instruction on a device or on its links, and whose estimate it is.

The compiler's own cycles come first: TPU text has ``estimated_cycles`` on most fusions, GPU text a
``reification_cost`` where that was asked for. Elsewhere the roofline: the longer of FLOPs over the peak, or
what matmuls take where they were measured, and of the bytes of operands and results over HBM's bandwidth."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from shardviz.errors import plural
from shardviz.hardware.collective_time import TIMED, Pairs, collective_time
from shardviz.hardware.gpu_times import PERMUTE
from shardviz.hardware.links import LinkLevel, UnpublishedLinkError
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import NAMING
from shardviz.hlo.text.shapes import HBM, HOST as HOST_MEMORY, placed_arrays
from shardviz.planner.pricing.priced_plan import optimistic
from shardviz.timeline.instruction_work import InstructionWork, Matmuls
from shardviz.timeline.program_timeline import COMPUTE, COPIES, HOST, LINKS, Estimate, Lane
from shardviz.units import human_bytes, rate, seconds as human_seconds

if TYPE_CHECKING:
    from shardviz.hardware.chips import DeviceFigures
    from shardviz.hlo.collective import Collective
    from shardviz.sharding import Mesh

TICKS = 10**15
"""Ticks in a second."""
DOUBTED = 0.98
"""An estimate below this part of the roofline breaks it; peaks are rounded to two or three digits."""
Channel = tuple[str, int]
"""The links of a physical dimension, by its name, in one of the two directions."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,19})"')
_MEMORY = re.compile(
    r'custom_call_target="(?:AllocateBuffer|ConcatBitcast|AssumeGatherIndicesInBound|Sharding|SPMD\w*|'
    r'PrepareAsyncCall(?:Start|Done))"'
)
"""Custom calls that name memory or say something of it, or prepare the start of a computation beside."""


@dataclass(slots=True, eq=False)
class Duration:
    """The seconds of one run, None where nobody can tell, and the `lane` and the `channels` that it occupies:
    the device's own work has no channels. `estimate`, `bound`, `detail` and `optimistic` are as in `TimedOp`.
    `least` is the time of the roofline; `dtype` is the type of what its `flops` multiply. Of its whole
    `ticks` there are none where the time is unknown."""

    seconds: float | None
    estimate: Estimate = "unknown"
    bound: str = ""
    detail: str = ""
    bytes: int = 0
    flops: int = 0
    least: float | None = None
    lane: Lane = COMPUTE
    channels: tuple[Channel, ...] = ()
    dtype: str = ""
    optimistic: str = ""
    ticks: int = field(init=False)

    def __post_init__(self) -> None:
        self.ticks = 0 if self.seconds is None else round(self.seconds * TICKS)


class Durations:
    """The durations of the instructions of one text on one device; alike ones are worked out once."""

    def __init__(self, work: InstructionWork, device: DeviceFigures) -> None:
        self.work = work
        self._device = device
        self._known: dict[tuple[object, ...], Duration] = {}

    def of(self, line: Instruction, shapes: Sequence[str]) -> Duration:
        """The duration of an instruction that occupies the device, with the shapes of its operands."""
        cycles = line.search(_CYCLES) if line.says('"estimated_cycles"') else None
        compiled = self._reified(line) if cycles is None else None
        # With the largest number libtpu has no figure, as for operations of the SparseCores.
        if cycles is not None and self._device.clock and int(cycles[1]) != 2**63 - 1:
            compiled = int(cycles[1]) / self._device.clock
        matmuls = self.work.matmuls(line, shapes)
        hbm = self.work.hbm_bytes(line, shapes)
        key = compiled, matmuls, hbm
        duration = self._known.get(key)
        if duration is None:
            duration = self._known[key] = self._duration(compiled, cycles, matmuls, hbm)
        if line.opcode != "custom-call" or duration.seconds is None or compiled is not None or matmuls.flops:
            return duration
        # A kernel whose work nobody has written down may take any time.
        is_known = self.work.estimated_bytes(line) is not None
        return duration if is_known else Duration(None, detail="a kernel without an estimate", bytes=hbm)

    def _duration(
        self, compiled: float | None, cycles: re.Match[str] | None, matmuls: Matmuls, hbm: int
    ) -> Duration:
        flops, dtype = matmuls.flops, matmuls.dtype
        launch = (self._device.launch or 0.0) if hbm and not flops else 0.0
        peak = self._device.flops_per_second(dtype, matmuls.passes) if flops else None
        bandwidth = self._device.hbm_bandwidth
        compute = flops / peak if peak else None if flops else 0.0
        memory = hbm / bandwidth if bandwidth else None if hbm else 0.0
        least = max((seconds for seconds in (compute, memory) if seconds is not None), default=None)
        bound = "compute" if compute is not None and compute == least and flops else "HBM" if hbm else ""
        told = Duration(None, bound=bound, bytes=hbm, flops=flops, dtype=dtype)
        if compiled is not None:
            clock = self._device.clock
            detail = "the compiler's estimate"
            if cycles and clock:
                detail = f"{int(cycles[1]):,} cycles at {clock / 1e9:.4g} GHz"
            if least:
                detail += f", {compiled / least:.2f} × the roofline"
            return replace(told, seconds=compiled, estimate="compiler", detail=detail, least=least)
        if compute is None and not memory:
            return replace(told, detail=f"no peak of {dtype} is known")
        if memory is None:
            return replace(told, detail="no bandwidth of HBM is known")
        if flops and (measured := self._device.matmul_time(dtype)):
            seconds = max(memory, self._device.matmul_seconds(flops, hbm, dtype, matmuls.passes) or 0.0)
            told.bound = measured.bound(least or 0.0, bound)
            told.optimistic = optimistic(told.bound, dtype, self._device)
            return replace(told, seconds=seconds, estimate="roofline", detail=measured.words, least=least)
        if bound == "compute":
            detail = f"{flops:.4g} FLOPs of {dtype} at {peak:.4g} FLOP/s"
            if self._device.in_bf16_passes(dtype):
                detail += f", in bf16, {plural(matmuls.passes, 'pass', 'passes')}"
        else:
            detail = f"{human_bytes(hbm)} at {rate(bandwidth or 0)}" if hbm else "on the chip"
            if launch:
                detail += f", and {human_seconds(launch)} to launch"
                told.bound = "latency" if memory < launch else bound
        if compute is None:
            detail += f", a lower bound: no peak of {dtype} is known"
        told.optimistic = optimistic(told.bound, dtype, self._device)
        seconds = (least or 0.0) + launch
        return replace(told, seconds=seconds, estimate="roofline", detail=detail, least=least)

    def _reified(self, line: Instruction) -> float | None:
        """Seconds that XLA's model of the speed of light gives an instruction on a GPU; the others that it
        writes beside it are off by a factor of a hundred at times."""
        if not line.says('"reification_cost"'):
            return None
        cost = r'"exec_time_us":([\d.eE+-]{1,24})[^{}]*"name":"([^"]{0,40})"'
        costs = {name: float(time) for time, name in re.findall(cost, line.text[line.inside : line.stop])}
        return costs["sol"] * 1e-6 if "sol" in costs else None

    def of_copy(self, shape: str) -> Duration:
        """The duration of a copy between memories beside the program: a tuple of both ends, and flags."""
        arrays = [array for array in placed_arrays(shape) if array.sizes or array.space == HBM][:2]
        spaces, moved = {array.space for array in arrays}, min((array.bytes for array in arrays), default=0)
        copy = Duration(None, bytes=moved, lane=COPIES, channels=(("HBM", 0),))
        if len(arrays) < 2:
            return replace(copy, detail="its shape is not a copy's", bytes=0)
        if HOST_MEMORY in spaces:
            return on_host(moved, self._device)
        if HBM not in spaces:
            return replace(copy, seconds=0.0, estimate="roofline", detail="on the chip", bytes=0)
        bandwidth = self._device.hbm_bandwidth
        if not bandwidth:
            return replace(copy, bound="HBM", detail="no bandwidth of HBM is known")
        passed = moved * 2 if spaces == {HBM} else moved
        seconds, detail = passed / bandwidth, f"{human_bytes(passed)} at {rate(bandwidth)}"
        copy = replace(copy, seconds=seconds, estimate="roofline", bound="HBM", detail=detail, least=seconds)
        return replace(copy, optimistic=optimistic(copy.bound, "", self._device))

    def of_thread(self, callee: Computation, name: str) -> Duration:
        """The duration of a computation that another thread runs: its instructions one after the other."""
        lines = filter(takes_time, self.work.lines.of(callee))
        parts = [self.of(line, self.work.operand_shapes(line)) for line in lines]
        known = [part.seconds for part in parts if part.seconds is not None]
        is_known = bool(parts) and len(known) == len(parts)
        return Duration(
            sum(known) if len(known) == len(parts) else None,
            parts[0].estimate if is_known else "unknown",
            parts[0].bound if parts else "",
            parts[0].detail if len(parts) == 1 else "",
            sum(part.bytes for part in parts),
            sum(part.flops for part in parts),
            lane=Lane("host" if name == "host" else "compute", name),
            channels=((name, 0),),
        )


def takes_time(line: Instruction) -> bool:
    """Return whether an instruction is more than a name for memory or a number."""
    if line.opcode == "custom-call":
        return line.search(_MEMORY) is None
    return line.opcode not in NAMING and line.opcode not in ("bitcast-convert", "token", "infeed-token")


def on_host(moved: int, device: DeviceFigures) -> Duration:
    channels = ("host", 0), ("host", 1)
    told = Duration(None, "unknown", "host", "", moved, lane=HOST, channels=channels)
    if not device.host:
        return replace(told, detail="no bandwidth between host and device is known")
    detail = f"{human_bytes(moved)} at {rate(device.host)}"
    return replace(told, seconds=moved / device.host, estimate="links", detail=detail)


class LinkTimes:
    """The collectives of one program on a machine; alike ones are worked out once."""

    def __init__(self, machine: Machine, placed: PlacedMesh | None, mesh: Mesh | None) -> None:
        self._machine = machine
        self._placed = placed
        self._mesh = mesh
        self._known: dict[tuple[object, ...], Duration] = {}
        self._members: dict[tuple[str, ...], dict[int, tuple[int, int]]] = {}
        self.assumed: set[str] = set()
        """Groups that no mesh explains, in words."""

    def of(self, record: Collective, config: str = "") -> Duration:
        """The duration of a collective; `config` is what the compiler wrote on its algorithm."""
        key = (
            (record.op, record.axes, record.bytes, record.group_size, config),
            record.groups if record.op == PERMUTE else None,
            (record.between_slices, record.is_host_transfer),
        )
        if key not in self._known:
            self._known[key] = self._duration(record, config)
        return self._known[key]

    def _duration(self, record: Collective, config: str) -> Duration:
        if record.is_host_transfer:
            return on_host(record.bytes, self._machine.device)
        unknown = Duration(None, bytes=record.bytes, lane=LINKS)
        try:
            levels = self._levels(record)
        except UnpublishedLinkError as error:
            return replace(unknown, detail=error.message)
        if levels is None:
            return replace(unknown, detail="its devices are not known")
        if record.op not in TIMED:
            return replace(unknown, detail=f"{record.op} has no formula")
        members = math.prod(level.size for level in levels)
        pairs = self._pairs(record, members) if record.op == PERMUTE else ()
        time = collective_time(
            record.op,
            record.wire_bytes if record.op == PERMUTE else record.bytes,
            levels,
            strategy=config,
            pairs=pairs or None,
            in_rounds=True,
            measured=self._machine.measured,
        )
        shifts = {(target - source) % members for source, target in pairs}
        ways = tuple({int(2 * shift > members) for shift in shifts}) if len(shifts) == 1 else (0, 1)
        names = dict.fromkeys(level.name for level in levels)
        lane = Lane("axis", ", ".join(record.axes)) if record.axes else LINKS
        network = next((level.name for level in levels if level.kind == "network"), "")
        if record.between_slices or network:
            lane = Lane("network", network or "network")
        return Duration(
            time.seconds,
            "links",
            time.bound,
            time.convention,
            record.bytes,
            least=time.bandwidth_seconds,
            lane=lane,
            channels=tuple((name, way) for name in names for way in ways),
            optimistic=time.optimistic,
        )

    def _levels(self, record: Collective) -> tuple[LinkLevel, ...] | None:
        if record.group_size <= 1 and record.groups is not None:
            return ()
        if self._placed is not None and record.axes:
            return self._placed.group_levels(record.axes, in_order=record.op == PERMUTE)
        if record.between_slices and self._machine.network is not None:
            return (LinkLevel("network", max(2, record.group_size), self._machine.network, "DCN"),)
        levels = self._machine.family.levels_of_any(max(2, record.group_size))
        self.assumed |= {f"a ring of {level.size}" for level in levels if level.kind == "ring"}
        return levels or None

    def _pairs(self, record: Collective, size: int) -> Pairs:
        """Sources and targets of a permute in the group of that size with the most of them, by their places
        in it; none where they are not within such groups along mesh axes."""
        mesh, axes = self._mesh, record.axes
        if mesh is None or not axes or not record.groups or not {*axes} <= {*mesh.shape}:
            return ()
        if axes not in self._members:
            self._members[axes] = {
                mesh.device_id(position): divmod(index, mesh.group_size(axes))
                for index, position in enumerate(chain.from_iterable(mesh.groups(axes)))
            }
        pairs: dict[int, list[tuple[int, int]]] = {}
        for ends in record.groups:
            (group, source), (other, target) = (self._members[axes].get(id, (-id, 0)) for id in ends)
            if group != other or mesh.group_size(axes) != size:
                return ()
            if source != target:
                pairs.setdefault(group, []).append((source, target))
        return max(pairs.values(), key=len, default=())
