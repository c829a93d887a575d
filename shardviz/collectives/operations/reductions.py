"""Operations that reduce all shards to one, element by element, in the type of the addends: integers wrap
around, floats overflow silently. ml_dtypes gives NumPy's functions their meaning for bf16, f8, f4, s4 and
u4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardviz.collectives.operation import (
    UNTILED,
    Blocks,
    Operation,
    Parameter,
    check_divides,
    check_is_group,
    dimension,
    shape_with,
    split,
    whole,
)
from shardviz.collectives.values import Values, check_dtype, is_complex, is_integer
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports

with LazyImports("numpy"):
    import numpy as np


class _Reduction(Operation):
    function: ClassVar[str] = "add"
    """NumPy's function of two addends; `maximum` and `minimum` are NaN where one is."""

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        check_dtype(dtype)
        # jaxlib 0.10 and 0.12.
        if dtype in ("s2", "u2"):
            raise QuestionError(f"XLA does not support {self.name} of {dtype}", "use s4, u4 or a wider dtype")
        if self.function != "add" and is_complex(dtype):
            problem = f"{dtype} numbers have no order, so XLA refuses {self.name}"
            raise QuestionError(problem, "use psum, or a real dtype")

    def combined(self, mine: Values, received: Values) -> Values:
        with np.errstate(all="ignore"):
            result: Values = getattr(np, self.function)(mine, received)
        return result


@dataclass(frozen=True)
class _AllReduce(_Reduction):
    kind: ClassVar[str] = "all_reduce"
    leaves_copies: ClassVar[bool] = True
    axes: tuple[str, ...]

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        # A part for each member with every algorithm: what they do stays comparable.
        return (-(-pieces // group_size) * group_size,)


@dataclass(frozen=True)
class PSum(_AllReduce):
    """`jax.lax.psum`: the sum. Booleans count as s32; integers wrap around."""

    name: ClassVar[str] = "psum"

    def moved_dtype(self, dtype: str) -> str:
        return "s32" if dtype == "pred" else dtype


@dataclass(frozen=True)
class PMean(PSum):
    """`jax.lax.pmean`: `psum`, wrapped around as it may be, divided by the members' number. Of integers and
    booleans it is f32, of 64-bit integers f64 (JAX with 64-bit types enabled)."""

    name: ClassVar[str] = "pmean"

    def result_dtype(self, dtype: str) -> str:
        if dtype in ("s64", "u64"):
            return "f64"
        return "f32" if is_integer(dtype) or dtype == "pred" else dtype

    def finished(self, result: Values, group_size: int) -> Values:
        if result.dtype.name.lstrip("u").startswith("int"):
            result = result.astype("float64" if result.dtype.itemsize == 8 else "float32")
        # The divisor has the sum's type, as in JAX: 8 members are 6 in f4e2m1fn, the most that it holds.
        with np.errstate(all="ignore"):
            mean: Values = result / np.asarray(group_size).astype(result.dtype)
        return mean


@dataclass(frozen=True)
class PMax(_AllReduce):
    """`jax.lax.pmax`: the largest. A NaN makes it NaN, as StableHLO's maximum does."""

    name: ClassVar[str] = "pmax"
    function: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class PMin(_AllReduce):
    """`jax.lax.pmin`: the smallest. A NaN makes it NaN, as StableHLO's minimum does."""

    name: ClassVar[str] = "pmin"
    function: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class PSumScatter(_Reduction):
    """`jax.lax.psum_scatter`: the sum, `scatter_dimension` of which is cut into a part for each member.
    Untiled, a part is one slice, and the dimension is gone from the result."""

    name: ClassVar[str] = "psum_scatter"
    kind: ClassVar[str] = "reduce_scatter"
    takes: ClassVar = (
        Parameter("scatter_dimension", "scatter_dimension", "the dimension that is cut"),
        UNTILED,
    )
    axes: tuple[str, ...]
    scatter_dimension: int = 0
    tiled: bool = True

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        super().check(shape, dtype, group_size)
        if dtype == "pred":
            raise QuestionError("JAX's psum_scatter does not add booleans", "use s32, as psum does")
        (check_divides if self.tiled else check_is_group)(shape, self._dimension(shape), group_size)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        dim = self._dimension(shape)
        left = (shape[dim] // group_size,) if self.tiled else ()
        result = (*shape[:dim], *left, *shape[dim + 1 :])
        return Blocks(split(shape, dim, group_size), whole(result), result)

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        return shape_with(group_size * (pieces if self.tiled else 1), self.scatter_dimension)

    def _dimension(self, shape: tuple[int, ...]) -> int:
        return dimension(self.scatter_dimension, len(shape), "a shard")
