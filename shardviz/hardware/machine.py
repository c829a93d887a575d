"""Machines, by whose devices and links answers are priced; a mesh on one, and the links of its groups.

A group that fills a block of the grid of devices, the same places on y at each of its places on x, has along
each dimension the links of that dimension. Of one that fills none no more is known than how far neighbours
along a mesh axis are apart, and how many messages then share the busiest link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise, product
from operator import ne
from typing import Self

from shardviz.errors import QuestionError, plural
from shardviz.hardware.chips import ALLOCATED, CHIPS, GPUS, ICI_HOP, NVLINK_HOP, REACHED, DeviceFigures
from shardviz.hardware.collective_time import SHIFTS, CollectiveTime, collective_time
from shardviz.hardware.family import Family, Part, Parts, parts_of
from shardviz.hardware.links import (
    ASSUMED,
    Dimension,
    LevelKind,
    LinkLevel,
    LinkSpec,
    UnpublishedLinkError,
    joined_levels,
)
from shardviz.hardware.measured import MeasuredTimes
from shardviz.hardware.placement import Coordinates, Placement, axis_run
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis, axis_part, joined_parts
from shardviz.sharding.digits import Digit, numbers

Levels = tuple[LinkLevel, ...]
Block = tuple[tuple[int, tuple[int, ...]], ...]
"""For each dimension of which a block has several places its number and those, from the first on."""
LARGE = 2**40
"""Bytes of a collective that is bound by its links' bandwidth."""
MAX_TRIED, SUGGESTED = 200, 4
"""Meshes that are tried for a hint, and that it names."""


@dataclass(frozen=True)
class Machine:
    """Hardware that prices an answer, of the `name` of hardware (``v5p:4x4x8``) or of a file. With `assumed`
    nobody has named a machine: a v5e on which every mesh axis is a ring of its own. `source` says where the
    figures come from. `measured` times of collectives stand for the formulas."""

    name: str
    device: DeviceFigures
    family: Family
    assumed: bool = False
    source: str = ""
    measured: tuple[MeasuredTimes, ...] = ()

    @property
    def chip(self) -> str:
        return self.family.chip

    @property
    def devices(self) -> int:
        """JAX devices in all; 0 on an assumed machine, which has as many as the mesh."""
        return self.family.devices

    @property
    def network(self) -> LinkSpec | None:
        return self.family.links.get("network")

    @property
    def reached(self) -> float | None:
        """The part of the speed at peak that published training runs reach; None where no run is known, and
        of a file that gives another peak, or other measured matmuls."""
        figures = CHIPS[self.chip].device if self.chip in REACHED else None
        is_own = figures and (figures.peak, figures.matmuls) != (self.device.peak, self.device.matmuls)
        return None if self.assumed or is_own else REACHED.get(self.chip)

    @property
    def allocated(self) -> float:
        """The part that a compiler may allocate beyond what a program holds at once by an estimate."""
        return ALLOCATED.get(self.chip, max(ALLOCATED.values()))

    @property
    def lacking(self) -> str:
        """The word for a figure that is not there: nobody has "published" it, or it was not "given"."""
        return "published" if self.chip in CHIPS or self.assumed else "given"

    @property
    def is_named(self) -> bool:
        return self.chip in CHIPS and self.name == self.family.hardware

    def names_of_size(self, devices: int) -> list[str]:
        """Names of hardware of the same chip with that many devices; none for a machine of a file."""
        return CHIPS[self.chip].names_of_size(devices, self.family.slices) if self.is_named else []


@dataclass(frozen=True)
class AxisRings(Family):
    """The family where nobody has named a machine: a ring over `link` for each axis of a mesh, of `members`
    devices, 0 for as many as a mesh has."""

    link: LinkSpec
    members: int

    @property
    def devices(self) -> int:
        return self.members

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        return {"ring": self.link}

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        return replace(self, link=links["ring"])

    def size_words(self) -> str:
        return f"{self.chip}, a ring for each mesh axis"

    def jax_order(self, sizes: Sequence[int]) -> Parts:
        return [[(number, size, 1)] for number, size in enumerate(sizes)]


def published_machine(family: Family) -> Machine:
    """The machine of hardware that has a name, with the published figures of its chips."""
    chip = CHIPS[family.chip]
    return Machine(family.hardware, chip.device, family, source=chip.source)


