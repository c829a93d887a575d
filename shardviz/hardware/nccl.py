"""NCCL's model of its own rings: the latency of a collective on GPUs, and the share of the bandwidth left.

Figures: NCCL 2.30.7, ``src/graph/tuning.cc`` (`baseLat`, `hwLat`, and the factors of LL and LL128), by which
NCCL itself chooses a protocol.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Protocol:
    """One way in which NCCL sends: seconds for its start, for a hop over NVLink and one between nodes, and
    the share of the links' bandwidth that carries data."""

    name: str
    base: float
    node_hop: float
    network_hop: float
    share: float


PROTOCOLS = (
    Protocol("LL", 6.6e-6, 0.6e-6, 2.7e-6, 0.5),
    Protocol("LL128", 14e-6, 1.9e-6, 4e-6, 0.92),
    Protocol("Simple", 8.4e-6, 3.4e-6, 14e-6, 1.0),
)


def chosen_protocol(
    seconds: float, node_hops: int, network_hops: int, node_latency: float, network_latency: float
) -> tuple[Protocol, float]:
    """The protocol by which a ring takes the least time, and its latency in seconds.

    `seconds` is the time of the bytes over the whole bandwidth. A link's own latency counts where it is
    longer than NCCL's figure for a hop. Latency and bytes add up, as in NCCL's model.
    """

    def latency(protocol: Protocol) -> float:
        return (
            protocol.base
            + node_hops * max(protocol.node_hop, node_latency)
            + network_hops * max(protocol.network_hop, network_latency)
        )

    best = min(PROTOCOLS, key=lambda protocol: latency(protocol) + seconds / protocol.share)
    return best, latency(best)
