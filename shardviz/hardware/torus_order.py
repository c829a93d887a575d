"""Where `jax.make_mesh` puts a mesh on the chips of a TPU slice, in pure Python.

JAX gives every mesh axis whole axes of the torus, the last mesh axis first, and tries several together before
one alone. So on 4x4x8 chips the axis Y of a mesh X=4,Y=32 gets x and z (4 · 8), the first pair that fits, and
X gets y. On v5e an axis of the torus may also be split between axes of the mesh. A few small slices have an
order of their own, mostly a ring through all their chips. Across slices the leading axes lie as
`create_hybrid_device_mesh` has them. Some rules changed with jax 0.11.1: those of the installed release count
(`jax.experimental.mesh_utils`, with which the tests compare each placement).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

from shardviz.hardware.family import Parts

_TWO_BY_TWO = (0, 1, 3, 2)
_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)
_FOUR_BY_FOUR = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
_TWO_BY_FOUR = (0, 1, 2, 3, 7, 6, 5, 4)
_TWO_BY_TWO_BY_TWO = (0, 1, 3, 2, 6, 7, 5, 4)
_CHANGED = (0, 11, 1)
"""The release of jax that changed rules: v5p:2x2x2 has an order of its own since then, tpu7x fills its cores
first, and all prime factors are found."""


def parts_by_slice(sizes: Sequence[int], slices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each axis, its size within a slice and across the slices: the leading axes lie across them.

    >>> parts_by_slice((4, 8), 2)
    ((2, 8), (2, 1))
    """
    across: list[int] = []
    for size in sizes:
        across.append(math.gcd(size, slices // math.prod(across)))
    return tuple(size // part for size, part in zip(sizes, across, strict=True)), tuple(across)


def order_on_torus(chip: str, shape: tuple[int, ...], sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The order that JAX gives the devices of some small slices of `shape`, by their ids: rings; None for all
    others."""
    torus = (*shape, *(1,) * (3 - len(shape)))
    count = math.prod(sizes)
    if chip in ("v2", "v3"):
        if count == 8:
            return _TRAY
        if sizes[-1] == 8:
            return tuple(first + place for first in range(0, count, 8) for place in _TRAY)
        return tuple(range(count))
    if chip in ("v5e", "v6e"):
        if torus == (2, 2, 1):
            return _TWO_BY_TWO
        if count == 8:
            return _TWO_BY_FOUR
        return _FOUR_BY_FOUR if torus == (4, 4, 1) and max(sizes) == count else None
    if chip == "v5p" and torus == (2, 2, 2) and _has_changed():
        return _TWO_BY_TWO_BY_TWO
    if chip == "tpu7x" and count % 8 == 0 and count <= 32 and max(torus[:2]) <= 2:
        return tuple(first + place for first in range(0, count, 8) for place in _TRAY)
    return None


def parts_on_torus(chip: str, shape: tuple[int, ...], cores: int, sizes: Sequence[int]) -> Parts | None:
    """The parts of x, y, z and, of chips with several, `cores` that each mesh axis gets; None where the
    algorithm of `mesh_utils` fails."""
    dims = [*shape, cores] if cores > 1 else [*shape, *(1,) * (3 - len(shape))]
    left = list(dims)
    taken: list[tuple[int, ...]] = [() for _ in sizes]
    for axis in reversed(range(len(sizes))):
        for subset in _subsets(len(dims)):
            if math.prod(left[number] for number in subset) == sizes[axis]:
                taken[axis] = subset
                left = [0 if number in subset else size for number, size in enumerate(left)]
                break
        else:
            if sizes[axis] > 1:
                # The condition of jax.make_mesh.
                return _split_parts(dims, sizes) if chip == "v5e" else None
    return [[(number, dims[number], 1) for number in subset if dims[number] > 1] for subset in taken]


def _subsets(rank: int) -> Iterator[tuple[int, ...]]:
    """The physical dimensions that a mesh axis may take together, in the order in which JAX tries them."""
    for count in range(rank, 0, -1):
        subsets = combinations(range(rank), count)
        # With four there are cores, which are nearest to one another; then x comes before y before z.
        if rank == 4 and _has_changed():
            yield from sorted(subsets, key=_nearest)
        else:
            yield from subsets


def _nearest(subset: tuple[int, ...]) -> tuple[int, int]:
    ranks = [(1, 2, 3, 0)[number] for number in subset]
    return min(ranks), sum(ranks)


@cache
def _has_changed() -> bool:
    """Return whether the installed jax has the newer rules."""
    # Late, for it loads all that reads mail headers.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(map(int, version("jax").split(".")[:3])) >= _CHANGED
    except (PackageNotFoundError, ValueError):
        return True


def _split_parts(dims: Sequence[int], sizes: Sequence[int]) -> Parts | None:
    """The parts where an axis of the torus may be split between several of the mesh; None where none fit."""
    # Each mesh axis, the last one first, gets the best of all shares of what is left. For X=2,Y=2,Z=4 on 4x4
    # chips Z gets all of x, the only whole axis that fits; Y gets two places of y, next to one another, and X
    # the other factor of y, in steps of the two that Y has.
    assigned = [[1] * len(sizes) for _ in dims]
    for axis in reversed(range(len(sizes))):
        used = [math.prod(row) for row in assigned]
        best: tuple[int, ...] | None = None
        for share in _shares(dims, used, sizes[axis]):
            if best is None or _preference(share, dims, used) > _preference(best, dims, used):
                best = share
        if best is None or math.prod(best) != sizes[axis]:
            return None
        for row, size in zip(assigned, best, strict=True):
            row[axis] = size
    return [
        [
            (number, row[axis], math.prod(row[axis + 1 :]))
            for number, row in enumerate(assigned)
            if row[axis] > 1
        ]
        for axis in range(len(sizes))
    ]


def _shares(dims: Sequence[int], used: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """All ways to make a mesh axis of parts of the dimensions that are left: which of them give each of its
    prime factors."""
    factors: dict[int, int] = {}
    for factor in _prime_factors(size):
        factors[factor] = factors.get(factor, 0) + 1
    holders: dict[int, list[int]] = {factor: [] for factor in factors}
    for number, (dim, taken) in enumerate(zip(dims, used, strict=True)):
        for factor in _prime_factors(dim // taken):
            if factor in holders:
                holders[factor].append(number)
    choices = [sorted(set(combinations(holders[factor], many))) for factor, many in factors.items()]
    for choice in product(*choices):
        share = [1] * len(dims)
        for factor, subset in zip(factors, choice, strict=True):
            for number in subset:
                share[number] *= factor
        yield tuple(share)


def _prime_factors(number: int) -> list[int]:
    """As `mesh_utils` finds them: of some numbers, such as 10, jax 0.10 returns the last factor alone."""
    factors = []
    for factor in range(2, math.isqrt(number) + 2):
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        if number == 1:
            return factors
    return [*factors, number] if _has_changed() else [number]


def _preference(
    share: tuple[int, ...], dims: Sequence[int], used: Sequence[int]
) -> tuple[int, int, int, tuple[int, ...]]:
    """The rank of a share: most places on whole dimensions, most whole ones, most on dimensions in use."""
    whole = [part for part, dim in zip(share, dims, strict=True) if part == dim]
    in_use = [part for part, taken in zip(share, used, strict=True) if taken > 1]
    return math.prod(whole), sum(part > 1 for part in whole), math.prod(in_use), share
