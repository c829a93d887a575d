"""The sizes of arrays that a laptop can hold and multiply, all devices simulated on it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shardviz.render.code.refusals import is_uneven

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem


MAX_BYTES = 2**28
"""Bytes that the devices may hold together for arrays to be made and the program to be run."""
MAX_MULTIPLICATIONS = 2**36
"""Work of a second or so on a laptop."""


def is_runnable(problem: Problem) -> bool:
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
