"""The price of an array's way from one sharding to another, on one mesh: the direct one, which a compiler
would take, and not the cheapest of all.

A search asks so often that it cannot look for the cheapest way, as a plan does (`cheapest_paths`); it takes
that of `direct_moves`, whose moves have the prices of a plan's. Which moves these are does not depend on the
sizes of a mesh, so they are found once for all meshes (`DirectWays`); each mesh prices them (`DirectPrices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.search.elimination import Table
from shardviz.planner.states.direct_moves import direct_moves
from shardviz.planner.states.moves import Axes, Dims, State, StateSpace
from shardviz.planner.states.paths import PathMove
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, array_bytes

Shape = tuple[int, ...]
Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds."""
_PRIMES = (2, 3, 5, 7, 11)
"""Sizes of axes of which no product is another: a way for these is one for axes of any size."""
_UNKNOWN, _NONE, _IMPOSSIBLE = -1, 0, 1


class DirectCollective(NamedTuple):
    """A collective over mesh axes, with the axes that split each dimension before and after it, in no order;
    `idle` are those over which an all-gather may cut the array first, for more links."""

    op: str
    axes: Axes
    before: Dims
    after: Dims
    idle: Axes = ()


class DirectWays:
    """The direct ways between states on all meshes with the same axes of more than one device.

    A way goes by its number, the collectives of which are a row of `steps`, as their numbers in
    `collectives`; cuts are free, as they are read in place by what uses them.
    """

    def __init__(self, wide: Axes) -> None:
        self._wide = wide
        sizes = dict(zip(wide, _PRIMES, strict=False))
        self._space = StateSpace(sizes, sizes)
        self.collectives: list[DirectCollective | None] = [None, None]  # none, and an impossible way
        self._numbers: dict[DirectCollective, int] = {}
        self._ways: dict[tuple[int, ...], int] = {(): _NONE, (_IMPOSSIBLE,): _IMPOSSIBLE}
        self._states: dict[int, dict[State, int]] = {}
        self._found: dict[int, NDArray[np.intp]] = {}
        self._steps = np.zeros((0, 0), np.intp)

    @property
    def steps(self) -> NDArray[np.intp]:
        """The collectives of each way, those of shorter ones filled up with none."""
        if len(self._steps) < len(self._ways):
            longest = max(map(len, self._ways))
            self._steps = np.array([way + (_NONE,) * (longest - len(way)) for way in self._ways])
        return self._steps

    def between(self, befores: Sequence[State], afters: Sequence[State]) -> NDArray[np.intp]:
        """For each pair of states of arrays of one rank the number of the way."""
        rank = len(befores[0][0])
        known = self._states.setdefault(rank, {})
        rows, columns = (
            [known.setdefault(state, len(known)) for state in side] for side in (befores, afters)
        )
        table = self._grown(rank, len(known))
        found: NDArray[np.intp] = table[np.ix_(rows, columns)]
        for i, j in np.argwhere(found == _UNKNOWN):
            found[i, j] = table[rows[i], columns[j]] = self._way(befores[i], afters[j])
        return found

    def _grown(self, rank: int, states: int) -> NDArray[np.intp]:
        table = self._found.get(rank, np.full((0, 0), _UNKNOWN))
        if states > len(table):
            size = max(64, 2 * states)
            larger = np.full((size, size), _UNKNOWN)
            larger[: len(table), : len(table)] = table
            table = self._found[rank] = larger
        return table

    def _way(self, before: State, after: State) -> int:
        if set(after[1]) <= set(before[1]):
            moves = direct_moves(self._space, before, after)
            way = tuple(self._number(move) for move in moves if move.op not in LOCAL_OPS)
        else:
            way = (_IMPOSSIBLE,)  # whole values do not become pending sums
        return self._ways.setdefault(way, len(self._ways))

    def _number(self, move: PathMove) -> int:
        before, after = (
            tuple(tuple(sorted(axes)) for axes in state[0]) for state in (move.before, move.after)
        )
        idle: Axes = ()
        if move.op == "all_gather":
            used = {*move.before[1], *(axis for axes in before for axis in axes)}
            idle = tuple(axis for axis in self._wide if axis not in used)
        collective = DirectCollective(move.op, move.axes, before, after, idle)
        number = self._numbers.setdefault(collective, len(self.collectives))
        if number == len(self.collectives):
            self.collectives.append(collective)
        return number


