"""The slice of an array that every device holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.sharding.array import ShardedArray, Uneven, uneven_dims
from shardviz.sharding.digits import Nest, value
from shardviz.sharding.mesh import Mesh
from shardviz.sharding.partition_spec import PartitionSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray
with LazyImports("numpy"):
    import numpy as np

MAX_RANK = 8


class DeviceShard(NamedTuple):
    """The part of an array on one device: `slices` bound its elements as (start, stop) of each dimension.
    `shard` numbers the data: devices with equal numbers hold equal data."""

    id: int
    coords: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    shard: int


@dataclass(frozen=True)
class Layout:
    """An array on a mesh. Positions are row-major places in the mesh; `Mesh.device_id` names the device.

    Single positions are computed on demand; `shards` and `bounds` give all of them at once as NumPy arrays.
    An array whose spec names the devices of another order is laid out on the mesh in that order; of one on a
    single device the others hold slices without elements. Raises `QuestionError` when the spec does not fit
    the array or the mesh, or the rank is above 8."""

    array: ShardedArray
    mesh: Mesh

    def __post_init__(self) -> None:
        if self.array.rank > MAX_RANK:
            problem = f"{self.array.name} has {self.array.rank} dimensions"
            raise QuestionError(problem, f"layouts show up to {MAX_RANK}")
        spec = self.spec
        spec.check(self.mesh, self.array.rank, self.array.name)
        if len(spec.devices) > 1:
            object.__setattr__(self, "mesh", replace(self.mesh, device_order=spec.devices))
            object.__setattr__(self, "array", self.array.with_spec(replace(spec, devices=())))

    @property
    def spec(self) -> PartitionSpec:
        return self.array.decided_spec

    @cached_property
    def parts(self) -> tuple[int, ...]:
        return self.spec.parts(self.mesh)

    @cached_property
    def shard_shape(self) -> tuple[int, ...]:
        return self.array.shard_shape(self.mesh)

    @property
    def bytes_per_device(self) -> int:
        return self.array.bytes_per_device(self.mesh)

    @cached_property
    def replicas(self) -> int:
        return self.array.replicas(self.mesh)

    @property
    def num_shards(self) -> int:
        """The number of different pieces of data, partial sums counted apart."""
        return 1 if self.spec.only_device is not None else self.mesh.size // self.replicas

    def holds_data(self, position: int) -> bool:
        return self.spec.only_device in (None, self.mesh.device_id(position))

    @cached_property
    def uneven(self) -> tuple[Uneven, ...]:
        """The dimensions that do not divide, with what the compiler pads."""
        return uneven_dims(self.array.shape, self.spec, self.mesh)

    @cached_property
    def _nests(self) -> tuple[Nest, ...]:
        """The digits of a position that are its part of each dimension, then those of its partial sum."""
        return tuple(tuple(map(self.mesh.digit, axes)) for axes in (*self.spec.dims, self.spec.unreduced))

    def block(self, position: int) -> tuple[int, ...]:
        return tuple(value(nest, position) for nest in self._nests[:-1])

    def partial(self, position: int) -> int:
        """The partial sum that the device holds: 0 unless the array is unreduced."""
        return value(self._nests[-1], position)

    def slices(self, block: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """(start, stop) of a block in each dimension, cut at the array's edge."""
        return tuple(
            (min(index * step, size), min((index + 1) * step, size))
            for index, step, size in zip(block, self.shard_shape, self.array.shape, strict=True)
        )

    def __getitem__(self, position: int) -> DeviceShard:
        shard, slices = value(chain(*self._nests), position), self.slices(self.block(position))
        if not self.holds_data(position):
            shard, slices = 1, ((0, 0),) * self.array.rank
        return DeviceShard(self.mesh.device_id(position), self.mesh.coords(position), slices, shard)

    def __len__(self) -> int:
        return self.mesh.size

    def __iter__(self) -> Iterator[DeviceShard]:
        return (self[position] for position in range(len(self)))

    def shards(self) -> NDArray[np.int64]:
        """Shard numbers of all positions, shape (devices,)."""
        positions: Any = np.arange(self.mesh.size)
        shards = np.zeros(self.mesh.size, dtype=np.int64) + value(chain(*self._nests), positions)
        return shards if self.spec.only_device is None else (positions != self.only_position).astype(np.int64)

    def bounds(self) -> NDArray[np.int64]:
        """(start, stop) of all positions in all dimensions, shape (devices, rank, 2)."""
        positions: Any = np.arange(self.mesh.size)
        bounds = np.empty((self.mesh.size, self.array.rank, 2), dtype=np.int64)
        for dim, (step, size) in enumerate(zip(self.shard_shape, self.array.shape, strict=True)):
            part = value(self._nests[dim], positions)
            bounds[:, dim, 0] = np.minimum(part * step, size)
            bounds[:, dim, 1] = np.minimum((part + 1) * step, size)
        if self.spec.only_device is not None:
            bounds[positions != self.only_position] = 0
        return bounds

    @property
    def only_position(self) -> int:
        only, order = self.spec.only_device, self.mesh.device_order
        assert only is not None
        return only if order is None else order.index(only)
