"""What joins the devices of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.hardware import Topology, Wire


@dataclass(frozen=True)
class Links:
    """What joins the members of a group: how, and by what."""

    topology: Topology
    wire: Wire


def links_from_text(
    dims: tuple[int, ...], topology: str | None, latency: str | None, bandwidth: str | None
) -> Links:
    """The links of a group whose axes have the sizes `dims`; None is as a TPU has it.

    Raises `QuestionError`.
    """
    from shardviz.hardware import Wire, parse_bandwidth, parse_latency, topology_for

    usual = Wire()
    wire = Wire(
        usual.latency if latency is None else parse_latency(latency),
        usual.bandwidth if bandwidth is None else parse_bandwidth(bandwidth),
    )
    return Links(topology_for(topology, dims), wire)
