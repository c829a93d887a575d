"""What joins the devices of a group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.compiler import Target
    from shardviz.hardware import Topology, Wire
    from shardviz.hardware.chips import Gpu, TpuChip
    from shardviz.sharding import Mesh

ASSUMED = "v5e"
"""The chip whose links are taken where nobody has named one."""


@dataclass(frozen=True)
class Links:
    """What joins the members of a group: how, and by what.

    `chip` names the chip whose figures `wire` has, "" where they were given; `assumed` says that nobody has
    asked for that chip.
    """

    topology: Topology
    wire: Wire
    chip: str = ""
    assumed: bool = False

    @property
    def each(self) -> str:
        """``a v5p link``, ``an h100 link``; ``a link`` of given figures."""
        return f"{'an' if self.chip[:1] in ('a', 'h') else 'a'} {self.chip} link" if self.chip else "a link"


def links_of_chip(topology: Topology, chip: TpuChip | Gpu | None) -> Links:
    """Links with a chip's figures; None assumes one."""
    from shardviz.hardware import Wire
    from shardviz.hardware.chips import TPUS

    known = TPUS[ASSUMED] if chip is None else chip
    return Links(topology, Wire(bandwidth=known.link), known.name, chip is None)


def linked_chip(targets: Iterable[Target], mesh: Mesh) -> TpuChip | Gpu | None:
    """The chip whose links join all devices of a mesh: that of the first target which is hardware of its
    size; None where there is none, or several slices or nodes."""
    machines = [target.machines for target in targets if target.machines is not None]
    return next((each.linked for each in machines if each.devices == mesh.size), None)


def links_from_text(
    dims: tuple[int, ...],
    topology: str | None,
    latency: str | None,
    bandwidth: str | None,
    chip: TpuChip | Gpu | None = None,
) -> Links:
    """The links of a group whose axes have the sizes `dims`; None is as `chip` has it, or an assumed one.

    Raises `QuestionError`.
    """
    from shardviz.hardware import Wire, parse_bandwidth, parse_latency, topology_for

    usual = links_of_chip(topology_for(topology, dims), chip)
    if latency is None and bandwidth is None:
        return usual
    wire = Wire(
        usual.wire.latency if latency is None else parse_latency(latency),
        usual.wire.bandwidth if bandwidth is None else parse_bandwidth(bandwidth),
    )
    return Links(usual.topology, wire)
