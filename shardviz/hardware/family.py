"""A family of chips: the physical dimensions in which its devices lie, and the links of a group of them.

A new family is a class in a file of its own: it says which dimensions its devices have, how JAX places a
mesh on them and, where the general answers below do not hold, what the links of a group are.

Any machine here is a grid. Three dimensions of chips, the devices of each chip, and several slices:

    v5p:4x4x8        x 4, y 4, z 8       core 1     slice 1
    2*tpu7x:2x2x2    x 2, y 2, z 2       core 2     slice 2
    h100:2x8                             gpu 8      node 2

So the links of a group are asked of the grid. A group that fills a block of it, the same places on y at each
of its places on x, has along each dimension the links of that dimension, in any order of its devices. Of a
group that fills none no more is known than how far neighbours along a mesh axis are apart, and how many
messages then share the busiest link.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from operator import ne
from typing import ClassVar, Self

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.levels import Dimension, LevelKind, LinkLevel
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.placement import AxisRun, DeviceCoords, Placement, axis_run
from shardviz.sharding import Mesh
from shardviz.strict_table import StrictTable

Part = tuple[int, int, int]
"""The number of a dimension, how many of its places a group takes, and the steps between them."""
Parts = list[list[Part]]
"""The parts of each mesh axis, the major first."""
AxisLevels = tuple[tuple[str, tuple[LinkLevel, ...]], ...]
Places = list[tuple[int, ...]]
"""For each device of a group its place along every dimension."""

_Block = tuple[tuple[int, tuple[int, ...]], ...]
"""For each dimension of which a block has several places its number and those, from the first on."""

LARGE = 2**40
"""Bytes of a collective that is bound by its links' bandwidth."""


