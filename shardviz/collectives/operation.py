"""What a collective means for arrays: a pattern, how shards are cut into chunks, and what is made of them.

Names, parameters and results are those of `jax.lax` inside `jax.shard_map`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shardviz.collectives.pattern import Pattern
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.sharding import Mesh

    Ints = NDArray[np.int64]
    Values = NDArray[Any]


@dataclass(frozen=True)
class Cuts:
    """Where every chunk begins and where it ends up, for shards of one shape.

    `start` and `end` have the shape (chunks, elements of the largest chunk): flat indices into the shard on
    which a chunk starts, and into the result on which it ends, in the same order; -1 where a smaller chunk
    has no element. `shape` and `dtype` (HLO's name) are those of a member's result; elements of the result
    that no chunk fills are 0. `sizes` are the chunks' elements.
    """

    start: Ints
    end: Ints
    sizes: Ints
    shape: tuple[int, ...]
    dtype: str


class Operation(ABC):
    """One collective of JAX with its parameters, over the mesh axes `axes`, the major first.

    Subclasses are frozen dataclasses whose fields carry JAX's names.
    """

    name: ClassVar[str]
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
                f"{self.name} runs over no axis", f"name one or more of {', '.join(mesh.axis_names)}"
            )
        for axis in self.axes:
            if self.axes.count(axis) > 1:
                raise QuestionError(f"{self.name} runs twice over mesh axis {axis}", "name every axis once")
        return tuple(map(mesh.axis_size, self.axes))

    @abstractmethod
    def pattern(self, dims: tuple[int, ...]) -> Pattern:
        """How data moves in a group whose axes have the sizes `dims`. Raises `QuestionError`."""

    @abstractmethod
    def check(self, shape: tuple[int, ...], dtype: str, group_size: int) -> None:
        """Raise `QuestionError` for a shard's shape or a dtype that the operation cannot take."""

    @abstractmethod
    def cuts(self, shape: tuple[int, ...], dtype: str, group_size: int, chunks: int) -> Cuts:
        """How shards of that shape are cut when a schedule has so many chunks. Raises as `check` does."""

    def prepared(self, shards: Values) -> Values:
        """The shards in the type in which the collective computes."""
        return shards

    def combined(self, mine: Values, received: Values) -> Values:
        """What a member has of a chunk that it adds to its own. Only where the pattern reduces."""
        raise NotImplementedError(f"{self.name} reduces nothing")

    def finished(self, result: Values, group_size: int) -> Values:
        """The result as JAX gives it, from what the rounds have left (`group_size` members)."""
        del group_size
        return result
