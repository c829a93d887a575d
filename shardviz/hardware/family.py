"""A family of chips: the physical dimensions in which its devices lie, and how JAX places a mesh on them.

Any machine here is a grid: dimensions of chips, the devices of each chip or node, and slices or nodes:

    v5p:4x4x8        x 4, y 4, z 8       core 1     slice 1
    2*tpu7x:2x2x2    x 2, y 2, z 2       core 2     slice 2
    h100:2x8                             gpu 8      node 2

A new family is a class, as `ChipTorus` and `SwitchedNodes`: it makes these dimensions, and says how JAX
places a mesh on them and, where the general answers below do not hold, what joins a group of its devices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar, Literal, Self

from shardviz.errors import plural
from shardviz.hardware.chips import GPUS, INFINIBAND_HOP, MAX_DEVICES, NVLINK_HOP, USUAL_NCCL, Gpu, nodes_name
from shardviz.hardware.links import LINK_FIGURES, Dimension, LinkLevel, LinkSpec, link_toml, read_link
from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.hardware.quantities import count
from shardviz.sharding.digits import Digit, pieces, row_major
from shardviz.strict_table import StrictTable

Part = tuple[int, int, int]
"""The number of a dimension, how many of its places a group takes, and the steps between them."""
Parts = list[list[Part]]


@dataclass(frozen=True)
class Family(ABC):
    """The way in which the devices of a machine are joined.

    The `dimensions` are those of a torus, then that within a chip or node, and that between slices or nodes.
    `on_chip_name` is what the memory beside the matrix units is called, `process` the one that compiles for
    its chips. A machine's file describes the family in its table `table`, "" where none does: "a machine has
    `words`". `network_hop` is the latency of its network where none is given."""

    table: ClassVar[str] = ""
    words: ClassVar[str]
    network_hop: ClassVar[float]
    on_chip_name: ClassVar[str] = "VMEM"
    process: ClassVar[Literal["tpu", "cuda"]] = "tpu"
    chip: str
    dimensions: tuple[Dimension, ...]

    @property
    def devices(self) -> int:
        """JAX devices in all."""
        return math.prod(one.size for one in self.dimensions)

    @property
    def devices_per_chip(self) -> int:
        return math.prod(one.size for one in self.dimensions if one.kind == "chip")

    @property
    def slices(self) -> int:
        return math.prod(one.size for one in self.dimensions if one.name == "slice")

    @property
    def parts(self) -> int:
        """The slices or nodes that a network joins."""
        return self.dimensions[-1].size if self.dimensions else 1

    @property
    def link_name(self) -> str:
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
        return any(one.kind == kind and one.size > 1 for one in self.dimensions)

    @property
    def lacks_links(self) -> bool:
        return any(one.size > 1 and one.link is None for one in self.dimensions)

    @property
    def usual_link(self) -> LinkSpec:
        return next(iter(self.links.values()))

    @property
    def torus(self) -> tuple[Dimension, ...]:
        return tuple(one for one in self.dimensions if one.is_torus)

    @property
    def torus_sizes(self) -> tuple[int, ...]:
        return tuple(one.size for one in self.torus)

    @property
    def hardware(self) -> str:
        """The name of hardware with these dimensions, as it stands after `--target`; "" where it has none."""
        return ""

    @abstractmethod
    def size_words(self) -> str:
        """``128 v5p chips, 4×4×8``."""

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

    @abstractmethod
    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        """The parts of dimensions that `jax.make_mesh` gives each axis of a mesh of these sizes, or the ids
        by mesh position where it has an order of its own; None where it places none."""

    def parts_by_id(self, sizes: Sequence[int]) -> Parts | None:
        """The parts of these dimensions where the ids rise along the mesh; None where they are not whole."""
        whole = [(number, self.dimensions[number].size, 1) for number in reversed(self.by_id)]
        parts = [parts_of(digit, whole) for digit in row_major(sizes)]
        return None if None in parts else [part for part in parts if part is not None]

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        """The levels of a group of so many devices of which nothing else is known: here, a ring."""
        return (LinkLevel("ring", size, self.usual_link, "links"),)

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        """The family by its table, over the figures `before`. Raises what the table makes."""
        raise NotImplementedError

    def toml(self) -> list[str]:
        return []


CPU = "cpu"
"""The chip of a machine of simulated devices, which share the memory of their host."""


