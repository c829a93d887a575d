"""The meaning of a collective for arrays: a pattern, how shards are cut, and what is made of them.

Names, parameters and results are those of `jax.lax` inside `jax.shard_map`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from shardviz.collectives.chunking import Blocks, Cuts, pieces_of
from shardviz.collectives.pattern import LowerBound, Pattern, lower_bound
from shardviz.collectives.values import Ints, Values
from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, array_bytes


@dataclass(frozen=True)
class Parameter:
    """A parameter of operations as people give it: an option of `shardviz step`, a line of a form.

    `name` is the option's and `field` JAX's, whose default the operation has. It is given as a `kind`: a
    bool by being there. `help` says what it is, in a clause, and `example` how it is written; `metavar`
    stands for its value in a list of options. `read` makes JAX's value from the given one and the size of
    the group; it raises `QuestionError`. `needed`: the operation means nothing without it.
    """

    name: str
    field: str
    help: str
    kind: type[int | bool | str] = int
    example: str = "0"
    metavar: str = "N"
    read: Callable[[Any, int], Any] = lambda value, _group_size: value
    needed: bool = False

    @property
    def flag(self) -> str:
        """Its option on the command line."""
        return f"--{self.name.replace('_', '-')}"


UNTILED = Parameter(
    "untiled",
    "tiled",
    "JAX's tiled=False: devices get a dimension of their own",
    bool,
    "yes: devices get a dimension of their own",
    read=lambda given, _group_size: not given,
)


class Operation(ABC):
    """One collective of JAX with its parameters, over the mesh axes `axes`, the major first.

    Subclasses are frozen dataclasses whose fields carry JAX's names.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    """The kind of its pattern."""
    takes: ClassVar[tuple[Parameter, ...]] = ()
    """Its parameters as people give them."""
    leaves_copies: ClassVar[bool] = False
    """One result stands for the whole group: `out_specs` then leave out the axes."""
    even: ClassVar[bool] = True
    """Its blocks are equally large."""
    axes: tuple[str, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        """JAX's parameters by name, beside the axes."""
        return {name: value for name, value in vars(self).items() if name != "axes"}

    def dims(self, mesh: Mesh) -> tuple[int, ...]:
        """The sizes of `axes` in a mesh, which `pattern` takes.

        Raises `QuestionError` for no axis, one that the mesh does not have, and one that is named twice.
        """
        if not self.axes:
            raise QuestionError(
                f"{self.name} needs a mesh axis", f"name one or more of {', '.join(mesh.axis_names)}"
            )
        for axis in self.axes:
            if self.axes.count(axis) > 1:
                raise QuestionError(f"{self.name} runs twice over mesh axis {axis}", "name every axis once")
        return tuple(map(mesh.axis_size, self.axes))

    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        """The movement of data in a group whose axes have the sizes `dims`. Raises `QuestionError`."""
        return Pattern(self.kind, dims)

    @abstractmethod
    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        """Raise `QuestionError` for a shard's shape or a dtype that the operation cannot take."""

    def larger(self, shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
        """The shape of the larger of a member's operand and result, for shards of a shape."""
        del group_size
        return shape

    def least(self, shape: tuple[int, ...], dtype: str, group_size: int) -> LowerBound:
        """The fewest rounds and bytes for shards of a shape and a dtype."""
        size = array_bytes(self.larger(shape, group_size), self.moved_dtype(dtype))
        return lower_bound(self.pattern((group_size,)), size)

    def moved_dtype(self, dtype: str) -> str:
        """The dtype in which chunks travel, of shards of a dtype: that of `prepared`."""
        return dtype

    def chunk_sizes(self, shape: tuple[int, ...], group_size: int, chunks: int) -> int | Ints:
        """Elements of each chunk, or of every one where all are alike: `Cuts.sizes`, without cutting."""
        pattern = self.pattern((group_size,))
        cut = pattern.kind in ("reduce_scatter", "all_to_all")
        block = math.prod(shape) // (group_size if cut else 1)
        return pieces_of(block, pattern.base_chunks, pattern.pieces(chunks))

    def smallest_shard(self, group_size: int, pieces: int) -> tuple[int, ...]:
        """The shape of the smallest shard that the operation takes and of which no chunk is empty.

        `pieces` is into how many a schedule cuts a block of it.
        """
        del group_size
        return (pieces,)

    @abstractmethod
    def blocks(self, shape: tuple[int, ...], group_size: int) -> Blocks:
        """The blocks of shards of that shape, which `check` takes."""

    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        """The cuts of shards of that shape when a schedule has so many chunks. Raises as `check` does."""
        self.check(shape, dtype, group_size)
        pieces = self.pattern((group_size,)).pieces(chunks)
        return self.blocks(shape, group_size).cut(pieces, self.result_dtype(dtype))

    def result_dtype(self, dtype: str) -> str:
        """The dtype of the result, for shards of a dtype."""
        return dtype

    def prepared(self, shards: Values) -> Values:
        """The shards in the type in which the collective computes."""
        return shards

    def combined(self, mine: Values, received: Values) -> Values:
        """A chunk with what was received added to it. Only where the pattern reduces."""
        raise NotImplementedError(f"{self.name} reduces nothing")

    def finished(self, result: Values, group_size: int) -> Values:
        """The result as JAX gives it, from what the rounds have left (`group_size` members)."""
        del group_size
        return result
