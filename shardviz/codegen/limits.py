"""Limits of a program: what a laptop can hold and multiply, and what JAX or a compiler refuses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Problem


SURE = frozenset(("f16", "bf16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"))
"""Types that XLA multiplies on CPUs."""
MAX_BYTES = 2**28
"""Bytes that the devices may hold together for arrays to be made and the program to be run."""
MAX_MULTIPLICATIONS = 2**36
"""Work of a second or so on a laptop."""


def runs_on_a_laptop(problem: Problem) -> bool:
    """True if a laptop can make the arrays as they are split, and multiply them."""
    if any(array.decided_spec.unreduced for array in problem.arguments) or is_uneven(problem):
        return False
    return is_small(problem)


def is_small(problem: Problem, times: int = 1) -> bool:
    """True if all devices together hold little of the arrays, and multiply little, so many times over."""
    arrays = [*problem.arguments, *(part.result for part in problem.parts)]
    held = sum(
        array.nbytes if array.spec is None else array.bytes_per_device(problem.mesh) * problem.mesh.size
        for array in arrays
    )
    work = 0
    for part in problem.parts:
        sizes = dict(pair for array in part.operands for pair in zip(array.dims, array.shape, strict=True))
        work += math.prod(sizes.values())
    return held <= MAX_BYTES and times * work <= MAX_MULTIPLICATIONS


def needs_explicit(problem: Problem) -> bool:
    """True if JAX takes the problem under Explicit axes only: where an array is left unreduced."""
    return problem.axis_types == "auto" and any(
        array.spec is not None and array.spec.unreduced for array in problem.arrays
    )


def may_be_refused(problem: Problem, target: Target) -> bool:
    """True if the target may refuse, and will say why: hardware that is not here, a type that not all have,
    sums as operands, a result that Explicit axes leave open, or dimensions that do not divide."""
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
    """True if devices along some axes do not divide a dimension, which JAX refuses."""
    mesh = problem.mesh
    return any(
        size % count
        for array in problem.arrays
        if array.spec is not None
        for size, count in zip(array.shape, array.spec.parts(mesh), strict=True)
    )
