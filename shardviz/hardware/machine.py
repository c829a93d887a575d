"""Machines: the figures of devices and of the links that join them, by which answers are priced."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from shardviz.hardware.chips import GPUS, ICI_HOP, NVLINK_HOP, TPUS, DeviceFigures
from shardviz.hardware.collective_time import SHIFTS, CollectiveTime, collective_time
from shardviz.hardware.family import AxisLevels, Family
from shardviz.hardware.levels import Dimension, LinkLevel, joined_levels, part_of_levels
from shardviz.hardware.links import ASSUMED, LinkSpec
from shardviz.hardware.measured import MeasuredTimes
from shardviz.hardware.placement import Placement
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis, axis_part, joined_parts

if TYPE_CHECKING:
    from shardviz.hardware.clusters import Cluster


@dataclass(frozen=True)
class Machine:
    """Hardware that prices an answer.

    `name` is a cluster's (``v5p:4x4x8``) or a file's; `family` says how its devices are joined. With
    `assumed` nobody has named a machine: a v5e on which every mesh axis is a ring of its own. `source` says
    where the figures come from. `measured` are times of collectives that stand for the formulas.
    """

    name: str
    device: DeviceFigures
    family: Family
    assumed: bool = False
    source: str = ""
    measured: tuple[MeasuredTimes, ...] = ()

    @property
    def chip(self) -> str:
        """The name of its chips."""
        return self.family.chip

    @property
    def devices(self) -> int:
        """JAX devices in all; 0 on an assumed machine, which has as many as the mesh."""
        return self.family.devices

    @property
    def network(self) -> LinkSpec | None:
        """A device's part of the network between slices or nodes; None where there is none."""
        return self.family.links.get("network")

    @property
    def lacking(self) -> str:
        """The word for a figure that is not there: nobody has "published" it, or it was not "given"."""
        return "published" if self.chip in TPUS or self.chip in GPUS or self.assumed else "given"


@dataclass(frozen=True)
class PlacedMesh:
    """A mesh on a machine: for each of its axes the physical dimensions that it lies along, the major first.

    `placement` is None on an assumed machine.
    """

    machine: Machine
    levels: AxisLevels
    placement: Placement | None = None
    _by_axes: dict[tuple[tuple[str, ...], bool], tuple[LinkLevel, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh, without an order of devices of its own."""
        sizes = {axis: math.prod(level.size for level in own) for axis, own in self.levels}
        return Mesh(tuple(sizes), tuple(sizes.values()))

    def collective_time(
        self, op: str, size: int, axes: tuple[str, ...], *, in_rounds: bool = False
    ) -> CollectiveTime:
        """The time of a collective, by HLO's name, over the groups along these axes.

        It is that which was measured over such links, else by formula: the function of this name says what
        `size` and `in_rounds` are.
        """
        levels = self.group_levels(axes, in_order=op in SHIFTS)
        return collective_time(op, size, levels, in_rounds=in_rounds, measured=self.machine.measured)

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
        if (axes, in_order) not in self._by_axes:
            levels = tuple(level for axis in axes for level in self._levels_of(axis) if level.size > 1)
            if not (in_order and any(level.is_scattered for level in levels)):
                levels = self._of_blocks(axes) or joined_levels(levels)
            self._by_axes[axes, in_order] = self.machine.family.shared_by_cores(levels)
        return self._by_axes[axes, in_order]

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
        return part_of_levels(dict(self.levels)[part.axis], part.size, behind)

    def _of_blocks(self, axes: tuple[str, ...]) -> tuple[LinkLevel, ...] | None:
        if self.placement is None:
            return None
        groups = self.mesh.groups(axes)
        return self.machine.family.levels_of_blocks(
            self.placement, groups[:1] if self._is_regular else groups
        )

    @cached_property
    def _is_regular(self) -> bool:
        return self.placement is not None and self.placement.is_regular(self.mesh)


@dataclass(frozen=True)
class AxisRings(Family):
    """The family where nobody has named a machine: a ring over `link` for each axis of a mesh.

    It has `members` devices, 0 for as many as a mesh has.
    """

    link: LinkSpec
    members: int = 0

    @property
    def devices(self) -> int:
        return self.members

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        return ()

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        return {"ring": self.link}

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        return replace(self, link=links["ring"])

    def size_words(self) -> str:
        return f"{self.chip}, a ring for each mesh axis"

    def jax_order(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(range(math.prod(sizes)))


def machine_of(cluster: Cluster) -> Machine:
    """The machine that a cluster is, with the published figures of its chips."""
    chip = cluster.chip
    return Machine(cluster.name, chip.device, cluster.family, source=chip.source)


def assumed_machine(name: str = ASSUMED, devices: int = 0) -> Machine:
    """The machine where nobody has named one, or a chip alone: each mesh axis a ring of its own.

    It has as many `devices`, 0 for those of any mesh.
    """
    chip, hop = (GPUS[name], NVLINK_HOP) if name in GPUS else (TPUS[name], ICI_HOP)
    family = AxisRings(name, LinkSpec(hop, chip.link), devices)
    return Machine(name, chip.device, family, assumed=True, source=chip.source)


def on_assumed_machine(machine: Machine, mesh: Mesh) -> PlacedMesh:
    """The mesh on an assumed machine: a ring for each of its axes."""
    link = machine.family.usual_link
    levels = ((axis, (LinkLevel("ring", size, link, axis),)) for axis, size in mesh.shape.items())
    return PlacedMesh(machine, tuple(levels))
