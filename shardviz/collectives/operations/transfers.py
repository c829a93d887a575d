"""Operations that move shards or parts of them and add nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import (
    UNTILED,
    Blocks,
    Operation,
    Parameter,
    UnfitShard,
    check_divides,
    check_filled,
    check_is_group,
    dimension,
    pieces_of,
    shape_with,
    split,
    whole,
)
from shardviz.collectives.schedule import LowerBound, Pattern
from shardviz.collectives.values import Ints, check_dtype, check_zero
from shardviz.errors import QuestionError, plural
from shardviz.lazy_names import LazyImports
from shardviz.notation.numbers import parse_permutation, parse_send_sizes
from shardviz.sharding import Mesh, array_bytes

with LazyImports("numpy"):
    import numpy as np


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
    """`jax.lax.ppermute`: for each pair of `perm` the second member gets the shard of the first. A member to
    which nobody sends has zeros."""

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
        return Pattern(self.kind, dims, perm=self.perm)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        if len(self.perm) < group_size:
            check_zero(dtype, "a device to which nobody sends")

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        return Blocks(whole(shape, group_size), whole(shape), shape)


@dataclass(frozen=True)
class PBroadcast(Operation):
    name: ClassVar[str] = "pbroadcast"
    kind: ClassVar[str] = "broadcast"
    takes: ClassVar = (Parameter("source", "source", "the device that sends"),)
    axes: tuple[str, ...]
    source: int = 0

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        group_size = math.prod(dims)
        if not 0 <= self.source < group_size:
            problem = f"there is no device {self.source} in a group of {group_size:,}"
            raise QuestionError(problem, f"the devices of a group count from 0 to {group_size - 1:,}")
        return Pattern(self.kind, dims, source=self.source)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        self.pattern((group_size,))


@dataclass(frozen=True)
class AllToAll(Operation):
    """`jax.lax.all_to_all`: dimension `split_axis` is cut into a block for each member; what arrives is laid
    along `concat_axis`, in the order of the senders. Untiled, a block is one slice: its dimension is gone,
    and a new one is put at `concat_axis`."""

    name: ClassVar[str] = "all_to_all"
    kind: ClassVar[str] = "all_to_all"
    takes: ClassVar = (
        Parameter("split_axis", "split_axis", "the dimension that is cut"),
        Parameter("concat_axis", "concat_axis", "the dimension that grows"),
        UNTILED,
    )
    axes: tuple[str, ...]
    split_axis: int = 0
    concat_axis: int = 0
    tiled: bool = True

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        (check_divides if self.tiled else check_is_group)(shape, self._dimensions(shape)[0], group_size)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        old, new = self._dimensions(shape)
        sizes = list(shape)
        if self.tiled:
            sizes[old] //= group_size
            sizes[new] *= group_size
        else:
            del sizes[old]
            sizes.insert(new, group_size)
        result = tuple(sizes)
        # Chunk s * n + d: block d of the sender, block s of the receiver.
        start = np.tile(split(shape, old, group_size), (group_size, 1))
        return Blocks(start, np.repeat(split(result, new, group_size), group_size, axis=0), result)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return shape_with(group_size * (pieces if self.tiled else 1), self.split_axis, self.concat_axis)

    def _dimensions(self, shape: tuple[int, ...]) -> tuple[int, int]:
        split = dimension(self.split_axis, len(shape), "a shard")
        return split, dimension(self.concat_axis, len(shape), "the result")


def _example_sizes(members: int) -> str:
    """``1,2,0;0,1,2;0,0,3``: each keeps a row and sends the next one two, the last keeps all three."""
    rows = [[0] * member + [1, 2] + [0] * (members - member - 2) for member in range(members - 1)]
    rows.append([0] * (members - 1) + [3])
    return ";".join(",".join(map(str, row)) for row in rows)


@dataclass(frozen=True)
class RaggedAllToAll(Operation):
    """`jax.lax.ragged_all_to_all`: member i sends `send_sizes[i][j]` rows (dimension 0) to member j.

    What a member sends lies in its shard one behind the other from row 0, in the order of the receivers.
    What arrives is laid in the order of the senders. The result has as many rows as the member that
    receives most; the rest is 0."""

    name: ClassVar[str] = "ragged_all_to_all"
    kind: ClassVar[str] = "all_to_all"
    takes: ClassVar = (
        Parameter(
            "send_sizes",
            "send_sizes",
            "rows from each device to each",
            str,
            "1,2;0,3",
            "N,N;…",
            parse_send_sizes,
            example_for=_example_sizes,
        ),
    )
    even: ClassVar[bool] = False
    axes: tuple[str, ...]
    send_sizes: tuple[tuple[int, ...], ...]

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        if not shape:
            raise QuestionError("a scalar has no rows to send", "use shards of one dimension or more")
        for sender, row in enumerate(self.send_sizes):
            if sum(row) > shape[0]:
                most = max(map(sum, self.send_sizes))
                rows, there = plural(sum(row), "row"), plural(shape[0], "element")
                problem = f"device {sender} of the group sends {rows}, but dimension 0 of a shard has {there}"
                hint = f"send {plural(shape[0], 'row')} at most, or use shards of {most:,}"
                raise UnfitShard(problem, hint, 0, (most,))
        if len({sum(column) for column in zip(*self.send_sizes, strict=True)}) > 1:
            check_zero(dtype, "a device that receives fewer rows than another")

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        sizes = np.array(self.send_sizes, dtype=np.int64)
        result = (int(sizes.sum(axis=0).max()), *shape[1:])
        width = np.prod(shape[1:], dtype=np.int64)
        elements = np.arange(sizes.max() * width)
        first, last = (np.cumsum(sizes, axis=axis) - sizes for axis in (1, 0))
        start, end = ((rows * width).reshape(-1, 1) + elements for rows in (first, last))
        return Blocks(start, end, result, sizes.reshape(-1) * width)

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        return (max(map(sum, (*self.send_sizes, *zip(*self.send_sizes, strict=True)))), *shape[1:])

    def least(self, shape: tuple[int, ...], dtype: str, group_size: int) -> LowerBound:
        """The bytes that the busiest member sends; in r rounds no member can reach 2 ** r others."""
        table = np.array(self.send_sizes, dtype=np.int64)
        np.fill_diagonal(table, 0)
        partners = int(max((table > 0).sum(axis=axis).max() for axis in (0, 1)))
        rows = int(table.sum(axis=1).max())
        return LowerBound(partners.bit_length(), array_bytes((rows, *shape[1:]), dtype))

    def chunk_sizes(self, shape: tuple[int, ...], group_size: int, chunks: int) -> int | Ints:
        blocks = np.array(self.send_sizes, dtype=np.int64).reshape(-1) * math.prod(shape[1:])
        return pieces_of(blocks, len(blocks), self.pattern((group_size,)).pieces(chunks))

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return (max(map(sum, self.send_sizes)) * pieces,)
