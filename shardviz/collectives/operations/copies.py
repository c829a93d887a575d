"""Operations that only copy shards: all_gather, ppermute and pbroadcast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import (
    UNTILED,
    Blocks,
    Operation,
    Parameter,
    check_filled,
    dimension,
    shape_with,
    split,
    whole,
)
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype, check_zero
from shardviz.errors import QuestionError
from shardviz.notation.numbers import parse_permutation
from shardviz.sharding import Mesh


@dataclass(frozen=True)
class AllGather(Operation):
    """`jax.lax.all_gather`: tiled, dimension `axis` of the shards grows; untiled, a new one is put there."""

    name: ClassVar[str] = "all_gather"
    kind: ClassVar[str] = "all_gather"
    takes: ClassVar = (Parameter("gather_dimension", "axis", "the dimension that grows"), UNTILED)
    axes: tuple[str, ...]
    axis: int = 0
    tiled: bool = True

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        dim = self._dimension(shape)
        if self.tiled:
            check_filled(shape, dim)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        dim = self._dimension(shape)
        grown = (shape[dim] * group_size, *shape[dim + 1 :]) if self.tiled else (group_size, *shape[dim:])
        result = (*shape[:dim], *grown)
        return Blocks(whole(shape), split(result, dim, group_size), result)

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        return (group_size, *shape)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        # An untiled gather makes a dimension of its own.
        return shape_with(pieces, self.axis if self.tiled else self.axis - 1)

    def _dimension(self, shape: tuple[int, ...]) -> int:
        if self.tiled:
            return dimension(self.axis, len(shape), "a shard")
        return dimension(self.axis, len(shape) + 1, "the result")


@dataclass(frozen=True)
class PPermute(Operation):
    """`jax.lax.ppermute`: for each pair of `perm` the second member gets the shard of the first.

    A member to which nobody sends has zeros. Negative members count from the end, as in JAX.
    """

    name: ClassVar[str] = "ppermute"
    kind: ClassVar[str] = "permute"
    takes: ClassVar = (
        Parameter(
            "perm",
            "perm",
            "pairs of sender and receiver",
            str,
            "(0,1),(1,2)",
            "(N,N),…",
            parse_permutation,
            example_for=lambda members: "(0,1),(1,2)" if members > 2 else f"(0,{members - 1})",
        ),
    )
    axes: tuple[str, ...]
    perm: tuple[tuple[int, int], ...]

    def dims(self, mesh: Mesh) -> tuple[int, ...]:
        dims = super().dims(mesh)
        # JAX 0.12 refuses another order; before, it counted the members in the mesh's order all the same.
        ordered = [axis for axis in mesh.axis_names if axis in self.axes and mesh.axis_size(axis) > 1]
        if [axis for axis in self.axes if mesh.axis_size(axis) > 1] != ordered:
            problem = f"ppermute takes mesh axes in the mesh's order, not {', '.join(self.axes)}"
            hint = f"write {', '.join(axis for axis in mesh.axis_names if axis in self.axes)}"
            raise QuestionError(problem, hint)
        return dims

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        n = math.prod(dims)
        for number in (each for pair in self.perm for each in pair):
            _check_member(number, n, least=-n)
        perm = tuple((source % n, target % n) for source, target in self.perm)
        for does, members in (("sends", [s for s, _ in perm]), ("receives", [t for _, t in perm])):
            twice = next((member for index, member in enumerate(members) if member in members[:index]), None)
            if len(set(members)) < len(members):
                problem = f"device {twice} of the group {does} twice in the permutation"
                raise QuestionError(problem, "each device can send to one device and receive from one")
        return Pattern(self.kind, dims, perm=perm)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        if len(self.pattern((group_size,)).perm) < group_size:
            check_zero(dtype, "a device to which nobody sends")

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        return Blocks(whole(shape, group_size), whole(shape), shape)


@dataclass(frozen=True)
class PBroadcast(Operation):
    """`jax.lax.pbroadcast`: the shard of member `source`."""

    name: ClassVar[str] = "pbroadcast"
    kind: ClassVar[str] = "broadcast"
    takes: ClassVar = (Parameter("source", "source", "the device that sends"),)
    axes: tuple[str, ...]
    source: int = 0

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        pattern = Pattern(self.kind, dims, source=self.source)
        _check_member(self.source, pattern.group_size)
        return pattern

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        _check_member(self.source, group_size)


def _check_member(number: int, group_size: int, least: int = 0) -> None:
    """Raise `QuestionError` for a member's number below `least` or beyond the group."""
    if not least <= number < group_size:
        problem = f"there is no device {number} in a group of {group_size:,}"
        raise QuestionError(problem, f"the devices of a group count from 0 to {group_size - 1:,}")