def assumed_machine(name: str = ASSUMED, devices: int = 0) -> Machine:
    """The machine where nobody has named one, or a chip alone: each mesh axis a ring of its own, as the book
    has them, without the start that collectives were measured to have. It has as many `devices`, 0 for those
    of any mesh. Raises `QuestionError` for a chip whose links nobody publishes."""
    chip = CHIPS[name]
    if chip.link is None:
        raise QuestionError(f"the links of {name} are not published", "give them in a machine file")
    family = AxisRings(name, (), LinkSpec(NVLINK_HOP if name in GPUS else ICI_HOP, chip.link), devices)
    return Machine(name, chip.device, family, assumed=True, source=chip.source)


@dataclass(frozen=True)
class PlacedMesh:
    """A mesh on a machine. `parts` are those of the machine's dimensions that each mesh axis has; None where
    its axes do not lie along them, so that only the `places` of the devices say which links they have."""

    machine: Machine
    mesh: Mesh
    parts: tuple[tuple[Part, ...], ...] | None = None
    places: Placement | None = None
    _by_axes: dict[tuple[tuple[str, ...], bool], Levels] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def placement(self) -> Placement | None:
        if self.machine.assumed or self.parts is None:
            return self.places
        every = (part for axis in self.parts for part in axis)
        ids = numbers((size, step * self._dimensions[number].stride) for number, size, step in every)
        return self.machine.family.placement(tuple(ids))

    def collective_time(
        self, op: str, size: int, axes: tuple[str, ...], *, in_rounds: bool = False
    ) -> CollectiveTime:
        """The time of a collective, by HLO's name, over the groups along these axes."""
        levels = self.group_levels(axes, in_order=op in SHIFTS)
        return collective_time(op, size, levels, in_rounds=in_rounds, measured=self.machine.measured)

    def levels_for(self, op: str, axes: tuple[str, ...]) -> Levels:
        """`group_levels` of the groups over which an operation runs, by JAX's name."""
        return self.group_levels(axes, in_order=op == "ppermute")

    def published_levels(self, axes: tuple[str, ...]) -> Levels:
        try:
            return self.group_levels(axes)
        except UnpublishedLinkError:
            return ()

    def group_levels(self, axes: tuple[str, ...], in_order: bool = False) -> Levels:
        """The dimensions of a group along these mesh axes, or parts of them; those of size 1 are left out.

        They are those of the block of devices that the group fills. Where it fills none they are its axes',
        of which those that share a physical dimension are one, as slow as the slowest. With `in_order`
        members send to the next by number, as in a permute, and not to the next on the links: then axes that
        fill no block are as they are."""
        if any(":" in axis for axis in axes):
            # The devices of a group are the same in any order of the parts.
            places = {axis: axis_part(axis) or SubAxis(axis, 1, 1) for axis in axes}
            order = self.mesh.axis_names.index
            in_mesh = sorted(axes, key=lambda axis: (order(places[axis].axis), places[axis].before))
            axes = joined_parts(in_mesh, self.mesh.shape)
        if (axes, in_order) not in self._by_axes:
            self._by_axes[axes, in_order] = self._shared_by_cores(self._levels(axes, in_order))
        return self._by_axes[axes, in_order]

    def _levels(self, axes: tuple[str, ...], in_order: bool) -> Levels:
        parts = [self._parts_of(axis) for axis in axes]
        if None not in parts:
            return self._levels_of_parts([part for own in parts for part in own or ()])
        of_axes = [level for axis in axes for level in self._levels_of_axis(axis) if level.size > 1]
        if in_order and any(level.load or len(level.words) > 1 for level in of_axes):
            return tuple(of_axes)
        return self._levels_of_blocks(axes) or joined_levels(of_axes)

    def _shared_by_cores(self, levels: Levels) -> Levels:
        """The levels of a group; the other cores of its chips use their links as well."""
        cores = self.machine.family.devices_per_chip
        if cores == 1 or any(level.kind == "chip" for level in levels):
            return levels

        def shared(link: LinkSpec) -> LinkSpec:
            return replace(link, bandwidth=link.bandwidth / cores)

        return tuple(replace(one, spec=shared(one.spec)) if one.is_torus else one for one in levels)

    def _parts_of(self, name: str) -> Sequence[Part] | None:
        if self.parts is None:
            return None
        sub_axis = axis_part(name)
        own = self.parts[self.mesh.axis_names.index(name if sub_axis is None else sub_axis.axis)]
        if sub_axis is None:
            return own
        behind = self.mesh.axis_size(sub_axis.axis) // (sub_axis.before * sub_axis.size)
        return parts_of(Digit(sub_axis.size, behind), own)

    def _levels_of_parts(self, parts: Iterable[Part]) -> Levels:
        """The levels of a group with these parts, which fill a block; major first, by their minor parts."""
        runs: dict[int, list[tuple[int, int]]] = {}
        for number, size, step in parts:
            if size > 1:
                runs[number] = [*runs.pop(number, ()), (step, size)]
        levels = []
        for number, own in runs.items():
            dimension = self._dimensions[number]
            own.sort(reverse=True)
            if all(step == after * count for (step, _), (after, count) in pairwise(own)):
                levels.append(dimension.level(math.prod(size for _, size in own), own[-1][0]))
            else:
                every = product(*(range(0, step * size, step) for step, size in own))
                levels.append(dimension.level_of([*map(sum, every)]))
        return tuple(levels)

    @cached_property
    def _dimensions(self) -> tuple[Dimension, ...]:
        family, mesh = self.machine.family, self.mesh
        return family.dimensions or tuple(
            Dimension(axis, size, mesh.stride(axis), "ring", family.usual_link, axis)
            for axis, size in mesh.shape.items()
        )

    def _levels_of_axis(self, axis: str) -> Levels:
        levels = self._levels_of_blocks((axis,))
        if levels is not None:
            return levels
        assert self.placement is not None
        (*torus, inner, outer), size = self._dimensions, self.mesh.axis_size(axis)
        run = axis_run(self.placement, self.mesh, axis)
        if run.hops is None or not torus:
            return ((outer if run.hops is None else inner).level(size),)
        slowest = min((one.link for one in torus if one.link), key=lambda link: link.bandwidth)
        kind: LevelKind = "ring" if run.is_ring else "line"
        load = 0
        if self.machine.family.devices_per_chip == 1:
            load = _busiest_link(self.placement, self.mesh.groups((axis,)), run.is_ring)
        return (LinkLevel(kind, size, slowest, " and ".join(run.along), max(run.hops, 1), load=load),)

    def _levels_of_blocks(self, axes: tuple[str, ...]) -> Levels | None:
        """The levels of groups that each fill a block, of different blocks the slowest one's; else None."""
        assert self.placement is not None
        blocks: dict[Block, list[Coordinates]] = {}
        for group in self.mesh.groups(axes):
            places = [self.placement.coordinates[position] for position in group]
            block = _block(places)
            if block is None:
                return None
            blocks.setdefault(block, places)
        by_levels: dict[frozenset[tuple[int, LinkLevel]], list[Coordinates]] = {}
        for block, places in blocks.items():
            levels = frozenset((number, self._dimensions[number].level_of(along)) for number, along in block)
            by_levels.setdefault(levels, places)
        ordered = [self._in_order(dict(levels), places) for levels, places in by_levels.items()]

        def slowness(levels: Levels) -> tuple[float, ...]:
            shared = self._shared_by_cores(levels)
            gather, exchange = (collective_time(op, LARGE, shared) for op in ("all-gather", "all-to-all"))
            return gather.bandwidth_seconds, exchange.bandwidth_seconds, gather.latency_seconds

        return max(ordered, key=slowness) if len(ordered) > 1 else ordered[0]

    def _in_order(self, levels: Mapping[int, LinkLevel], places: list[Coordinates]) -> Levels:
        """The levels of a block, the major first: that along which its devices change least often."""
        columns = [*zip(*places, strict=True)]
        changes = {number: sum(map(ne, columns[number], columns[number][1:])) for number in levels}
        # Where nothing tells them apart slices come first, then z before y, and cores last.
        by_id = self.machine.family.by_id
        major_first = sorted(levels, key=lambda number: (changes[number], -by_id.index(number)))
        return tuple(levels[number] for number in major_first)


