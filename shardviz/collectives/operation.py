"""The meaning of a collective for arrays: its parameters, its pattern, and how shards are cut into chunks.
Names, parameters and results are those of `jax.lax` inside `jax.shard_map`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from shardviz.collectives.schedule import LowerBound, Pattern, lower_bound
from shardviz.collectives.values import Ints, Values
from shardviz.errors import QuestionError, plural
from shardviz.lazy_names import LazyImports
from shardviz.sharding import Mesh, array_bytes
from shardviz.sharding.layout import MAX_RANK

with LazyImports("numpy"):
    import numpy as np


@dataclass(frozen=True)
class Parameter:
    """A parameter of operations as people give it: an option of `shardviz step`, a line of a form.

    `name` is the option's and `field` JAX's. It is given as a `kind`: a bool by being there. `read` makes
    JAX's value from the given one and the size of the group; it raises `QuestionError`. One with
    `example_for`, the example for a group of so many, has to be given."""

    name: str
    field: str
    help: str
    kind: type[int | bool | str] = int
    example: str = "0"
    metavar: str = "N"
    read: Callable[[Any, int], Any] = lambda value, _group_size: value
    example_for: Callable[[int], str] | None = None

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


UNTILED = Parameter(
    "untiled",
    "tiled",
    "JAX's tiled=False: devices get a dimension of their own",
    bool,
    "yes: devices get a dimension of their own",
    read=lambda given, _group_size: not given,
)


@dataclass(frozen=True)
class Cuts:
    """The place of every chunk at the start and at the end, for shards of one shape.

    `start` and `end` have the shape (chunks, elements of the largest chunk): flat indices into the shard on
    which a chunk starts, and into the result on which it ends; -1 where a smaller chunk has no element.
    `sizes` are the chunks' elements, `shape` and `dtype` those of a member's result, whose other elements are
    0."""

    start: Ints
    end: Ints
    sizes: Ints
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Blocks:
    """The blocks that an operation moves: `start` and `end` have the shape (blocks, elements of the largest),
    flat indices into the shard on which a block starts and into the result, of `shape`, on which it ends.

    `sizes` are the elements of each block, None where all are alike. Where one of `start` and `end` has a
    single row, it is that of every block."""

    start: Ints
    end: Ints
    shape: tuple[int, ...]
    sizes: Ints | None = None

    def cut(self, pieces: int, dtype: str) -> Cuts:
        """Cut every block into `pieces` chunks whose sizes differ by one at most, the larger first."""
        start, end = np.broadcast_arrays(self.start, self.end)
        sizes = np.full(len(start), start.shape[1]) if self.sizes is None else self.sizes
        least, more = np.divmod(sizes[:, None], pieces)
        piece = np.arange(pieces)
        first = piece * least + np.minimum(piece, more)
        chunk_sizes = least + (piece < more)
        offset = np.arange(chunk_sizes.max(initial=0))
        there = offset < chunk_sizes[..., None]
        where = np.where(there, first[..., None] + offset, 0).reshape(len(sizes), pieces * len(offset))

        def chosen(index: Ints) -> Ints:
            taken = np.take_along_axis(index, where, axis=1).reshape(there.shape)
            return np.where(there, taken, -1).reshape(len(sizes) * pieces, len(offset))

        return Cuts(chosen(start), chosen(end), chunk_sizes.reshape(-1), self.shape, dtype)


class Operation(ABC):
    """One collective of JAX with its parameters, over the mesh axes `axes`, the major first.

    Subclasses are frozen dataclasses whose fields carry JAX's names. `kind` is that of its pattern, `takes`
    its parameters as people give them. Where it `leaves_copies`, one result stands for the whole group, and
    `out_specs` leave out the axes; where it is `even`, its blocks are equally large."""

    name: ClassVar[str]
    kind: ClassVar[str]
    takes: ClassVar[tuple[Parameter, ...]] = ()
    leaves_copies: ClassVar[bool] = False
    even: ClassVar[bool] = True
    axes: tuple[str, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "axes"}

    def dims(self, mesh: Mesh) -> tuple[int, ...]:
        """The sizes of `axes` in a mesh. Raises `QuestionError` for an unknown one."""
        return tuple(map(mesh.axis_size, self.axes))

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        """The movement of data in a group whose axes have the sizes `dims`. Raises `QuestionError`."""
        return Pattern(self.kind, dims)

    @abstractmethod
    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        """Raise `QuestionError` for a shard's shape or a dtype that the operation cannot take."""

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        """The shape of the larger of a member's operand and result, for shards of a shape."""
        return shape

    def least(self, shape: tuple[int, ...], dtype: str, group_size: int) -> LowerBound:
        size = array_bytes(self.larger(shape, group_size), self.moved_dtype(dtype))
        return lower_bound(self.pattern((group_size,)), size)

    def moved_dtype(self, dtype: str) -> str:
        """The dtype in which the collective computes and chunks travel, for shards of a dtype."""
        return dtype

    def chunk_sizes(self, shape: tuple[int, ...], group_size: int, chunks: int) -> int | Ints:
        """Elements of each chunk, or of every one where all are alike: `Cuts.sizes`, without cutting."""
        pattern = self.pattern((group_size,))
        cut = pattern.kind in ("reduce_scatter", "all_to_all")
        block = math.prod(shape) // (group_size if cut else 1)
        return pieces_of(block, pattern.base_chunks, pattern.pieces(chunks))

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        """The shape of the smallest shard of which no chunk is empty when blocks are cut into `pieces`."""
        return (pieces,)

    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        """The blocks of shards of that shape, which `check` takes: here, the whole shard."""
        return Blocks(whole(shape), whole(shape), shape)

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        """The cuts of shards of that shape when a schedule has so many chunks. Raises as `check` does."""
        self.check(shape, dtype, group_size)
        pieces = self.pattern((group_size,)).pieces(chunks)
        return self.blocks(shape, group_size).cut(pieces, self.result_dtype(dtype))

    def result_dtype(self, dtype: str) -> str:
        return self.moved_dtype(dtype)

    def combined(self, mine: Values, received: Values) -> Values:
        """A chunk with what was received added to it. Only where the pattern reduces."""
        raise NotImplementedError(f"{self.name} reduces nothing")

    def finished(self, result: Values, group_size: int) -> Values:
        return result


