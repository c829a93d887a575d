"""The price of an array's way from one sharding to another, on one mesh: a usual way, not the cheapest of
all.

The planner looks for the cheapest way among all (`paths`); a search asks so often that it takes this one:
pending sums are scattered where the new sharding splits them, axes that are added cut first, those that
change their dimension move by an all-to-all, and the others are gathered last, together with axes that hold
copies where that is faster. Which collectives these are does not depend on the sizes of a mesh, so they are
found once for all meshes (`UsualWays`); each mesh prices them (`UsualMoves`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.search.elimination import Table
from shardviz.planner.states.moves import Axes, Dims, State
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, array_bytes

Shape = tuple[int, ...]
Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds."""
LONGEST = 4
"""Collectives of a usual way, at most: a reduce-scatter, an all-to-all, an all-reduce and an all-gather."""
_UNKNOWN, _NONE, _IMPOSSIBLE = -1, 0, 1


class UsualCollective(NamedTuple):
    """A collective over mesh axes, with the axes that split each dimension before and after it; `idle` are
    those over which an all-gather may cut the array first, for more links."""

    op: str
    axes: Axes
    before: Dims
    after: Dims
    idle: Axes = ()


def usual_way(before: State, after: State, wide: Sequence[str]) -> Iterator[UsualCollective]:
    """The collectives from one state to another; `wide` are the axes of more than one device. Cuts are free:
    they are read in place by what uses them."""
    dims, pending = [list(axes) for axes in before[0]], list(before[1])
    place_of = {axis: place for place, axes in enumerate(after[0]) for axis in axes}
    held = before[0]

    def collective(op: str, axes: Sequence[str], idle: Sequence[str] = ()) -> UsualCollective:
        """The collective that has led to `dims` as they are now."""
        nonlocal held
        last, held = held, tuple(map(tuple, dims))
        return UsualCollective(op, tuple(axes), _sorted(last), _sorted(held), tuple(idle))

    def move_in(axes: Sequence[str]) -> None:
        for axis in axes:
            dims[place_of[axis]].append(axis)

    if scattered := [axis for axis in pending if axis in place_of]:
        pending = [axis for axis in pending if axis not in scattered]
        move_in(scattered)
        yield collective("psum_scatter", scattered)
    used = {axis for axes in dims for axis in axes}.union(pending, after[1])
    if cut := [axis for axis in place_of if axis not in used]:
        move_in(cut)
        held = tuple(map(tuple, dims))
    if moved := [
        axis for place, axes in enumerate(dims) for axis in axes if place_of.get(axis, place) != place
    ]:
        for axes in dims:
            axes[:] = [axis for axis in axes if axis not in moved]
        move_in(moved)
        yield collective("all_to_all", moved)
    if added := [axis for axis in pending if axis not in after[1]]:
        yield collective("psum", added)
    gathered: list[str] = []
    for axes in dims:
        # Only the minor end can be gathered: what is minor to it comes along, and is cut again.
        kept = next((n for n, axis in enumerate(axes) if axis not in place_of), len(axes))
        gathered += axes[kept:]
        del axes[kept:]
    if gathered:
        idle = [axis for axis in wide if axis not in {*used, *gathered, *pending}]
        yield collective("all_gather", gathered, idle)


@lru_cache(maxsize=100_000)
def _sorted(dims: Dims) -> Dims:
    return tuple(tuple(sorted(axes)) for axes in dims)


class UsualWays:
    """The usual ways between states on all meshes with the same axes of more than one device. A collective
    goes by its number in `collectives`."""

    def __init__(self, wide: Axes) -> None:
        self.wide = wide
        self.collectives: list[UsualCollective | None] = [None, None]  # none, and an impossible way
        self._number: dict[UsualCollective, int] = {}
        self._states: dict[int, dict[State, int]] = {}
        self._found: dict[int, NDArray[np.intp]] = {}

    def between(self, befores: Sequence[State], afters: Sequence[State]) -> NDArray[np.intp]:
        """For each pair of states of arrays of one rank the numbers of `LONGEST` collectives."""
        rank = len(befores[0][0])
        known = self._states.setdefault(rank, {})
        rows, places = ([known.setdefault(each, len(known)) for each in side] for side in (befores, afters))
        table = self._grown(rank, len(known))
        found: NDArray[np.intp] = table[np.ix_(rows, places)]
        for i, j in np.argwhere(found[..., 0] == _UNKNOWN):
            found[i, j] = table[rows[i], places[j]] = self._way(befores[i], afters[j])
        return found

    def _grown(self, rank: int, states: int) -> NDArray[np.intp]:
        table = self._found.get(rank, np.full((0, 0, LONGEST), _UNKNOWN))
        if states > len(table):
            size = max(64, 2 * states)
            larger = np.full((size, size, LONGEST), _UNKNOWN)
            larger[: len(table), : len(table)] = table
            table = self._found[rank] = larger
        return table

    def _way(self, before: State, after: State) -> list[int]:
        if before == after:
            return [_NONE] * LONGEST
        if not set(after[1]) <= set(before[1]):
            return [_IMPOSSIBLE] * LONGEST
        found = [self._numbered(each) for each in usual_way(before, after, self.wide)]
        return found + [_NONE] * (LONGEST - len(found))

    def _numbered(self, each: UsualCollective) -> int:
        if each not in self._number:
            self._number[each] = len(self.collectives)
            self.collectives.append(each)
        return self._number[each]


class UsualMoves:
    """The prices of usual ways on a placed mesh."""

    def __init__(self, prices: Prices, mesh: Mesh, ways: UsualWays) -> None:
        self._prices, self._mesh, self._ways = prices, mesh, ways
        self._devices: dict[Axes, int] = {(): 1}
        self._times: dict[tuple[str, Axes, int, int], float] = {}
        self._seconds: dict[tuple[Shape, str], Table] = {}
        self._parts: dict[tuple[Shape, str, State, State], tuple[Part, ...]] = {}
        self._local: dict[tuple[Shape, Dims], Shape] = {}

    def table(self, shape: Shape, dtype: str, befores: Sequence[State], afters: Sequence[State]) -> Table:
        """Seconds of the ways of an array from each state to each; whole values do not become pending
        sums."""
        numbers = self._ways.between(befores, afters)
        seconds = self._priced(shape, dtype, numbers)
        found: Table = seconds[numbers].sum(axis=-1)
        return found

    def parts(self, shape: Shape, dtype: str, before: State, after: State) -> tuple[Part, ...]:
        """The collectives of a way, in order."""
        key = (shape, dtype, before, after)
        if key not in self._parts:
            numbers = self._ways.between((before,), (after,))[0, 0]
            found = (self._ways.collectives[number] for number in numbers)
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

    def _part(self, shape: Shape, dtype: str, each: UsualCollective) -> Part:
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
