"""The price of an array's way from one sharding to another, on one mesh: the direct one, which a compiler
would take, and not the cheapest of all.

A search asks so often that it cannot look for the cheapest way, as a plan does (`paths`); it takes that of
`direct_moves`, whose moves have the prices of a plan's. Which moves these are does not depend on the sizes of
a mesh, so they are found once for all meshes (`DirectWays`); each mesh prices them (`DirectPrices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.search.least_sum import Table
from shardviz.planner.states.direct_moves import direct_moves
from shardviz.planner.states.moves import Axes, Dims, PathMove, State, StateSpace
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, array_bytes

Shape = tuple[int, ...]
Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds."""
_PRIMES = (2, 3, 5, 7, 11)
"""Sizes of axes of which no product is another: a way for these is one for axes of any size."""
_UNKNOWN = -1


class DirectCollective(NamedTuple):
    """A collective over mesh axes, with the axes that split each dimension before and after it, in no order;
    `idle` are those over which an all-gather may cut the array first, for more links."""

    op: str
    axes: Axes
    before: Dims
    after: Dims
    idle: Axes = ()


DirectWay = tuple[DirectCollective, ...] | None
"""The collectives of a way, without cuts, which are free, as they are read in place by what uses them; None
where there is no way."""


class DirectWays:
    """The direct ways between states on all meshes with the same axes of more than one device. A way goes by
    its number in `ways`."""

    def __init__(self, wide: Axes) -> None:
        self._wide = wide
        sizes = dict(zip(wide, _PRIMES, strict=False))
        self._space = StateSpace(sizes, sizes)
        self.ways: list[DirectWay] = []
        self._numbers: dict[DirectWay, int] = {}
        self._states: dict[int, dict[State, int]] = {}
        self._found: dict[int, NDArray[np.intp]] = {}

    def between(self, befores: Sequence[State], afters: Sequence[State]) -> NDArray[np.intp]:
        """For each pair of states of arrays of one rank the number of the way."""
        rank = len(befores[0][0])
        known = self._states.setdefault(rank, {})
        rows, columns = (
            [known.setdefault(state, len(known)) for state in side] for side in (befores, afters)
        )
        table = self._found.get(rank, np.full((64, 64), _UNKNOWN))
        if len(known) > len(table):
            table = np.pad(table, (0, 2 * len(known) - len(table)), constant_values=_UNKNOWN)
        self._found[rank] = table
        found: NDArray[np.intp] = table[np.ix_(rows, columns)]
        for i, j in np.argwhere(found == _UNKNOWN):
            found[i, j] = table[rows[i], columns[j]] = self._number(befores[i], afters[j])
        return found

    def _number(self, before: State, after: State) -> int:
        way: DirectWay = None  # whole values do not become pending sums
        if set(after[1]) <= set(before[1]):
            moves = direct_moves(self._space, before, after)
            way = tuple(self._collective(move) for move in moves if move.op not in LOCAL_OPS)
        number = self._numbers.setdefault(way, len(self.ways))
        if number == len(self.ways):
            self.ways.append(way)
        return number

    def _collective(self, move: PathMove) -> DirectCollective:
        before, after = (
            tuple(tuple(sorted(axes)) for axes in state[0]) for state in (move.before, move.after)
        )
        idle: Axes = ()
        if move.op == "all_gather":
            used = {*move.before[1], *(axis for axes in before for axis in axes)}
            idle = tuple(axis for axis in self._wide if axis not in used)
        return DirectCollective(move.op, move.axes, before, after, idle)


class DirectPrices:
    """The prices of direct ways on a placed mesh."""

    def __init__(self, prices: Prices, mesh: Mesh, ways: DirectWays) -> None:
        self._prices, self._mesh, self._ways = prices, mesh, ways
        self._devices: dict[Axes, int] = {(): 1}
        self._times: dict[tuple[str, Axes, int, int], float] = {}
        self._parts: dict[tuple[Shape, str, DirectCollective], Part] = {}
        self._seconds: dict[tuple[Shape, str], dict[int, float]] = {}
        self._local: dict[tuple[Shape, Dims], Shape] = {}

    def table(self, shape: Shape, dtype: str, befores: Sequence[State], afters: Sequence[State]) -> Table:
        """Seconds of the ways of an array from each state to each; whole values do not become pending
        sums."""
        numbers = self._ways.between(befores, afters)
        used, places = np.unique(numbers, return_inverse=True)
        known = self._seconds.setdefault((shape, dtype), {})
        for number in used.tolist():
            if number not in known:
                way = self._ways.ways[number]
                known[number] = inf if way is None else sum(self._part(shape, dtype, each)[1] for each in way)
        return np.array([known[number] for number in used.tolist()])[places].reshape(numbers.shape)

    def parts(self, shape: Shape, dtype: str, before: State, after: State) -> tuple[Part, ...]:
        """The collectives of a way, in order."""
        way = self._ways.ways[self._ways.between((before,), (after,))[0, 0]]
        return tuple(self._part(shape, dtype, each) for each in way or ())

    def local_bytes(self, shape: Shape, dtype: str, dims: Dims) -> int:
        """Bytes of a device's shard."""
        return array_bytes(self.local_shape(shape, dims), dtype)

    def local_shape(self, shape: Shape, dims: Dims) -> Shape:
        """Elements of a device's shard along each dimension."""
        found = self._local.get((shape, dims))
        if found is None:
            found = tuple(-(-size // self._group_size(axes)) for size, axes in zip(shape, dims, strict=True))
            self._local[shape, dims] = found
        return found

    def _group_size(self, axes: Axes) -> int:
        if axes not in self._devices:
            self._devices[axes] = self._mesh.group_size(axes)
        return self._devices[axes]

    def _part(self, shape: Shape, dtype: str, each: DirectCollective) -> Part:
        found = self._parts.get((shape, dtype, each))
        if found is None:
            before, after = (self.local_bytes(shape, dtype, dims) for dims in (each.before, each.after))
            found = (each.axes, self._time(each.op, each.axes, before, after))
            for count in range(1, len(each.idle) + 1):
                for more in combinations(each.idle, count):
                    # A cut over axes that hold copies, and a gather over these too, which has more links.
                    axes, devices = (*each.axes, *more), self._group_size((*each.axes, *more))
                    if any(size % devices == 0 for size in shape):
                        seconds = self._time(each.op, axes, before // self._group_size(more), after)
                        found = min(found, (axes, seconds), key=lambda part: part[1])
            self._parts[shape, dtype, each] = found
        return found

    def _time(self, op: str, axes: Axes, before: int, after: int) -> float:
        key = (op, axes, before, after)
        if key not in self._times:
            self._times[key] = self._prices.move_seconds(*key)
        return self._times[key]
