"""An array with named dimensions, a shape, a dtype by its name in HLO and, once decided, a sharding."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardviz.errors import QuestionError, plural, quote
from shardviz.sharding.mesh import Mesh
from shardviz.sharding.partition_spec import PartitionSpec

MAX_ELEMENTS = 2**62

_F8 = "f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu"
_WHOLE = (2, 4, 8, 16, 32, 64)
BITS: dict[str, int] = {"pred": 8} | {f"{sign}{bits}": bits for sign in "su" for bits in _WHOLE}
BITS |= {"f4e2m1fn": 4} | dict.fromkeys(_F8.split(), 8)
BITS |= {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128, "token": 0, "opaque": 0}
"""Bits of one element in memory; `pred` takes a byte."""

WIDE = frozenset(("s64", "u64", "f64", "c128"))
"""Types that JAX has only with 64-bit types enabled."""

_FAMILIES = {"bf": "bfloat", "s": "int", "u": "uint", "f": "float", "c": "complex"}
_DTYPE = re.compile(r"(bf|[sufc])(\d+)(\w*)")
_ALIASES: dict[str, str] = {"bool": "pred", "bfloat16": "bf16", "float16": "f16", "half": "f16"}
_ALIASES |= {"float32": "f32", "float": "f32", "float64": "f64", "double": "f64"}
_ALIASES |= {"complex64": "c64", "complex128": "c128"}
for _name, _own in (("int", "s"), ("i", "s"), ("uint", "u")):
    _ALIASES |= {f"{_name}{bits}": f"{_own}{bits}" for bits in _WHOLE}
_ALIASES["i1"] = "pred"


@dataclass(frozen=True)
class ShardedArray:
    """A global array and how it is split; `spec` is None where the compiler may choose.

    `dims` are the names of the dimensions (einsum letters, or longer names), `shape` their global sizes in
    elements, `dtype` an HLO name as `canonical_dtype` gives it. Raises `QuestionError` for sizes or a spec
    of another rank, a negative size, and an unknown dtype."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec | None

    def __post_init__(self) -> None:
        if len(self.dims) != len(self.shape):
            dims, sizes = plural(len(self.dims), "dimension"), plural(len(self.shape), "size")
            raise QuestionError(f"{self.name} has {dims} but {sizes}", "give one size for each dimension")
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
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return array_bytes(self.shape, self.dtype)

    def with_spec(self, spec: PartitionSpec | None) -> ShardedArray:
        return replace(self, spec=spec)

    def shard_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """Shape of the piece on one device; a dimension that does not divide is padded up (see Layout)."""
        return shard_shape(self.shape, self.decided_spec, mesh)

    def bytes_per_device(self, mesh: Mesh) -> int:
        return array_bytes(self.shard_shape(mesh), self.dtype)

    def replicas(self, mesh: Mesh) -> int:
        spec = self.decided_spec
        if spec.only_device is not None:
            return 1
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


class Uneven(NamedTuple):
    """A dimension that its parts do not divide: JAX arrays refuse it; inside `jit` the compiler gives every
    device `shard_size` elements and pads the last `padding` of them, so that trailing devices hold fewer or
    none."""

    dim: int
    size: int
    parts: int
    shard_size: int
    padding: int

    @property
    def padded(self) -> int:
        return self.size + self.padding


def uneven_dims(shape: tuple[int, ...], spec: PartitionSpec, mesh: Mesh) -> tuple[Uneven, ...]:
    dims = zip(shape, spec.parts(mesh), shard_shape(shape, spec, mesh), strict=True)
    return tuple(
        Uneven(dim, size, parts, shard, shard * parts - size)
        for dim, (size, parts, shard) in enumerate(dims)
        if size % parts
    )


def canonical_dtype(name: str) -> str:
    """The HLO name of a dtype as HLO, JAX, NumPy or MLIR name it. Raises `QuestionError`."""
    text = name.strip().lower()
    dtype = _ALIASES.get(text, text)
    if dtype not in BITS:
        dtype = text.replace("float", "f").replace("_", "")
    if dtype not in BITS:
        problem = f"unknown dtype {quote(name)}"
        raise QuestionError(problem, "use for example bf16, f32, f16, f8e4m3fn, s8, s32")
    return dtype


def promoted_dtype(dtypes: Iterable[str]) -> str:
    """The dtype in which arrays of these meet, as of `jax.numpy.promote_types`; where JAX has none, as for
    floats of 8 bits beside others, the wider one, to which these are to be converted."""
    every = sorted({*dtypes} - {"pred"}, key=BITS.__getitem__) or ["pred"]
    for family in ("c", "f"):
        own = [dtype for dtype in every if dtype.removeprefix("b").startswith(family)]
        widest = [dtype for dtype in own if BITS[dtype] == BITS[own[-1]]]
        if own:
            # Neither of two forms of one width holds the other's numbers.
            return own[-1] if len(widest) == 1 else "bf16" if BITS[own[-1]] < 16 else "f32"
    bits = BITS[every[-1]]
    if f"u{bits}" in every and any(dtype.startswith("s") for dtype in every):
        return f"s{min(max(32, bits), 2 * bits)}"
    return every[-1]


def jax_name(dtype: str) -> str:
    """The name of a dtype in JAX and ml_dtypes: ``bfloat16``, ``float8_e4m3fn``; "" for one of no numbers."""
    match = _DTYPE.fullmatch(dtype)
    if match is None:
        return "bool_" if dtype == "pred" else ""
    family, bits, form = match.groups()
    return f"{_FAMILIES[family]}{bits}{'_' if form else ''}{form}"


def other_names(dtype: str) -> list[str]:
    return [name for name, known in _ALIASES.items() if known == dtype]


def array_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of an array of that shape; types under a byte are packed, and a part of a byte counts whole."""
    return -(-math.prod(shape) * BITS[dtype] // 8)
