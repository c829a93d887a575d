"""The answer of the planner: steps that turn sharded operands into the sharded result."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Problem
from shardviz.sharding import PartitionSpec

LOCAL_OPS = ("einsum", "slice")


@dataclass(frozen=True)
class Step:
    """One operation that every device performs at the same time.

    `op` is JAX's name: all_gather, psum, psum_scatter, all_to_all, ppermute, or the local einsum and
    slice. `array` is what it changes or makes. `axes` are the mesh axes of the collective's groups,
    major first. `dim` is the dimension that is gathered, scattered or sliced; for all_to_all the one that
    becomes whole; None otherwise. `shape` is per device, of the larger of operand and result, and
    `bytes` its bytes; for an einsum, its result's. `wire_bytes`: what one device must send at least.
    """

    op: str
    array: str
    axes: tuple[str, ...]
    dim: int | None
    from_spec: PartitionSpec
    to_spec: PartitionSpec
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    wire_bytes: int
    reason: str
    operands: tuple[str, ...] = ()
    einsum: Einsum | None = None


@dataclass(frozen=True)
class Plan:
    """Steps in order. `cases` names, for each part of the chain, which case of the textbook it is."""

    problem: Problem
    steps: tuple[Step, ...]
    result_spec: PartitionSpec
    cases: tuple[str, ...]

    @property
    def collectives(self) -> tuple[Step, ...]:
        """The steps that move bytes between devices."""
        return tuple(step for step in self.steps if step.op not in LOCAL_OPS)

    @property
    def wire_bytes(self) -> int:
        return sum(step.wire_bytes for step in self.steps)