def _block(places: Sequence[Coordinates]) -> Block | None:
    """The block that a group fills; None where it leaves places out."""
    block = []
    for number, coords in enumerate(zip(*places, strict=True)):
        distinct = set(coords)
        if len(distinct) > 1:
            first, *others = sorted(distinct)
            block.append((number, (0, *(coord - first for coord in others))))
    return tuple(block) if math.prod(len(along) for _, along in block) == len(places) else None


def _busiest_link(placement: Placement, groups: Iterable[Sequence[int]], closes: bool) -> int:
    """The most messages over a link when every device sends to its neighbours along a mesh axis."""
    import numpy as np

    from shardviz.hardware.routes import link_loads
    from shardviz.hardware.topology import Torus

    slices = 1 + max(coords.slice for coords in placement.places)
    torus = Torus((slices, *placement.torus), (False, *placement.wrap))
    sends: list[tuple[int, int]] = []
    for group in groups:
        places = [placement.places[position] for position in group]
        chips = [int(np.ravel_multi_index((coords.slice, *coords.coords), torus.dims)) for coords in places]
        pairs = list(pairwise(chips)) + [(chips[-1], chips[0])] * (closes and len(chips) > 2)
        sends += [*pairs, *((after, before) for before, after in pairs)]
    src, dst = np.array(sends).T
    return int(link_loads(torus, src, dst, np.ones(len(src), dtype=np.int64)).max())


