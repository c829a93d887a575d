"""Uneven sizes: dimensions padded to sizes that their axes divide.

JAX arrays refuse a dimension that its axes do not divide (`IndivisibleError`), and inside `jit` XLA pads it
anew for each sharding. Here it is padded once, to the least size that the axes of all arrays divide, as one
does by hand before the program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from shardviz.planner.problem.problem import PaddedDim, Problem

MOST_ROUNDS = 8
"""A dimension that stands for several, one of which stands for several again, takes a round for each."""


def padded(problem: Problem) -> Problem:
    """The problem with sizes that the axes of its arrays divide; the same one where they do already.

    Raises `QuestionError` for a spec that does not fit its array or the mesh.
    """
    is_even = True
    for array in problem.arrays:
        if array.spec is not None:
            array.spec.check(problem.mesh, array.rank, array.name)
            parts = array.spec.parts(problem.mesh)
            is_even &= not any(size % count for size, count in zip(array.shape, parts, strict=True))
    if is_even:
        return problem
    same = problem.roots
    given = {
        same[dim]: size for each in problem.arrays for dim, size in zip(each.dims, each.shape, strict=True)
    }
    sizes = _padded_sizes(problem, same, given)
    before = {each.dim: each.size for each in problem.padding}
    padding = tuple(
        PaddedDim(dim, before.get(dim, given[root]), sizes[root])
        for dim, root in same.items()
        if sizes[root] != before.get(dim, given[root])
    )
    return replace(problem.resized({dim: sizes[root] for dim, root in same.items()}), padding=padding)


def _padded_sizes(problem: Problem, same: Mapping[str, str], given: Mapping[str, int]) -> dict[str, int]:
    """Every size, rounded up; one that stands for several dimensions is their product."""
    parts = dict.fromkeys(given, 1)
    for array in problem.arrays:
        if array.spec is not None:
            for dim, count in zip(array.dims, array.spec.parts(problem.mesh), strict=True):
                parts[same[dim]] = math.lcm(parts[same[dim]], count)
    merged = [
        (same[dim], [same[factor] for factor in factors])
        for part in problem.parts
        for dim, factors in part.merged
        if dim in same and all(factor in same for factor in factors)
    ]
    sizes: dict[str, int] = {}
    for _ in range(MOST_ROUNDS):
        sizes = {dim: -(-size // parts[dim]) * parts[dim] for dim, size in given.items()}
        before = dict(parts)
        for dim, (major, *minor) in merged:
            rest = math.prod(sizes[factor] for factor in minor)
            parts[major] = math.lcm(parts[major], parts[dim] // math.gcd(parts[dim], rest))
            sizes[major] = -(-given[major] // parts[major]) * parts[major]
            sizes[dim] = sizes[major] * rest
        if parts == before:
            break
    return sizes