def whole(shape: tuple[int, ...], count: int = 1) -> Ints:
    """The flat index of every element of an array, in `count` rows that are alike."""
    return np.tile(np.arange(np.prod(shape, dtype=np.int64)), (count, 1))


def split(shape: tuple[int, ...], dim: int, count: int) -> Ints:
    """The flat index of every element, in a row for each of `count` equal blocks along a dimension."""
    array = np.arange(np.prod(shape, dtype=np.int64))
    cut = array.reshape(*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :])
    # Not -1: it is ambiguous where there are no elements.
    return np.moveaxis(cut, dim, 0).reshape(count, array.size // count)


def pieces_of(blocks: int | Ints, count: int, pieces: int) -> int | Ints:
    """Elements of every piece where each of `count` blocks, of `blocks` elements, is cut, the larger
    first."""
    if isinstance(blocks, int) and blocks % pieces == 0:
        return blocks // pieces
    least, more = np.divmod(np.broadcast_to(blocks, count)[:, None], pieces)
    sizes: Ints = (least + (np.arange(pieces) < more)).reshape(-1)
    return sizes


class UnfitShard(QuestionError):
    """Shards of a shape with which an operation does not work; it would with `sizes` along `dim`."""

    def __init__(self, message: str, hint: str, dim: int, sizes: tuple[int, ...]) -> None:
        super().__init__(message, hint)
        self.dim, self.sizes = dim, sizes


def dimension(number: int, rank: int, what: str) -> int:
    """A dimension of `what` counted from 0; negative numbers count from the end. Raises `QuestionError`."""
    if not -rank <= number < rank:
        hint = f"dimensions go from 0 to {rank - 1}, or from -{rank} to -1"
        hint = hint if rank else "a scalar has none: use shards of one dimension or more"
        raise QuestionError(f"{what} of {plural(rank, 'dimension')} has no dimension {number}", hint)
    return number % rank


def shape_with(size: int, *dims: int) -> tuple[int, ...]:
    """The shape of fewest dimensions that has all of `dims`: `size` along the first of them, else 1."""
    rank = max(dim + 1 if dim >= 0 else -dim for dim in dims)
    if rank > MAX_RANK:
        # No array has such a dimension, as `dimension` will say.
        return (size,)
    shape = [1] * rank
    shape[dims[0]] = size
    return tuple(shape)


def check_divides(shape: tuple[int, ...], dim: int, group_size: int) -> None:
    """Raise `UnfitShard` unless the members of a group divide a dimension of their shards."""
    size = shape[dim]
    if size % group_size:
        below, above = size // group_size * group_size, -(-size // group_size) * group_size
        sizes = (below, above) if below else (above,)
        has = f"dimension {dim} of a shard has {plural(size, 'element')}"
        hint = f"{' or '.join(f'{size:,}' for size in sizes)} elements would work"
        raise UnfitShard(f"{has}, which {group_size:,} devices do not divide", hint, dim, sizes)
    check_filled(shape, dim)


def check_is_group(shape: tuple[int, ...], dim: int, group_size: int) -> None:
    """Raise `UnfitShard` unless a dimension of the shards has one element for each member of a group."""
    if shape[dim] != group_size:
        has = f"dimension {dim} of a shard has {plural(shape[dim], 'element')}"
        problem = f"{has}, but untiled it needs one for each of the {plural(group_size, 'device')}"
        tiled = ", and so would these, tiled" * (shape[dim] % group_size == 0)
        raise UnfitShard(problem, f"{group_size:,} elements would work{tiled}", dim, (group_size,))


def check_filled(shape: tuple[int, ...], dim: int) -> None:
    """Raise `QuestionError` for a dimension without elements: JAX gathers and scatters none along it."""
    if not shape[dim]:
        problem = f"dimension {dim} of a shard has no elements"
        raise QuestionError(problem, "one element or more for each device would work")
