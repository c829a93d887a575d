"""Nodes of GPUs: the devices of a node share a switch, and a network joins the nodes.

An NVLink domain of 72 is one such node; a host of simulated devices one whose switch is its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from shardviz.errors import plural
from shardviz.hardware.chips import INFINIBAND_HOP, MAX_DEVICES, NVLINK_HOP, Gpu, nodes_name
from shardviz.hardware.family import FileFamily, Parts
from shardviz.hardware.links import LINK_KEYS, Dimension, LinkLevel, LinkSpec, link_toml, read_link
from shardviz.hardware.quantities import count
from shardviz.strict_table import StrictTable

CPU = "cpu"
"""The chip of a machine of simulated devices, which share the memory of their host."""


@dataclass(frozen=True)
class SwitchedNodes(FileFamily):
    """Equal nodes, each device with a link to the switch of its node, and its part of a network."""

    table: ClassVar[str] = "node"
    on_chip_name: ClassVar[str] = "L2 cache"
    process: ClassVar[Literal["tpu", "cuda"]] = "cuda"
    words: ClassVar[str] = "nodes"
    network_hop: ClassVar[float] = INFINIBAND_HOP
    keys: ClassVar[tuple[str, ...]] = ("devices", "count", *LINK_KEYS)

    @classmethod
    def of(cls, chip: str, node: int, nodes: int, node_link: LinkSpec, network: LinkSpec | None) -> Self:
        """`nodes` of `node` devices; but for simulated ones collectives have the latency of NCCL."""
        nccl = chip != CPU
        name = "NVLink" if nccl else "host memory"
        inner = Dimension("gpu", node, 1, "switch", node_link, name, nccl)
        return cls(chip, (inner, Dimension("node", nodes, node, "network", network, "network", nccl)))

    @classmethod
    def published(cls, gpu: Gpu, nodes: int, gpus: int) -> Self:
        """Nodes of `gpus` with the published figures of their links."""
        link, network = LinkSpec(NVLINK_HOP, gpu.link), LinkSpec(INFINIBAND_HOP, gpu.network)
        return cls.of(gpu.name, gpus, nodes, link, network)

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
        return f"{plural(self.devices, 'device')}{where}, {self.chip}"

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        if before is None:
            table.typed("devices", int, "write how many devices a node has")
        node, nodes = (0, 1) if before is None else (one.size for one in before.dimensions)
        links = {} if before is None else before.links
        node = count(table, "devices", node, MAX_DEVICES)
        nodes = count(table, "count", nodes, MAX_DEVICES)
        link = read_link(table, links.get("switch"), NVLINK_HOP)
        return cls.of(chip, node, nodes, link, links.get("network"))

    def toml(self) -> list[str]:
        node, nodes = (one.size for one in self.dimensions)
        return [f"devices = {node}", f"count = {nodes}", *link_toml(self.links["switch"])]

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        # In the order of their ids.
        return self.parts_by_id(self.by_id, sizes) or tuple(range(self.devices))

    def levels_of_any(self, size: int) -> tuple[LinkLevel, ...]:
        inner, outer = self.dimensions
        if size <= inner.size:
            return (inner.level(size),)
        return () if outer.link is None else (outer.level(-(-size // inner.size)), inner.level(inner.size))
