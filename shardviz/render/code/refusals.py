"""What JAX or a compiler does not take as it was asked, which a program must be ready for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Problem
    from shardviz.sharding import ShardedArray

SURE = frozenset(("f16", "bf16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"))
"""Types that XLA multiplies on CPUs."""


def needs_explicit(problem: Problem) -> bool:
    """Whether JAX takes the problem under Explicit axes only: where an array is left unreduced."""
    return problem.axis_types == "auto" and any(
        array.spec is not None and array.spec.unreduced for array in _arrays(problem)
    )


def may_be_refused(problem: Problem, target: Target) -> bool:
    """Whether who is asked may refuse, and will say why: hardware that is not here, a type that not all
    have, sums as operands, a result that Explicit axes leave open, or dimensions that do not divide."""
    return (
        target.machines is not None
        or problem.arguments[0].dtype not in SURE
        or is_uneven(problem)
        or any(
            operand.spec is not None and operand.spec.unreduced
            for part in problem.parts
            for operand in part.operands
        )
        or (problem.axis_types == "explicit" and any(part.result.spec is None for part in problem.parts))
    )


def is_uneven(problem: Problem) -> bool:
    """Whether devices along some axes do not divide a dimension, which JAX refuses."""
    mesh = problem.mesh
    return any(
        size % count
        for array in _arrays(problem)
        if array.spec is not None
        for size, count in zip(array.shape, array.spec.parts(mesh), strict=True)
    )


def _arrays(problem: Problem) -> list[ShardedArray]:
    return [array for part in problem.parts for array in (*part.operands, part.result)]
