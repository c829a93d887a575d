"""An array with named dimensions, a shape, a dtype and, once decided, a sharding."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardviz.errors import QuestionError, plural, quote
from shardviz.sharding.dtype import BITS, array_bytes
from shardviz.sharding.mesh import Mesh
from shardviz.sharding.partition_spec import PartitionSpec

MAX_ELEMENTS = 2**62


@dataclass(frozen=True)
class ShardedArray:
    """A global array and how it is split; `spec` is None where the compiler may choose.

    `dims` are the names of the dimensions (einsum letters, or longer names), `shape` their global sizes
    in elements, `dtype` an HLO name as `canonical_dtype` gives it.

    Raises `QuestionError` for a spec of another rank, a negative size, or an unknown dtype.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec | None

    def __post_init__(self) -> None:
        if len(self.dims) != len(self.shape):
            raise QuestionError(
                f"{self.name} has {plural(len(self.dims), 'dimension')} but "
                f"{plural(len(self.shape), 'size')}",
                "give one size for each dimension",
            )
        for dim, size in zip(self.dims, self.shape, strict=True):
            if size < 0:
                raise QuestionError(f"dimension {dim} of {self.name} has size {size}", "sizes are 0 or more")
        if self.elements > MAX_ELEMENTS:
            raise QuestionError(f"{self.name} would have more than 2^62 elements", "use smaller sizes")
        if self.dtype not in BITS:
            raise QuestionError(f"unknown dtype {quote(self.dtype)}", "use for example bf16, f32, s8, s32")
        if self.spec is not None:
            self.spec.check_rank(self.rank, self.name)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def elements(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product

    @property
    def nbytes(self) -> int:
        """Bytes of one whole copy."""
        return array_bytes(self.shape, self.dtype)

    def with_spec(self, spec: PartitionSpec | None) -> ShardedArray:
        return replace(self, spec=spec)

    def shard_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """Shape of the piece on one device; a dimension that does not divide is padded up (see Layout)."""
        return shard_shape(self.shape, self.decided_spec, mesh)

    def bytes_per_device(self, mesh: Mesh) -> int:
        return array_bytes(self.shard_shape(mesh), self.dtype)

    def replicas(self, mesh: Mesh) -> int:
        """How many devices hold the same data."""
        spec = self.decided_spec
        return mesh.size // mesh.group_size((*spec.axes, *spec.unreduced))

    @property
    def decided_spec(self) -> PartitionSpec:
        """The spec; `QuestionError` when it is still the compiler's choice."""
        if self.spec is None:
            raise QuestionError(f"the sharding of {self.name} is not decided", f"give a spec for {self.name}")
        return self.spec


def shard_shape(shape: tuple[int, ...], spec: PartitionSpec, mesh: Mesh) -> tuple[int, ...]:
    """Shape of one device's piece of an array: each size divided by its parts, rounded up."""
    return tuple(-(-size // parts) for size, parts in zip(shape, spec.parts(mesh), strict=True))
