"""A family of chips: the physical dimensions in which its devices lie, and how JAX places a mesh on them.

Any machine here is a grid. Three dimensions of chips, the devices of each chip, and several slices:

    v5p:4x4x8        x 4, y 4, z 8       core 1     slice 1
    2*tpu7x:2x2x2    x 2, y 2, z 2       core 2     slice 2
    h100:2x8                             gpu 8      node 2

A new family is a class in a file of its own: it makes these dimensions, and says how JAX places a mesh on
them and, where the general answers below do not hold, what joins a group of its devices.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar, Literal, Self

from shardviz.hardware.links import Dimension, LinkLevel, LinkSpec
from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.sharding import Mesh
from shardviz.strict_table import StrictTable

Part = tuple[int, int, int]
"""The number of a dimension, how many of its places a group takes, and the steps between them."""
Parts = list[list[Part]]
"""The parts of each mesh axis, the major first."""


@dataclass(frozen=True)
class Family(ABC):
    """The way in which the devices of a machine are joined.

    `chip` is the name of its chips, `on_chip_name` that of the memory beside their matrix units, `link_name`
    the name of the links in short. The `dimensions` are those of a torus, then that within a chip or node,
    and that between slices or nodes.
    """

    on_chip_name: ClassVar[str] = "VMEM"
    process: ClassVar[Literal["tpu", "cuda"]] = "tpu"
    """The process that compiles for its chips."""
    chip: str
    dimensions: tuple[Dimension, ...]

    @property
    def devices(self) -> int:
        """JAX devices in all."""
        return math.prod(one.size for one in self.dimensions)

    @property
    def devices_per_chip(self) -> int:
        """JAX devices of one chip."""
        return math.prod(one.size for one in self.dimensions if one.kind == "chip")

    @property
    def slices(self) -> int:
        """Slices that the network joins."""
        return math.prod(one.size for one in self.dimensions if one.name == "slice")

    @property
    def link_name(self) -> str:
        """The name of the links in short."""
        return "ICI"

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        """The links by name: that of an axis of the torus, else the kind of their level."""
        return {_key(one): one.link for one in self.dimensions if one.link is not None}

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        """The same with other figures of links, by the names of `links`."""
        return replace(
            self, dimensions=tuple(replace(one, link=links.get(_key(one))) for one in self.dimensions)
        )

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

    @property
    def hardware(self) -> str:
        """The name of hardware with these dimensions, as it stands after `--target`; "" where it has none."""
        return ""

    @abstractmethod
    def size_words(self) -> str:
        """``128 v5p chips, 4×4×8``."""

    def dimensions_for(self, mesh: Mesh) -> tuple[Dimension, ...]:
        """The dimensions on which this mesh lies."""
        del mesh
        return self.dimensions

    @property
    def by_id(self) -> tuple[int, ...]:
        """The numbers of the dimensions, the one first along which ids rise first."""
        inner, outer = len(self.dimensions) - 2, len(self.dimensions) - 1
        return (inner, *range(inner), outer)

    def placement(self, ids: tuple[int, ...], places: tuple[DeviceCoords, ...] | None = None) -> Placement:
        """The `places` of these devices, by row-major position in a mesh; by default as ids count them."""
        if places is None:
            by_id = _places(tuple(self.dimensions[number].size for number in self.by_id))
            places = tuple(by_id[id_] for id_ in ids)
        wrap = tuple(one.kind == "ring" for one in self.torus)
        within, unit = (one.name for one in self.dimensions[-2:])
        return Placement(ids, places, self.torus_sizes, wrap, within, unit)

    def ids_of(self, parts: Sequence[Sequence[Part]]) -> tuple[int, ...]:
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

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        """The levels of a group of so many devices of which nothing else is known: here, a ring."""
        return (LinkLevel("ring", size, self.usual_link, "links"),)


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


def _key(dimension: Dimension) -> str:
    return dimension.name if dimension.is_torus else dimension.kind


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