@dataclass(frozen=True)
class SwitchedNodes(Family):
    """Equal nodes, each device with a link to the switch of its node, or to each other device there, and its
    part of a network. An NVLink domain of 72 is one such node; so is a host of simulated devices, whose
    switch is its memory."""

    table: ClassVar[str] = "node"
    on_chip_name: ClassVar[str] = "L2 cache"
    process: ClassVar[Literal["tpu", "cuda"]] = "cuda"
    words: ClassVar[str] = "nodes"
    network_hop: ClassVar[float] = INFINIBAND_HOP
    keys: ClassVar[tuple[str, ...]] = ("devices", "count", "direct", *LINK_FIGURES)

    @classmethod
    def of(
        cls, chip: str, node: int, nodes: int, node_link: LinkSpec | None, network: LinkSpec | None,
        direct: bool = False,
    ) -> Self:  # fmt: skip
        """`nodes` of `node` devices, in which each pair has a link where that is `direct`; collectives over
        GPUs take the time of NCCL, but for those of others and simulated ones."""
        gpu = GPUS.get(chip)
        nccl = "" if chip == CPU else USUAL_NCCL if gpu is None else gpu.nccl
        name = gpu.fabric if gpu else "NVLink" if nccl else "host memory"
        inner = Dimension("gpu", node, 1, "switch", node_link, name, nccl, direct)
        return cls(chip, (inner, Dimension("node", nodes, node, "network", network, "network", nccl)))

    @classmethod
    def published(cls, gpu: Gpu, nodes: int, gpus: int) -> Self:
        link = None if gpu.link is None else LinkSpec(NVLINK_HOP, gpu.link, gpu.start)
        return cls.of(gpu.name, gpus, nodes, link, LinkSpec(INFINIBAND_HOP, gpu.network), gpu.direct)

    @property
    def hardware(self) -> str:
        node, nodes = (one.size for one in self.dimensions)
        return nodes_name(self.chip, nodes, node)

    @property
    def link_name(self) -> str:
        return self.dimensions[0].label

    def size_words(self) -> str:
        node, nodes = (one.size for one in self.dimensions)
        where = f" in {plural(nodes, 'node')} of {node}" if nodes > 1 else ""
        host = GPUS[self.chip].host if self.chip in GPUS else 0
        hosts = f", {plural(self.devices // host, 'host')} of {host}" if host and node % host == 0 else ""
        return f"{plural(self.devices, 'device')}{where}, {self.chip}{hosts}"

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        if before is None:
            table.typed("devices", int, "write how many devices a node has")
        node, nodes = (0, 1) if before is None else (one.size for one in before.dimensions)
        links = {} if before is None else before.links
        node = count(table, "devices", node, MAX_DEVICES)
        nodes = count(table, "count", nodes, MAX_DEVICES)
        link, is_unpublished = links.get("switch"), chip in GPUS and GPUS[chip].link is None
        if link is not None or not is_unpublished or any(key in table for key in LINK_FIGURES):
            link = read_link(table, link, NVLINK_HOP)
        direct = before is not None and before.dimensions[0].direct
        direct = table.typed("direct", bool) if "direct" in table else direct
        return cls.of(chip, node, nodes, link, links.get("network"), direct)

    def toml(self) -> list[str]:
        node, nodes = (one.size for one in self.dimensions)
        direct = ["direct = true"] * self.dimensions[0].direct
        links = link_toml(self.links["switch"]) if "switch" in self.links else []
        return [f"devices = {node}", f"count = {nodes}", *direct, *links]

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        # In the order of their ids.
        return self.parts_by_id(sizes) or tuple(range(self.devices))

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        inner, outer = self.dimensions
        if size <= inner.size:
            return (inner.level(size),)
        return () if outer.link is None else (outer.level(-(-size // inner.size)), inner.level(inner.size))


def parts_of(digit: Digit, whole: Sequence[Part]) -> list[Part] | None:
    """The parts of which a digit of the places on `whole` parts is made; None where it cuts one unevenly."""
    factors = pieces(digit, [size for _, size, _ in whole])
    return factors and [
        (whole[index][0], size, whole[index][2] * (whole[index][1] // (above * size)))
        for index, above, size in factors
    ]


def _key(dimension: Dimension) -> str:
    return dimension.name if dimension.is_torus else dimension.kind


@lru_cache(maxsize=8)
def _places(sizes: tuple[int, ...]) -> tuple[DeviceCoords, ...]:
    """Places on dimensions of these sizes, in the order in which ids rise: cores, x, y, z, slices."""
    core, *torus, slices = sizes
    chips = [tuple(reversed(coords)) for coords in product(*map(range, reversed(torus)))]
    return tuple(
        DeviceCoords(coords, number, slice_)
        for slice_ in range(slices)
        for coords in chips
        for number in range(core)
    )
