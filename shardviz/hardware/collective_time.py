"""The time of a collective on links, in closed form, and the convention that it is counted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.hardware.machine import LinkLevel


@dataclass(frozen=True)
class CollectiveTime:
    """Seconds of one collective.

    `seconds` is the longer of `latency_seconds` and `bandwidth_seconds`. `convention` is a clause on how they
    are counted ("a ring of 4 along x, both directions, (N−1)/N of 64 MiB over 2 × 45 GB/s").
    `textbook_seconds` is the bound V/W of "How to Scale Your Model", without (N−1)/N. `bound` is "latency" or
    the name of the level that takes longest ("x", "NVLink", "DCN").
    """

    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    textbook_seconds: float
    bound: str
    convention: str


def collective_time(op: str, size: int, levels: Sequence[LinkLevel]) -> CollectiveTime:
    """The time of one collective over a group.

    `op` is HLO's name; `size` are the bytes of the larger of a device's operand and result (the whole
    gathered or unreduced array of one group; what a device sends of a permute), `levels` the group's
    dimensions.
    """
    raise NotImplementedError
