"""Machines: the figures of devices and of the links that join them, by which answers are priced."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from shardviz.hardware.chips import (
    DCN_LATENCY,
    GPUS,
    ICI_HOP,
    INFINIBAND_HOP,
    NVLINK_HOP,
    TPUS,
    Gpu,
    TpuChip,
)
from shardviz.hardware.links import ASSUMED, LinkSpec
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis, axis_part, joined_parts

if TYPE_CHECKING:
    from shardviz.hardware.clusters import Cluster, GpuNodes
    from shardviz.hardware.measured import MeasuredTimes
    from shardviz.hardware.placement import Placement

CPU = "cpu"
"""The chip of a machine of simulated devices, which share the memory of their host."""
LevelKind = Literal["ring", "line", "switch", "network", "chip"]


@dataclass(frozen=True)
class DeviceFigures:
    """The figures of one JAX device; one that nobody publishes is None.

    `peak` has FLOP/s (OP/s of whole numbers) by HLO's dtype. `hbm_bytes` are those of the data sheet and
    `usable_bytes` those that the compiler allows a program. `hbm_bandwidth` is bytes per second,
    `on_chip_bytes` the memory next to the matrix units (VMEM; a GPU's second-level cache), `clock` hertz.
    """

    peak: tuple[tuple[str, float], ...]
    hbm_bytes: int | None = None
    usable_bytes: int | None = None
    hbm_bandwidth: float | None = None
    on_chip_bytes: int | None = None
    clock: float | None = None

    def flops_per_second(self, dtype: str) -> float | None:
        """The peak in this dtype; None where none is known."""
        return dict(self.peak).get(dtype)


@dataclass(frozen=True)
class LinkLevel:
    """One physical dimension of a group: `size` members joined as `kind` by links of `spec`, one way.

    "ring" and "line": neighbours on a torus axis; "switch": NVLink or the like; "network": between slices or
    nodes, `spec` being what one device has of it; "chip": two devices on one chip. `name` is what people
    call it: "x", "NVLink", "DCN". `hops` are the links between neighbours of the group, above 1 where it
    takes every second chip. The links between are then shared with other groups: `load` is how many messages
    pass the busiest one when all groups send to their neighbours, 0 where that is as many as the hops. With
    `nccl` GPUs are on the level, whose collectives have the latency of NCCL.
    """

    kind: LevelKind
    size: int
    spec: LinkSpec
    name: str
    hops: int = 1
    nccl: bool = False
    load: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """The physical dimensions by name; several where neighbours differ in several."""
        return tuple(self.name.split(" and "))

    @property
    def is_scattered(self) -> bool:
        """The members fill no block of the torus."""
        return self.load > 0 or len(self.words) > 1

    @property
    def messages(self) -> int:
        """The messages that share the busiest link."""
        return self.load or self.hops


@dataclass(frozen=True)
class Machine:
    """Hardware that prices an answer.

    `name` is a cluster's (``v5p:4x4x8``) or a file's. A slice is a torus of the sizes `torus` in chips, whose
    axes close to rings where `wrap` says so, over links of `axis_links`, one `LinkSpec` for each axis; GPUs
    have no torus but nodes of `node` devices, each with `node_link` to a switch. `network` is what one device
    has of the network between slices or nodes, None where there is none; `core_link` joins two devices of one
    chip. With `assumed` nobody has named
    a machine: a v5e on which every mesh axis is a ring of its own. `source` says where the figures come from.
    `measured` are times of collectives that stand for the formulas.
    """

    name: str
    chip: str
    device: DeviceFigures
    devices: int
    devices_per_chip: int = 1
    torus: tuple[int, ...] = ()
    wrap: tuple[bool, ...] = ()
    axis_links: tuple[LinkSpec, ...] = ()
    node: int = 0
    node_link: LinkSpec | None = None
    network: LinkSpec | None = None
    slices: int = 1
    assumed: bool = False
    source: str = ""
    core_link: LinkSpec | None = None
    measured: tuple[MeasuredTimes, ...] = ()

    @property
    def lacking(self) -> str:
        """The word for a figure that is not there: nobody has "published" it, or it was not "given"."""
        return "published" if self.chip in TPUS or self.chip in GPUS or self.assumed else "given"

    def in_node(self, size: int) -> LinkLevel:
        """The level of so many devices of a node."""
        assert self.node_link is not None
        if self.chip == CPU:
            return LinkLevel("switch", size, self.node_link, "host memory")
        return LinkLevel("switch", size, self.node_link, "NVLink", nccl=True)

    def between(self, size: int) -> LinkLevel:
        """The level of so many slices or nodes."""
        assert self.network is not None
        if self.torus:
            return LinkLevel("network", size, self.network, "DCN")
        return LinkLevel("network", size, self.network, "network", nccl=self.chip != CPU)

    def shared_by_cores(self, levels: tuple[LinkLevel, ...]) -> tuple[LinkLevel, ...]:
        """The levels of a group with its part of the links of chips that it has one of several devices of:
        the others' groups use them as well."""
        if self.devices_per_chip == 1 or any(level.kind == "chip" for level in levels):
            return levels
        return tuple(_shared(level, self.devices_per_chip) for level in levels)


@dataclass(frozen=True)
class PlacedMesh:
    """A mesh on a machine: for each of its axes the physical dimensions that it lies along, the major first.

    `placement` is None on an assumed machine.
    """

    machine: Machine
    levels: tuple[tuple[str, tuple[LinkLevel, ...]], ...]
    placement: Placement | None = None
    _found: dict[tuple[tuple[str, ...], bool], tuple[LinkLevel, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh, without an order of devices of its own."""
        names, sizes = zip(*((axis, _members(own)) for axis, own in self.levels), strict=True)
        return Mesh(names, sizes)

    def levels_for(self, op: str, axes: tuple[str, ...]) -> tuple[LinkLevel, ...]:
        """`group_levels` of the groups over which an operation runs, by JAX's name."""
        return self.group_levels(axes, in_order=op == "ppermute")

    def group_levels(self, axes: tuple[str, ...], in_order: bool = False) -> tuple[LinkLevel, ...]:
        """The dimensions of a group along these mesh axes, or parts of them; those of size 1 are left out.

        They are those of the block of devices that the group fills. Where it fills none they are its axes',
        of which those that share a physical dimension are one, as slow as the slowest. With `in_order`
        members send to the next by number, as in a permute, and not to the next on the links, as libraries
        may order them: then axes that fill no block are as they are.
        """
        if any(":" in axis for axis in axes):
            # The devices of a group are the same in any order of the parts.
            axes = joined_parts(sorted(axes, key=self._place), self.mesh.shape)
        if (axes, in_order) not in self._found:
            own = tuple(level for axis in axes for level in self._levels_of(axis) if level.size > 1)
            if in_order and any(level.is_scattered for level in own):
                found = own
            else:
                found = self._of_blocks(axes) or _joined(own)
            self._found[axes, in_order] = self.machine.shared_by_cores(found)
        return self._found[axes, in_order]

    def _place(self, name: str) -> tuple[int, int]:
        """The place of an axis in the mesh, and of a part of one in its axis."""
        part = axis_part(name) or SubAxis(name, 1, 1)
        return self.mesh.axis_names.index(part.axis), part.before

    def _levels_of(self, name: str) -> tuple[LinkLevel, ...]:
        """The levels of an axis, or of a part of one."""
        part = axis_part(name)
        if part is None:
            return dict(self.levels)[name]
        behind = self.mesh.axis_size(part.axis) // (part.before * part.size)
        return _part_of(dict(self.levels)[part.axis], part.size, behind)

    def _of_blocks(self, axes: tuple[str, ...]) -> tuple[LinkLevel, ...] | None:
        if self.placement is None:
            return None
        from shardviz.hardware.physical_levels import levels_of_blocks

        groups = self.mesh.groups(axes)
        return levels_of_blocks(self.machine, self.placement, groups[:1] if self._is_regular else groups)

    @cached_property
    def _is_regular(self) -> bool:
        return self.placement is not None and self.placement.is_regular(self.mesh)


def _members(levels: Iterable[LinkLevel]) -> int:
    return math.prod(level.size for level in levels)


def _part_of(levels: Sequence[LinkLevel], size: int, behind: int) -> tuple[LinkLevel, ...]:
    """The levels of every `behind`-th of an axis' members, `size` of them in a row."""
    found = []
    for level in reversed(levels):
        step = math.gcd(behind, level.size)
        count = math.gcd(size, level.size // step)
        behind, size = behind // step, size // count
        if count > 1:
            found.append(_every(level, count, step))
    return tuple(reversed(found))


def _every(level: LinkLevel, count: int, step: int) -> LinkLevel:
    """The level of so many members, `step` apart, whose messages pass over the links between."""
    if (count, step) == (level.size, 1) or level.kind not in ("ring", "line"):
        return replace(level, size=count)
    closes = level.kind == "ring" and count * step == level.size
    return replace(
        level, kind="ring" if closes else "line", size=count, hops=level.hops * step, load=level.load * step
    )


def _joined(levels: Iterable[LinkLevel]) -> tuple[LinkLevel, ...]:
    """The levels, of which those that share physical dimensions are one, as slow as the slowest."""
    found: list[LinkLevel] = []
    for level in levels:
        for other in tuple(found):
            words = dict.fromkeys((*other.words, *level.words))
            if len(words) < len(other.words) + len(level.words):
                found.remove(other)
                slower = max(
                    other, level, key=lambda each: (each.kind in ("ring", "line"), -each.spec.bandwidth)
                )
                level = replace(
                    slower,
                    kind="line" if slower.kind == "ring" else slower.kind,
                    size=other.size * level.size,
                    name=" and ".join(words),
                    hops=max(other.hops, level.hops),
                    load=max(other.messages, level.messages),
                )
        found.append(level)
    return tuple(found)


def _shared(level: LinkLevel, devices: int) -> LinkLevel:
    if level.kind not in ("ring", "line"):
        return level
    return replace(level, spec=replace(level.spec, bandwidth=level.spec.bandwidth / devices))


def machine_of(cluster: Cluster) -> Machine:
    """The machine that a cluster is, with the published figures of its chips."""
    from shardviz.hardware.clusters import GpuNodes

    if isinstance(cluster, GpuNodes):
        return _gpu_machine(cluster)
    chip, rank = cluster.chip, len(cluster.torus)
    network = LinkSpec(DCN_LATENCY, chip.network / chip.devices_per_chip)
    return Machine(
        cluster.name,
        chip.name,
        _tpu_figures(chip),
        cluster.devices,
        chip.devices_per_chip,
        cluster.torus,
        chip.wrap(cluster.torus),
        (LinkSpec(ICI_HOP, chip.link),) * rank,
        network=network,
        slices=cluster.slices,
        source=chip.source,
        core_link=LinkSpec(ICI_HOP, chip.between_cores) if chip.between_cores else None,
    )


def assumed_machine(name: str = ASSUMED) -> Machine:
    """The machine where nobody has named one, or a chip alone: each mesh axis a ring of its own."""
    if name in GPUS:
        gpu = GPUS[name]
        link, device = LinkSpec(NVLINK_HOP, gpu.link), _gpu_figures(gpu)
    else:
        chip = TPUS[name]
        link, device = LinkSpec(ICI_HOP, chip.link), _tpu_figures(chip)
    source = (GPUS.get(name) or TPUS[name]).source
    return Machine(name, name, device, 0, axis_links=(link,), assumed=True, source=source)


def on_assumed_machine(machine: Machine, mesh: Mesh) -> PlacedMesh:
    """The mesh on an assumed machine: a ring for each of its axes."""
    link = machine.axis_links[0]
    return PlacedMesh(
        machine, tuple((axis, (LinkLevel("ring", size, link, axis),)) for axis, size in mesh.shape.items())
    )


def _tpu_figures(chip: TpuChip) -> DeviceFigures:
    each = chip.devices_per_chip
    return DeviceFigures(
        tuple((dtype, peak / each) for dtype, peak in chip.peak),
        chip.hbm // each,
        chip.usable,
        chip.hbm_bandwidth / each,
        chip.vmem,
        chip.clock,
    )


def _gpu_figures(gpu: Gpu) -> DeviceFigures:
    return DeviceFigures(gpu.peak, gpu.hbm, None, gpu.hbm_bandwidth, gpu.l2, gpu.clock)


def _gpu_machine(cluster: GpuNodes) -> Machine:
    gpu: Gpu = cluster.chip
    return Machine(
        cluster.name,
        gpu.name,
        _gpu_figures(gpu),
        cluster.devices,
        node=cluster.gpus,
        node_link=LinkSpec(NVLINK_HOP, gpu.link),
        network=LinkSpec(INFINIBAND_HOP, gpu.network),
        source=gpu.source,
    )
