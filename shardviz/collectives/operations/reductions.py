"""psum, pmean, pmax and pmin: every member ends with what all shards give together, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.operations.arithmetic import added, check_reduces, larger, smaller
from shardviz.collectives.operations.cutting import cut_evenly, indices
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import check_dtype, is_complex, is_integer
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]


@dataclass(frozen=True)
class _AllReduce(Operation):
    """What the four have in common."""

    leaves_copies: ClassVar[bool] = True
    axes: tuple[str, ...]

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        return Pattern("all_reduce", dims)

    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        del shape, group_size
        check_dtype(dtype)
        check_reduces(self.name, dtype)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        self.check(shape, dtype, group_size)
        place = indices(shape).reshape(1, -1)
        pieces = self.pattern((group_size,)).pieces(chunks)
        return cut_evenly(place, place, pieces, shape, self.result_dtype(dtype))

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        # A part for each member, whatever the algorithm: what they do stays comparable.
        return (-(-pieces // group_size) * group_size,)

    def result_dtype(self, dtype: str) -> str:
        """The dtype of the result, for shards of a dtype."""
        return dtype


@dataclass(frozen=True)
class PSum(_AllReduce):
    """`jax.lax.psum`: the sum. Booleans count as s32; integers wrap around."""

    name: ClassVar[str] = "psum"

    def result_dtype(self, dtype: str) -> str:
        return "s32" if dtype == "pred" else dtype

    def moved_dtype(self, dtype: str) -> str:
        return PSum.result_dtype(self, dtype)

    def prepared(self, shards: Values) -> Values:
        return shards.astype("int32") if shards.dtype == bool else shards

    def combined(self, mine: Values, received: Values) -> Values:
        return added(mine, received)


@dataclass(frozen=True)
class PMean(PSum):
    """`jax.lax.pmean`: `psum`, wrapped around as it may be, divided by the members' number.

    Of integers and booleans it is f32, of 64-bit integers f64 (JAX with 64-bit types enabled).
    """

    name: ClassVar[str] = "pmean"

    def result_dtype(self, dtype: str) -> str:
        if dtype in ("s64", "u64"):
            return "f64"
        return "f32" if is_integer(dtype) or dtype == "pred" else dtype

    def finished(self, result: Values, group_size: int) -> Values:
        import numpy as np

        if result.dtype.name.lstrip("u").startswith("int"):
            result = result.astype("float64" if result.dtype.itemsize == 8 else "float32")
        # The divisor has the sum's type, as in JAX: 8 members are 6 in f4e2m1fn, the most that it holds.
        with np.errstate(all="ignore"):
            mean: Values = result / np.asarray(group_size).astype(result.dtype)
        return mean


class _Extreme(_AllReduce):
    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        super().check(shape, dtype, group_size)
        if is_complex(dtype):
            raise QuestionError(
                f"{self.name} has no order of {dtype} numbers, and XLA refuses it",
                "use psum, or a real dtype",
            )


@dataclass(frozen=True)
class PMax(_Extreme):
    """`jax.lax.pmax`: the largest. A NaN makes it NaN, as StableHLO's maximum does."""

    name: ClassVar[str] = "pmax"

    def combined(self, mine: Values, received: Values) -> Values:
        return larger(mine, received)


@dataclass(frozen=True)
class PMin(_Extreme):
    """`jax.lax.pmin`: the smallest. A NaN makes it NaN, as StableHLO's minimum does."""

    name: ClassVar[str] = "pmin"

    def combined(self, mine: Values, received: Values) -> Values:
        return smaller(mine, received)
