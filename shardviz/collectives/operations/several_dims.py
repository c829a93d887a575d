"""Collectives that change several dimensions at once: JAX's parameters name one. A device deals its shard
into a piece for each member, along a dimension in front, sends these, and collects what arrives in a grid
again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardviz.collectives.operation import Blocks, check_divides, whole
from shardviz.collectives.operations import AllToAll, PSumScatter
from shardviz.collectives.values import Ints, check_dtype
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
        for index in own:
            where[index] = len(grid)
            grid.append(sizes[index])
        rest.append(len(grid))
        grid.append(size // math.prod(sizes[index] for index in own))
    pieces = tuple(grid[dim] for dim in rest)
    order = (*(where[index] for index in range(len(sizes))), *rest)
    return Rearrangement(tuple(grid), order, (math.prod(sizes), *pieces))


def collected(pieces: Sequence[int], places: Places, sizes: Sequence[int]) -> Rearrangement:
    """The pieces of all members, of the shape `pieces` each, side by side in their dimensions."""
    order: list[int] = []
    shape = []
    for dim, (size, own) in enumerate(zip(pieces, places, strict=True)):
        order += [*own, len(sizes) + dim]
        shape.append(size * math.prod(sizes[index] for index in own))
    return Rearrangement((*sizes, *pieces), tuple(order), tuple(shape))


class _OfSeveral:
    """A collective of the pieces into which the group's axes, of these `sizes`, split dimensions of a shard:
    `split` says which axes cut each."""

    sizes: tuple[int, ...]
    split: Places

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in ("sizes", "split", "joined")}

    def deal(self, shape: tuple[int, ...]) -> Rearrangement:
        """The piece that a device has for each member, of a shard of a shape."""
        return dealt(shape, self.split, self.sizes)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        *shape, last = (math.prod(self.sizes[index] for index in own) for own in self.split)
        return (*shape, last * pieces)

    def check_pieces(self, shape: tuple[int, ...]) -> None:
        for dim, own in enumerate(self.split):
            check_divides(shape, dim, math.prod(self.sizes[index] for index in own))


@dataclass(frozen=True)
class AllToAllOfSeveral(_OfSeveral, AllToAll):
    """`jax.lax.all_to_all` of such pieces; `joined` says along which axes what arrives is laid."""

    sizes: tuple[int, ...] = ()
    split: Places = ()
    joined: Places = ()

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        self.check_pieces(shape)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        result = self.collect(shape).shape
        start = np.tile(_pieces(shape, self.split, self.sizes), (group_size, 1))
        return Blocks(start, np.repeat(_pieces(result, self.joined, self.sizes), group_size, axis=0), result)

    def collect(self, shape: tuple[int, ...]) -> Rearrangement:
        """The result of what arrives, for shards of a shape."""
        return collected(self.deal(shape).shape[1:], self.joined, self.sizes)


@dataclass(frozen=True)
class PSumScatterOfSeveral(_OfSeveral, PSumScatter):
    sizes: tuple[int, ...] = ()
    split: Places = ()

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        self.check_pieces(shape)
        super().check((group_size,), dtype, group_size)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        result = self.deal(shape).shape[1:]
        return Blocks(_pieces(shape, self.split, self.sizes), whole(result), result)


OfSeveral = AllToAllOfSeveral | PSumScatterOfSeveral


def _pieces(shape: Sequence[int], places: Places, sizes: Sequence[int]) -> Ints:
    """The flat index of every element, in a row for each member's piece."""
    rearrangement = dealt(shape, places, sizes)
    rows: Ints = np.arange(math.prod(shape)).reshape(rearrangement.grid).transpose(rearrangement.order)
    return rows.reshape(rearrangement.shape[0], -1)
