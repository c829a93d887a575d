"""Nodes of GPUs: the devices of a node share a switch, and a network joins the nodes.

An NVLink domain of 72 is one such node; a host of simulated devices one whose switch is its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from shardviz.errors import plural
from shardviz.hardware.chips import INFINIBAND_HOP, MAX_DEVICES, NVLINK_HOP
from shardviz.hardware.family import FileFamily, Parts
from shardviz.hardware.levels import Dimension, LinkLevel
from shardviz.hardware.links import LINK_KEYS, LinkSpec, link_toml, read_link
from shardviz.hardware.quantities import count
from shardviz.strict_table import StrictTable

CPU = "cpu"
"""The chip of a machine of simulated devices, which share the memory of their host."""


@dataclass(frozen=True)
class SwitchedNodes(FileFamily):
    """`nodes` of `node` devices, each with `node_link` to the switch of its node.

    `network` is what one device has of the network between nodes.
    """

    node: int
    nodes: int
    node_link: LinkSpec
    network: LinkSpec | None = None

    table: ClassVar[str] = "node"
    on_chip_name: ClassVar[str] = "L2 cache"
    words: ClassVar[str] = "nodes"
    network_hop: ClassVar[float] = INFINIBAND_HOP
    keys: ClassVar[tuple[str, ...]] = ("devices", "count", *LINK_KEYS)

    @property
    def devices(self) -> int:
        return self.node * self.nodes

    @property
    def nccl(self) -> bool:
        """Collectives have the latency of NCCL."""
        return self.chip != CPU

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        return (
            Dimension("gpu", self.node, 1, "switch", self.node_link, self.link_name, self.nccl),
            Dimension("node", self.nodes, self.node, "network", self.network, "network", self.nccl),
        )

    @property
    def link_name(self) -> str:
        return "NVLink" if self.nccl else "host memory"

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        network = {} if self.network is None else {"network": self.network}
        return {"switch": self.node_link, **network}

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        return replace(self, node_link=links["switch"], network=links.get("network"))

    def size_words(self) -> str:
        where = f" in {plural(self.nodes, 'node')} of {self.node}" if self.nodes > 1 else ""
        return f"{plural(self.devices, 'device')}{where}, {self.chip}"

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        if before is None:
            table.typed("devices", int, "write how many devices a node has")
        node = count(table, "devices", 0 if before is None else before.node, MAX_DEVICES)
        nodes = count(table, "count", 1 if before is None else before.nodes, MAX_DEVICES)
        link = read_link(table, None if before is None else before.node_link, NVLINK_HOP)
        return cls(chip, node, nodes, link, None if before is None else before.network)

    def toml(self) -> list[str]:
        return [f"devices = {self.node}", f"count = {self.nodes}", *link_toml(self.node_link)]

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        # In the order of their ids.
        return self.parts_by_id(self.by_id, sizes) or tuple(range(self.devices))

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        inner, outer = self.dimensions
        if size <= self.node:
            return (inner.level(size),)
        return () if self.network is None else (outer.level(-(-size // self.node)), inner.level(self.node))
