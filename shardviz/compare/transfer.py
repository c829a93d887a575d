"""What the planner's steps and a compiler's collectives have in common, so that they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from shardviz.compare.moved_arrays import MovedArrays
from shardviz.hlo import Collective
from shardviz.planner import Problem, Step
from shardviz.sharding import Mesh
from shardviz.sharding.dtype import BITS

HLO_OPS = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
"""JAX's name of a collective → HLO's."""


@dataclass(frozen=True)
class Transfer:
    """A collective of either side in the same terms; `elements` of the larger of operand and result.

    `arrays` are the names of the arrays it may move.
    """

    op: str
    axes: tuple[str, ...]
    elements: int
    bytes: int
    wire_bytes: int
    dtype: str
    arrays: tuple[str, ...]

    @property
    def base_axes(self) -> frozenset[str]:
        """The mesh axes, sub-axes counted as the axis that they are part of."""
        return frozenset(axis.partition(":")[0] for axis in self.axes)

    @property
    def over(self) -> str:
        """The axes for a sentence, as in ` over X, Y`; nothing where it follows none."""
        return f" over {', '.join(self.axes)}" if self.axes else ""

    def __str__(self) -> str:
        return f"{self.op}{self.over} ({self.bytes:,} bytes)"


def planned(step: Step) -> Transfer:
    """A collective of the plan."""
    return Transfer(
        HLO_OPS[step.op], step.axes, prod(step.shape), step.bytes, step.wire_bytes, step.dtype, (step.array,)
    )


def compiled(collectives: Sequence[Collective], problem: Problem) -> list[Transfer]:
    """The collectives of a target's answer to `problem` in program order, and its local slices.

    Others that move nothing are left out.
    """
    moved = MovedArrays(problem)
    transfers = []
    for one in collectives:
        arrays = moved.of(one)
        if one.wire_bytes or one.op == "slice":
            elements = one.bytes * 8 // max(1, BITS.get(one.dtype, 8))
            transfers.append(
                Transfer(one.op, one.axes, elements, one.bytes, one.wire_bytes, one.dtype, arrays)
            )
    return transfers


def devices_along(axis: str, mesh: Mesh) -> int:
    """Devices along an axis or a sub-axis such as ``Y:(2)2``."""
    _, _, part = axis.partition(")")
    return int(part) if part else mesh.axis_size(axis)
