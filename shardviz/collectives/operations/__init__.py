"""The operations: what each collective of `jax.lax` means, and one of them by its name.

Those that move shards or parts of them add nothing. Reductions make one of all shards, element by element, in
the type of the addends: integers wrap around, floats overflow silently. ml_dtypes gives NumPy's functions
their meaning for bf16, f8, f4, s4 and u4."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

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
from shardviz.collectives.values import Ints, Values, check_dtype, check_zero, is_complex, is_integer
from shardviz.errors import QuestionError, most_like, plural, quote
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


_ALL = (AllGather, PSum, PMean, PMax, PMin, PSumScatter, AllToAll, PPermute, PBroadcast, RaggedAllToAll)
OPERATIONS: dict[str, type[Operation]] = {operation.name: operation for operation in _ALL}

_LAST_FIRST = [parameter for kind in reversed(OPERATIONS.values()) for parameter in reversed(kind.takes)]
PARAMETERS: dict[str, Parameter] = {
    parameter.name: parameter for parameter in reversed(dict.fromkeys(_LAST_FIRST))
}
"""Every parameter of an operation by name, in the order of the last operation that takes it."""

OTHER_NAMES = {
    "all_gather": "allgather gather",
    "psum": "allreduce sum",
    "pmean": "mean",
    "pmax": "max",
    "pmin": "min",
    "psum_scatter": "reducescatter",
    "all_to_all": "alltoall",
    "ppermute": "collectivepermute permute sendrecv",
    "pbroadcast": "broadcast collectivebroadcast",
    "ragged_all_to_all": "raggedalltoall",
}
"""The names of JAX's operations in HLO, NCCL and MPI, without dashes and underscores."""


MAX_EXAMPLE = 200


def check_operation(name: str, given: Mapping[str, Any]) -> None:
    """Raise `QuestionError` for an operation that JAX does not have, and for parameters that are not its
    own."""
    if name not in OPERATIONS:
        plain = name.lower().replace("-", "").replace("_", "")
        named = (own for own, others in OTHER_NAMES.items() if plain in others.split())
        close = next(named, "") or most_like(name, OPERATIONS)
        everything = f"the operations are {', '.join(OPERATIONS)}"
        problem = f"unknown operation {quote(name)}"
        raise QuestionError(problem, f"did you mean {close}?" if close else everything)
    takes = OPERATIONS[name].takes
    for option, value in given.items():
        parameter = PARAMETERS[option]
        if value is not None and value is not False and parameter not in takes:
            flags = " and ".join(parameter.flag for parameter in takes) or "no parameter"
            raise QuestionError(f"{parameter.flag} is not a parameter of {name}", f"{name} takes {flags}")


def check_needed(name: str, given: Mapping[str, Any], group_size: int) -> None:
    """Raise `QuestionError` where a parameter is missing without which the operation means nothing."""
    for parameter in OPERATIONS[name].takes:
        if parameter.example_for is not None and given[parameter.name] is None:
            example = parameter.example_for(group_size)
            size = group_size if len(example) <= MAX_EXAMPLE else 2
            few = "" if size == group_size else f" for a group of {size}"
            hint = f"write for example {parameter.flag} '{parameter.example_for(size)}'{few}"
            raise QuestionError(f"{name} needs {parameter.flag}", hint)


def operation_for(name: str, axes: tuple[str, ...], given: Mapping[str, Any], group_size: int) -> Operation:
    """The operation with JAX's parameters. Raises as `check_needed`."""
    kind: Callable[..., Operation] = OPERATIONS[name]
    check_needed(name, given, group_size)
    fields = {
        parameter.field: parameter.read(given[parameter.name], group_size)
        for parameter in OPERATIONS[name].takes
        if given[parameter.name] is not None
    }
    return kind(axes=axes, **fields)