@dataclass(frozen=True)
class Family(ABC):
    """The way in which the devices of a machine are joined. A subclass is a frozen dataclass of the figures.

    `chip` is the name of its chips, `on_chip_name` that of the memory beside their matrix units.
    """

    on_chip_name: ClassVar[str] = "VMEM"
    chip: str

    @property
    def devices_per_chip(self) -> int:
        """JAX devices of one chip."""
        return 1

    @property
    def slices(self) -> int:
        """Slices that the network joins."""
        return 1

    @property
    @abstractmethod
    def devices(self) -> int:
        """JAX devices in all."""

    @property
    def link_name(self) -> str:
        """The name of the links in short."""
        return "ICI"

    @cached_property
    @abstractmethod
    def dimensions(self) -> tuple[Dimension, ...]:
        """The physical dimensions: those of a torus, then that within a chip or node, and that between slices
        or nodes."""

    @property
    @abstractmethod
    def links(self) -> Mapping[str, LinkSpec]:
        """The links by name: that of an axis of the torus, else the kind of their level."""

    @abstractmethod
    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        """The same with other figures of links, by the names of `links`."""

    def reaches(self, kind: str) -> bool:
        """There are several devices that links of this kind join."""
        return any(one.kind == kind and one.size > 1 for one in self.dimensions)

    @property
    def usual_link(self) -> LinkSpec:
        """The link that stands for all of them."""
        return next(iter(self.links.values()))

    @property
    def torus(self) -> tuple[Dimension, ...]:
        """The dimensions along which neighbours are linked."""
        return tuple(one for one in self.dimensions if one.is_torus)

    @property
    def torus_sizes(self) -> tuple[int, ...]:
        """The sizes of a slice's torus, in chips."""
        return tuple(one.size for one in self.torus)

    @abstractmethod
    def size_words(self) -> str:
        """``128 v5p chips, 4×4×8``."""

    # The places of a mesh's devices.

    @property
    def places(self) -> tuple[DeviceCoords, ...]:
        """The place of every device, by id."""
        return _places(tuple(self.dimensions[number].size for number in self.by_id))

    def placement(self, ids: tuple[int, ...], places: tuple[DeviceCoords, ...] | None = None) -> Placement:
        """The `places` of these devices, by row-major position in a mesh; by default as ids count them."""
        if places is None:
            by_id = self.places
            places = tuple(by_id[id_] for id_ in ids)
        wrap = tuple(one.kind == "ring" for one in self.torus)
        within, unit = (one.name for one in self.dimensions[-2:])
        return Placement(ids, places, self.torus_sizes, wrap, within, unit)

    def ids_of(self, parts: Parts) -> tuple[int, ...]:
        """The device ids by row-major position of a mesh whose axes have these parts."""
        ids = [0]
        for number, size, step in (part for axis in parts for part in axis):
            stride = step * self.dimensions[number].stride
            ids = [before + stride * place for before in ids for place in range(size)]
        return tuple(ids)

    @abstractmethod
    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        """Where `jax.make_mesh` puts a mesh of these sizes: the parts of dimensions that each of its axes
        gets, or the ids by mesh position where it has an order of its own; None where it places none."""

    @property
    def by_id(self) -> tuple[int, ...]:
        """The numbers of the dimensions, the one first along which ids rise first."""
        inner, outer = len(self.dimensions) - 2, len(self.dimensions) - 1
        return (inner, *range(inner), outer)

    def parts_by_id(self, by_id: Sequence[int], sizes: Sequence[int]) -> Parts | None:
        """The parts of these dimensions where the ids rise along the mesh; None where a mesh axis does not
        take whole parts."""
        parts: Parts = [[] for _ in sizes]
        # The minor axes of the mesh take what the minor dimensions still have.
        minor, taken = 0, 1
        for axis in reversed(range(len(sizes))):
            rest = sizes[axis]
            while rest > 1:
                size = self.dimensions[by_id[minor]].size
                part = math.gcd(rest, size // taken)
                if part == 1 or (part < rest and taken * part < size):
                    return None
                parts[axis].insert(0, (by_id[minor], part, taken))
                rest, taken = rest // part, taken * part
                if taken == size:
                    minor, taken = minor + 1, 1
        return parts

    # The links of a group.

    def shared_by_cores(self, levels: tuple[LinkLevel, ...]) -> tuple[LinkLevel, ...]:
        """The levels of a group with its part of the links of chips that it has one of several devices of:
        the others' groups use them as well."""
        return levels

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        """The levels of a group of so many devices of which nothing else is known: here, a ring."""
        return (LinkLevel("ring", size, self.usual_link, "links"),)

    def levels_of_parts(self, mesh: Mesh, parts: Parts) -> AxisLevels:
        """The levels of each mesh axis where its parts of the machine are known."""
        return tuple(
            (axis, tuple(self.dimensions[number].level(size, step) for number, size, step in own))
            for axis, own in zip(mesh.axis_names, parts, strict=True)
        )

    def levels_of_places(self, mesh: Mesh, placement: Placement) -> AxisLevels:
        """The levels of each mesh axis where only the places are known."""
        levels = []
        is_regular = placement.is_regular(mesh)
        for axis in mesh.axis_names:
            groups = mesh.groups((axis,))
            of_blocks = self.levels_of_blocks(placement, groups[:1] if is_regular else groups)
            if of_blocks is None:
                of_blocks = (self._scattered(mesh, placement, axis_run(placement, mesh, axis)),)
            levels.append((axis, of_blocks))
        return tuple(levels)

    def _scattered(self, mesh: Mesh, placement: Placement, run: AxisRun) -> LinkLevel:
        """The level of a mesh axis whose groups fill no blocks."""
        (*torus, inner, outer), size = self.dimensions, mesh.axis_size(run.axis)
        if run.hops is None:
            return outer.level(size)
        if not torus:
            return inner.level(size)
        slowest = min((one.link for one in torus if one.link), key=lambda link: link.bandwidth)
        kind: LevelKind = "ring" if run.is_ring else "line"
        load = 0
        if self.devices_per_chip == 1:
            load = _busiest_link(placement, mesh.groups((run.axis,)), run.is_ring)
        return LinkLevel(kind, size, slowest, " and ".join(run.along), max(run.hops, 1), load=load)

    def levels_of_blocks(
        self, placement: Placement, groups: Iterable[Sequence[int]]
    ) -> tuple[LinkLevel, ...] | None:
        """The levels of groups of mesh positions that each fill a block, of different blocks the slowest
        one's; None where one group fills none.
        """
        place_of = placement.coordinates
        blocks: dict[_Block, Places] = {}
        for group in groups:
            places = [place_of[position] for position in group]
            block = _block(places)
            if block is None:
                return None
            blocks.setdefault(block, places)
        by_levels: dict[frozenset[tuple[int, LinkLevel]], Places] = {}
        for block, places in blocks.items():
            levels = frozenset((number, self.dimensions[number].level_of(along)) for number, along in block)
            by_levels.setdefault(levels, places)
        ordered = (self._in_order(dict(levels), places) for levels, places in by_levels.items())
        return max(ordered, key=lambda levels: _slowness(self.shared_by_cores(levels)))

    def _in_order(self, levels: Mapping[int, LinkLevel], places: Places) -> tuple[LinkLevel, ...]:
        """The levels of a block by dimension, the major first: the one along which its devices change least
        often."""
        columns = [*zip(*places, strict=True)]
        changes = {number: sum(map(ne, columns[number], columns[number][1:])) for number in levels}
        # Where nothing tells them apart slices come first, then z before y, and cores last.
        major_first = sorted(levels, key=lambda number: (changes[number], -self.by_id.index(number)))
        return tuple(levels[number] for number in major_first)


@dataclass(frozen=True)
class FileFamily(Family):
    """A family that a machine's file may describe, in its table `table`; "a machine has `words`".

    `network_hop` is the latency of its network where none is given.
    """

    table: ClassVar[str]
    words: ClassVar[str]
    network_hop: ClassVar[float]

    @classmethod
    @abstractmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        """The family by its table, over the figures `before`. Raises what the table makes."""

    @abstractmethod
    def toml(self) -> list[str]:
        """The lines of the table that `read` reads to the same."""


@lru_cache(maxsize=8)
def _places(sizes: tuple[int, ...]) -> tuple[DeviceCoords, ...]:
    """The places on dimensions of these sizes, the one first along which ids rise first: cores, then x, y and
    z, then slices."""
    core, *torus, slices = sizes
    chips = [tuple(reversed(coords)) for coords in product(*map(range, reversed(torus)))]
    return tuple(
        DeviceCoords(coords, number, slice_)
        for slice_ in range(slices)
        for coords in chips
        for number in range(core)
    )


def _slowness(levels: tuple[LinkLevel, ...]) -> tuple[float, ...]:
    """Seconds of large and of empty collectives on the levels."""
    times = [collective_time(op, LARGE, levels) for op in ("all-gather", "all-to-all")]
    return (*(time.bandwidth_seconds for time in times), times[0].latency_seconds)


def _busiest_link(placement: Placement, groups: Iterable[Sequence[int]], closes: bool) -> int:
    """The most messages over a link of the torus when every device sends to its neighbours along a mesh axis,
    on shortest ways, x before y before z."""
    import numpy as np

    from shardviz.hardware.routes import link_loads
    from shardviz.hardware.topology import Torus

    slices = 1 + max(place.slice for place in placement.places)
    torus = Torus((slices, *placement.torus), (False, *placement.wrap))
    sends: list[tuple[int, int]] = []
    for group in groups:
        places = [placement.places[position] for position in group]
        chips = [int(np.ravel_multi_index((place.slice, *place.coords), torus.dims)) for place in places]
        pairs = list(pairwise(chips)) + [(chips[-1], chips[0])] * (closes and len(chips) > 2)
        sends += [*pairs, *((after, before) for before, after in pairs)]
    src, dst = np.array(sends).T
    return int(link_loads(torus, src, dst, np.ones(len(src), dtype=np.int64)).max())


def _block(places: Sequence[tuple[int, ...]]) -> _Block | None:
    """The block that a group fills, wherever it lies; None where it fills none.

    It fills one where it has as many devices as the places that it has along each dimension multiply to.
    """
    block = []
    for number, coords in enumerate(zip(*places, strict=True)):
        distinct = set(coords)
        if len(distinct) > 1:
            first, *others = sorted(distinct)
            block.append((number, (0, *(place - first for place in others))))
    return tuple(block) if math.prod(len(along) for _, along in block) == len(places) else None
