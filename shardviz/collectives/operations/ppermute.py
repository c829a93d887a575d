"""ppermute: members send their shards along pairs of source and destination."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.cutting import cut_evenly, indices
from shardviz.collectives.operations.member import check_member
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype, check_zero
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class PPermute(Operation):
    """`jax.lax.ppermute`: for each pair of `perm` the second member gets the shard of the first.

    A member to which nobody sends has zeros. Negative members count from the end, as in JAX.
    """

    name: ClassVar[str] = "ppermute"
    axes: tuple[str, ...]
    perm: tuple[tuple[int, int], ...]

    def dims(self, mesh: Mesh) -> tuple[int, ...]:
        dims = super().dims(mesh)
        # JAX 0.12 refuses another order; before, it counted the members in the mesh's order all the same.
        ordered = [axis for axis in mesh.axis_names if axis in self.axes and mesh.axis_size(axis) > 1]
        if [axis for axis in self.axes if mesh.axis_size(axis) > 1] != ordered:
            raise QuestionError(
                f"ppermute takes mesh axes in the mesh's order, not {', '.join(self.axes)}",
                f"write {', '.join(axis for axis in mesh.axis_names if axis in self.axes)}",
            )
        return dims

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        n = prod(dims)
        for number in (each for pair in self.perm for each in pair):
            check_member(number, n, least=-n)
        perm = tuple((source % n, target % n) for source, target in self.perm)
        for does, members in (("sends", [s for s, _ in perm]), ("receives", [t for _, t in perm])):
            twice = next((each for place, each in enumerate(members) if each in members[:place]), None)
            if len(set(members)) < len(members):
                raise QuestionError(
                    f"device {twice} of the group {does} twice in the permutation",
                    "each device can send to one device and receive from one",
                )
        return Pattern("permute", dims, perm=perm)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        del shape
        check_dtype(dtype)
        if len(self.pattern((group_size,)).perm) < group_size:
            check_zero(dtype, "a device to which nobody sends")

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        import numpy as np

        self.check(shape, dtype, group_size)
        place = np.tile(indices(shape).reshape(1, -1), (group_size, 1))
        return cut_evenly(place, place, self.pattern((group_size,)).pieces(chunks), shape, dtype)
