"""Uneven sizes: dimensions padded to sizes that their axes divide.

JAX arrays refuse a dimension that its axes do not divide (`IndivisibleError`), and inside `jit` XLA pads it
anew for each sharding. Here it is padded once, to the least size that the axes of all arrays divide, as one
does by hand before the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from shardviz.planner.problem.problem import PaddedDim, Problem
from shardviz.sharding import ShardedArray

MOST_ROUNDS = 8
"""A dimension that stands for several, one of which stands for several again, takes a round for each."""


def padded(problem: Problem) -> Problem:
    """The problem with sizes that the axes of its arrays divide; the same one where they do already.

    Raises `QuestionError` for a spec that does not fit its array or the mesh.
    """
    arrays = problem.arrays
    for array in arrays:
        if array.spec is not None:
            array.spec.check(problem.mesh, array.rank, array.name)
    if all(_is_even(array, problem) for array in arrays):
        return problem
    same = _same_dims(arrays)
    given = {same[dim]: size for array in arrays for dim, size in zip(array.dims, array.shape, strict=True)}
    sizes = _padded_sizes(problem, same, given)
    before = {each.dim: each.size for each in problem.padding}
    padding = tuple(
        PaddedDim(dim, before.get(dim, given[root]), sizes[root])
        for dim, root in same.items()
        if sizes[root] != before.get(dim, given[root])
    )

    def resized(array: ShardedArray) -> ShardedArray:
        return replace(array, shape=tuple(sizes[same[dim]] for dim in array.dims))

    parts = tuple(
        replace(part, operands=tuple(map(resized, part.operands)), result=resized(part.result))
        for part in problem.parts
    )
    return replace(problem, parts=parts, padding=padding)


def _is_even(array: ShardedArray, problem: Problem) -> bool:
    if array.spec is None:
        return True
    return not any(
        size % parts for size, parts in zip(array.shape, array.spec.parts(problem.mesh), strict=True)
    )


def _same_dims(arrays: Iterable[ShardedArray]) -> dict[str, str]:
    """Dimension → the first name of it: an array may be used under other names than it was made with."""
    first: dict[str, str] = {}
    places: dict[tuple[str, int], str] = {}
    for array in arrays:
        for place, dim in enumerate(array.dims):
            root = first.setdefault(dim, dim)
            other = places.setdefault((array.name, place), root)
            if first[other] != root:
                first |= {name: first[other] for name, known in first.items() if known == root}
    return first


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
