"""The mesh axes, or parts of them, over which the arrays of a problem may be split. The best plan of all may
need finer parts than the arrays name: from A[X, _] with X=8 one all-to-all over X:(4)2 leads to A[X:(1)4,
X:(4)2]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, permutations, product
from math import isqrt, prod

from shardviz.planner.problem import Problem
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.planner.states.moves import Axes, State
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import SubAxis, axis_part, finest_parts, in_parts, whole_axis

MOST_ORDERED = 5
"""Parts of axes up to which an open array may be left with them in any order."""
MOST_STATES = 512
"""States of an open array that are looked at where there are more."""
MOST_CUT = 8
"""Axes are cut into their prime factors where that makes no more parts: the states of an array grow with the
factorial of their number."""


@dataclass(frozen=True)
class AxisPool:
    """The axes that some array of a problem names, in the mesh's order, as the parts of which all that a spec
    names is made, each with its size. A whole copy may become a pending sum only over `may_mask`, shards by
    padding only over `may_pad`, of which some array is given or wanted with pending sums. `splits`
    are what the given arrays split, (dimension, part), and `orders` how they do, (dimension, parts)."""

    sizes_of_parts: tuple[tuple[str, int], ...]
    may_mask: frozenset[str] = frozenset()
    may_pad: frozenset[str] = frozenset()
    splits: frozenset[tuple[str, str]] = frozenset()
    orders: tuple[tuple[str, Axes], ...] = ()

    @classmethod
    def of(cls, problem: Problem, *, into_primes: bool = False) -> AxisPool:
        """The axes of a problem, cut where a spec names a part, or `into_primes` if these are few."""
        mesh = problem.mesh
        given = [(array, array.spec) for array in problem.arrays if array.spec is not None]
        names = {name for _, spec in given for name in (*spec.axes, *spec.unreduced)}
        whole = {whole_axis(name) for name in names if mesh.axis_size(name) > 1}
        sizes = {axis: size for axis, size in mesh.shape.items() if axis in whole}
        parts = finest_parts(sizes, (name for name in names if whole_axis(name) in whole))
        primes = finest_parts(sizes, (str(prime) for name in parts for prime in _primes(mesh, name)))
        if into_primes and len(primes) <= MOST_CUT:
            parts = primes
        pool = cls(tuple((part, mesh.axis_size(part)) for part in parts))
        splits: set[tuple[str, str]] = set()
        orders: dict[tuple[str, Axes], None] = {}
        for array, spec in given:
            for dim, axes in zip(array.dims, pool.state(spec)[0], strict=True):
                splits |= {(dim, axis) for axis in axes}
                orders[dim, axes] = None
        _spread(splits, problem)
        # A sum takes them, and so does what is linear and needs all of a dimension, instead of gathering it.
        linear = [(FUNCTIONS[part.function].linearity, part.whole) for part in problem.parts]
        may_mask = may_pad = frozenset(axis for _, spec in given for axis in pool.state(spec)[1])
        if any(kind == "sum" or (kind == "product" and whole) for kind, whole in linear):
            may_mask = frozenset(parts)
        return cls(pool.sizes_of_parts, may_mask, may_pad, frozenset(splits), tuple(orders))

    def with_masks(self, problem: Problem) -> AxisPool:
        """The pool with which copies may become pending sums over every part, where that may save something:
        a summed dimension has too few elements to split its work, or sums are given."""
        every = prod(self.sizes.values())
        is_given = any(array.spec is not None and array.spec.unreduced for array in problem.arrays)
        is_small = any(part.sizes[dim] % every for part in problem.parts for dim in part.summed)
        return replace(self, may_mask=frozenset(self.sizes)) if is_given or is_small else self

    @cached_property
    def sizes(self) -> dict[str, int]:
        return dict(self.sizes_of_parts)

    @property
    def is_finest(self) -> bool:
        return all(size % factor for size in self.sizes.values() for factor in range(2, isqrt(size) + 1))

    def state(self, spec: PartitionSpec) -> State:
        """The state that a spec says; axes of one device split nothing and are left out."""
        dims = tuple(in_parts(axes, self.sizes) for axes in spec.dims)
        return dims, tuple(sorted(in_parts(spec.unreduced, self.sizes)))

    def open_states(self, array: ShardedArray) -> Iterator[State]:
        """The states in which an array may be left: split as given arrays are, evenly, nothing pending."""
        if len(self.sizes) > MOST_ORDERED:
            yield from self._given_states(array)
            return
        dims = [
            (None, *(index for index, dim in enumerate(array.dims) if (dim, axis) in self.splits))
            for axis in self.sizes
        ]
        for places in product(*dims):
            own = [
                [axis for axis, index in zip(self.sizes, places, strict=True) if index == dim]
                for dim in range(array.rank)
            ]
            for ordered in product(*map(permutations, own)):
                parts = [prod([self.sizes[axis] for axis in axes]) for axes in ordered]
                if all(size % cut == 0 for size, cut in zip(array.shape, parts, strict=True)):
                    yield ordered, ()

    def _given_states(self, array: ShardedArray) -> Iterator[State]:
        """The states in which each dimension is split as some given array splits it, or begins to."""
        orders = [
            [own[:end] for name, own in self.orders if name == dim for end in range(1, len(own) + 1)]
            for dim in array.dims
        ]
        for dims in islice(product(*([(), *dict.fromkeys(own)] for own in orders)), MOST_STATES):
            axes = [axis for own in dims for axis in own]
            if len(set(axes)) == len(axes):
                yield dims, ()


def _spread(splits: set[tuple[str, str]], problem: Problem) -> None:
    """Add the splits of dimensions that stand for others, or for which others stand."""
    groups = [frozenset({dim, *factors}) for part in problem.parts for dim, factors in part.merged]
    roots = problem.roots
    groups += [frozenset(dim for dim in roots if roots[dim] == root) for root in set(roots.values())]
    while True:
        more = {
            (other, axis) for dim, axis in splits for group in groups if dim in group for other in group
        } - splits
        if not more:
            return
        splits |= more


def _primes(mesh: Mesh, name: str) -> Iterator[SubAxis]:
    """The parts of prime sizes of an axis, or of a part of one."""
    size = mesh.axis_size(name)
    axis, before, _ = axis_part(name) or SubAxis(name, 1, size)
    factor = 2
    while size > 1:
        if size % factor:
            factor += 1
            continue
        yield SubAxis(axis, before, factor)
        size, before = size // factor, before * factor
