"""A gather or a scatter taken apart: permutes around a ring, interleaved with partial matmuls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class CollectiveMatmul:
    """What stands for one all-gather before a matmul, or one reduce-scatter after it.

    `op` is HLO's name of the collective that was taken apart ("all-gather" or "reduce-scatter"). `permutes`
    and `matmuls` name instructions of the module in program order; `directions` is 1 where all permutes go
    the same way around the ring, 2 where they go both ways. `group_size` is the devices of the ring. `bytes`
    is the larger of the operand and the result of the collective that it replaces, on one device;
    `wire_bytes` what one device sends in all the permutes, loops included (None: a loop of unknown length).
    The zeros that sums begin with may be sent once for several reduce-scatters of one shape: such a permute
    is one of each of them.

    Wang et al., "Overlap communication with dependent computation via decomposition" (2023).
    """

    op: str
    axes: tuple[str, ...]
    directions: int
    group_size: int
    permutes: tuple[str, ...]
    matmuls: tuple[str, ...]
    bytes: int
    wire_bytes: int | None
    source: str = ""


def by_permute(matmuls: Iterable[CollectiveMatmul]) -> dict[str, CollectiveMatmul]:
    """The collective matmul that each permute belongs to, by its name; the first of several."""
    found: dict[str, CollectiveMatmul] = {}
    for matmul in matmuls:
        for name in matmul.permutes:
            found.setdefault(name, matmul)
    return found
