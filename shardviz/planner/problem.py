"""The question: a mesh, one einsum or a chain of them, and how every array is split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardviz.notation.einsum import Einsum
from shardviz.sharding import Mesh, ShardedArray


@dataclass(frozen=True)
class Contraction:
    """One einsum of the chain over named arrays.

    In every part but the first, `operands[0]` is the previous part's result: it has that result's
    name, and its spec is a constraint on it, as `jax.lax.with_sharding_constraint`, or None. `result.spec`
    is None where the compiler may choose.
    """

    einsum: Einsum
    operands: tuple[ShardedArray, ...]
    result: ShardedArray


@dataclass(frozen=True)
class Problem:
    """What is asked. Built from text by `problem_from_text`."""

    mesh: Mesh
    parts: tuple[Contraction, ...]
    axis_types: Literal["auto", "explicit"] = "auto"

    @property
    def arguments(self) -> tuple[ShardedArray, ...]:
        """The arrays a program takes: both operands of the first part, then each part's second."""
        first, *rest = self.parts
        return (*first.operands, *(operand for part in rest for operand in part.operands[1:]))

    @property
    def result(self) -> ShardedArray:
        """The last part's result."""
        return self.parts[-1].result

    @property
    def arrays(self) -> tuple[ShardedArray, ...]:
        """Operands and result of every part; what one part hands to the next stands twice."""
        return tuple(array for part in self.parts for array in (*part.operands, part.result))

    @property
    def text(self) -> str:
        """The einsum, or a chain of them with semicolons."""
        return "; ".join(str(part.einsum) for part in self.parts)