class DirectPrices:
    """The prices of direct ways on a placed mesh."""

    def __init__(self, prices: Prices, mesh: Mesh, ways: DirectWays) -> None:
        self._prices, self._mesh, self._ways = prices, mesh, ways
        self._devices: dict[Axes, int] = {(): 1}
        self._times: dict[tuple[str, Axes, int, int], float] = {}
        self._seconds: dict[tuple[Shape, str], Table] = {}
        self._parts: dict[tuple[Shape, str, State, State], tuple[Part, ...]] = {}
        self._local: dict[tuple[Shape, Dims], Shape] = {}

    def table(self, shape: Shape, dtype: str, befores: Sequence[State], afters: Sequence[State]) -> Table:
        """Seconds of the ways of an array from each state to each; whole values do not become pending
        sums."""
        ways = self._ways.between(befores, afters)
        steps = self._ways.steps
        used = np.unique(ways)
        seconds = np.full(len(steps), np.nan)
        seconds[used] = self._priced(shape, dtype, steps[used])[steps[used]].sum(axis=-1)
        found: Table = seconds[ways]
        return found

    def parts(self, shape: Shape, dtype: str, before: State, after: State) -> tuple[Part, ...]:
        """The collectives of a way, in order."""
        key = (shape, dtype, before, after)
        if key not in self._parts:
            way = self._ways.between((before,), (after,))[0, 0]
            found = (self._ways.collectives[number] for number in self._ways.steps[way])
            self._parts[key] = tuple(self._part(shape, dtype, each) for each in found if each is not None)
        return self._parts[key]

    def local_bytes(self, shape: Shape, dtype: str, dims: Dims) -> int:
        """Bytes of a device's shard."""
        return array_bytes(self.local_shape(shape, dims), dtype)

    def local_shape(self, shape: Shape, dims: Dims) -> Shape:
        """Elements of a device's shard along each dimension."""
        found = self._local.get((shape, dims))
        if found is None:
            found = tuple(-(-size // self.group_size(axes)) for size, axes in zip(shape, dims, strict=True))
            self._local[shape, dims] = found
        return found

    def group_size(self, axes: Axes) -> int:
        """Devices along these axes."""
        if axes not in self._devices:
            self._devices[axes] = self._mesh.group_size(axes)
        return self._devices[axes]

    def _priced(self, shape: Shape, dtype: str, numbers: NDArray[np.intp]) -> Table:
        """The seconds of collectives of an array by their numbers, of these at least."""
        known = self._seconds.get((shape, dtype), np.array([0.0, inf]))
        if len(known) < len(self._ways.collectives):
            more = np.full(len(self._ways.collectives) - len(known), np.nan)
            known = self._seconds[shape, dtype] = np.concatenate([known, more])
        for number in np.unique(numbers):
            each = self._ways.collectives[number]
            if each is not None and np.isnan(known[number]):
                known[number] = self._part(shape, dtype, each)[1]
        return known

    def _part(self, shape: Shape, dtype: str, each: DirectCollective) -> Part:
        before, after = (self.local_bytes(shape, dtype, dims) for dims in (each.before, each.after))
        found = (each.axes, self._time(each.op, each.axes, before, after))
        for count in range(1, len(each.idle) + 1):
            for more in combinations(each.idle, count):
                # A cut over axes that hold copies, and a gather over these too, which has more links.
                axes, devices = (*each.axes, *more), self.group_size((*each.axes, *more))
                if any(size % devices == 0 for size in shape):
                    seconds = self._time(each.op, axes, before // self.group_size(more), after)
                    found = min(found, (axes, seconds), key=lambda part: part[1])
        return found

    def _time(self, op: str, axes: Axes, before: int, after: int) -> float:
        key = (op, axes, before, after)
        if key not in self._times:
            self._times[key] = self._prices.move_seconds(*key)
        return self._times[key]
