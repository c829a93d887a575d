"""Collectives that change several dimensions at once: all_to_all and psum_scatter of a grid of pieces.

JAX's parameters name one dimension. A device deals its shard into a piece for each member, along a dimension
in front, sends the pieces by JAX's collective over that dimension, and collects what arrives in a grid again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardviz.collectives.operation import Blocks, check_divides, whole
from shardviz.collectives.operations.exchanges import AllToAll
from shardviz.collectives.operations.reductions import PSumScatter
from shardviz.collectives.values import Ints, check_dtype
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports

with LazyImports("numpy"):
    import numpy as np

Places = tuple[tuple[int, ...], ...]
"""For each dimension the places, in the order of a group's axes, of those that split it, the major first."""


@dataclass(frozen=True)
class Rearrangement:
    """An array as a grid of that shape, its dimensions in another order, joined to `shape`."""

    grid: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]


def dealt(shape: Sequence[int], places: Places, sizes: Sequence[int]) -> Rearrangement:
    """A shard as a piece for each member of a group whose axes have these sizes, along a dimension in
    front."""
    grid: list[int] = []
    where: dict[int, int] = {}
    rest = []
    for size, own in zip(shape, places, strict=True):
        for place in own:
            where[place] = len(grid)
            grid.append(sizes[place])
        rest.append(len(grid))
        grid.append(size // math.prod(sizes[place] for place in own))
    pieces = tuple(grid[dim] for dim in rest)
    order = (*(where[place] for place in range(len(sizes))), *rest)
    return Rearrangement(tuple(grid), order, (math.prod(sizes), *pieces))


def collected(pieces: Sequence[int], places: Places, sizes: Sequence[int]) -> Rearrangement:
    """The pieces of all members, of the shape `pieces` each, side by side in their dimensions."""
    order: list[int] = []
    shape = []
    for dim, (size, own) in enumerate(zip(pieces, places, strict=True)):
        order += [*own, len(sizes) + dim]
        shape.append(size * math.prod(sizes[place] for place in own))
    return Rearrangement((*sizes, *pieces), tuple(order), tuple(shape))


@dataclass(frozen=True)
class AllToAllOfSeveral(AllToAll):
    """`jax.lax.all_to_all` of the pieces into which the group's axes, of these `sizes`, split dimensions.

    `split` says which axes cut each dimension of a shard, `joined` along which what arrives is laid.
    """

    sizes: tuple[int, ...] = ()
    split: Places = ()
    joined: Places = ()

    @property
    def parameters(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "split": self.split, "joined": self.joined}

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        _check(shape, self.split, self.sizes)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        result = self.collect(shape).shape
        start = np.tile(_pieces(shape, self.split, self.sizes), (group_size, 1))
        return Blocks(start, np.repeat(_pieces(result, self.joined, self.sizes), group_size, axis=0), result)

    def deal(self, shape: tuple[int, ...]) -> Rearrangement:
        """The pieces that a device sends, of a shard of a shape."""
        return dealt(shape, self.split, self.sizes)

    def collect(self, shape: tuple[int, ...]) -> Rearrangement:
        """The result of what arrives, for shards of a shape."""
        return collected(self.deal(shape).shape[1:], self.joined, self.sizes)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return _smallest(self.split, self.sizes, pieces)


@dataclass(frozen=True)
class PSumScatterOfSeveral(PSumScatter):
    """`jax.lax.psum_scatter` of the pieces into which the group's axes, of these `sizes`, split dimensions:
    `split` says which axes cut each."""

    sizes: tuple[int, ...] = ()
    split: Places = ()

    @property
    def parameters(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "split": self.split}

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        _check(shape, self.split, self.sizes)
        super().check((group_size,), dtype, group_size)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        result = self.deal(shape).shape[1:]
        return Blocks(_pieces(shape, self.split, self.sizes), whole(result), result)

    def deal(self, shape: tuple[int, ...]) -> Rearrangement:
        """The addends that a device has of each member's result, of a shard of a shape."""
        return dealt(shape, self.split, self.sizes)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return _smallest(self.split, self.sizes, pieces)


OfSeveral = AllToAllOfSeveral | PSumScatterOfSeveral


def _pieces(shape: Sequence[int], places: Places, sizes: Sequence[int]) -> Ints:
    """The flat index of every element, in a row for each member's piece."""
    found = dealt(shape, places, sizes)
    rows: Ints = np.arange(math.prod(shape)).reshape(found.grid).transpose(found.order)
    return rows.reshape(found.shape[0], -1)


def _check(shape: tuple[int, ...], places: Places, sizes: Sequence[int]) -> None:
    """Raise `QuestionError` for a shard that cannot be dealt into equal pieces."""
    if len(shape) != len(places):
        problem = f"the shard has {len(shape)} dimensions, and {len(places)} are split"
        raise QuestionError(problem, "take the array of the plan")
    for dim, own in enumerate(places):
        check_divides(shape, dim, math.prod(sizes[place] for place in own))


def _smallest(places: Places, sizes: Sequence[int], pieces: int) -> tuple[int, ...]:
    """The smallest shard that can be dealt, with so many elements in a piece."""
    shape = [math.prod(sizes[place] for place in own) for own in places]
    shape[-1] *= pieces
    return tuple(shape)