def place_mesh(
    machine: Machine, mesh: Mesh, placement: Placement | None = None, *, of_program: bool = False
) -> PlacedMesh:
    """The mesh on the machine: as `placement` has it, else in its own device order, else as JAX places it.
    One `of_program` is compiled for so many devices, and the hint does not tell to resize it. Raises
    `QuestionError` for a mesh of another size than the machine, and for one that JAX does not place."""
    family, order = machine.family, mesh.device_order
    mesh = replace(mesh, device_order=None)
    if placement is not None and not machine.assumed:
        return PlacedMesh(machine, mesh, places=placement)
    if mesh.size != machine.devices and not machine.assumed:
        raise QuestionError(*another_size(machine, mesh, "--machine", resizes=not of_program))
    asked = None if machine.assumed else order
    device_ids = family.jax_order(mesh.axis_sizes) if asked is None else asked
    if device_ids is None:
        raise QuestionError(*not_placed(machine, mesh))
    if isinstance(device_ids, tuple) and device_ids == tuple(range(mesh.size)):
        device_ids = family.parts_by_id(mesh.axis_sizes) or device_ids
    if isinstance(device_ids, tuple):
        return PlacedMesh(machine, mesh, places=family.placement(device_ids))
    return PlacedMesh(machine, mesh, tuple(map(tuple, device_ids)))


def another_size(machine: Machine, mesh: Mesh, option: str, *, resizes: bool = True) -> tuple[str, str]:
    """The error for a machine and a mesh of another size, and the hint: other hardware, given by `option`, or
    with `resizes` another mesh."""
    fitting = machine.names_of_size(mesh.size)
    hints = [f"{option} {' or '.join(fitting)}"] if fitting else []
    if resizes:
        hints.append(f"--mesh {_mesh_of_size(mesh, machine.devices)}")
    cores = machine.family.devices_per_chip if machine.is_named else 1
    made_of = f" ({plural(machine.devices // cores, 'chip')} of {cores} devices)" if cores > 1 else ""
    return (
        f"{machine.name} has {plural(machine.devices, 'device')}{made_of}, but the mesh {mesh} has "
        f"{mesh.size:,}",
        f"use {', or '.join(hints) or f'a machine of {mesh.size:,}'}",
    )


def _mesh_of_size(mesh: Mesh, size: int) -> str:
    """The axes of a mesh, resized as little as possible so that they have `size` devices together."""
    sizes = dict(mesh.shape)
    for axis in sizes:
        others = mesh.size // sizes[axis]
        if size % others == 0:
            sizes[axis] = size // others
            break
    else:
        rest = size
        for axis in list(sizes)[:-1]:
            sizes[axis] = next(part for part in range(min(rest, sizes[axis]), 0, -1) if rest % part == 0)
            rest //= sizes[axis]
        sizes[list(sizes)[-1]] = rest
    return ",".join(f"{axis}={size}" for axis, size in sizes.items())


def not_placed(machine: Machine, mesh: Mesh) -> tuple[str, str]:
    sizes, count = mesh.axis_sizes, machine.devices
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    majors = product(divisors, repeat=len(sizes) - 1)
    candidates = [(*major, count // math.prod(major)) for major in majors if count % math.prod(major) == 0]

    def distance(other: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(other, sizes, strict=True))

    tried = sorted(candidates, key=distance)[:MAX_TRIED]
    placed = (other for other in tried if machine.family.jax_order(other) is not None)
    meshes = [",".join(map("{}={}".format, mesh.axis_names, other)) for other in islice(placed, SUGGESTED)]
    where = "use --device-order row-major to place it by the ids"
    return (
        f"jax.make_mesh does not place a mesh of {'x'.join(map(str, sizes))} on {machine.name}: "
        "no axis of the torus may be split between two axes of the mesh",
        f"{where}; these it places: {'; '.join(meshes)}" if meshes else where,
    )
