"""Resharding: the moves that change how one array is split, their costs, and the cheapest ways through them.

A state is where an array's axes are: the axes of every dimension (major first) and the axes over which it
is still a pending sum. Every move is one operation of JAX inside `shard_map`, over whole mesh axes:

    all_gather    the minor axes of a dimension are dropped; devices concatenate their pieces
    all_to_all    the minor axes of a dimension move to the minor end of another
    ppermute      the same cut of the array, its blocks on other devices
    psum          pending sums are added; everyone gets the total
    psum_scatter  pending sums are added; everyone gets one piece of the total
    slice         an idle axis cuts a dimension further; every device keeps its part, nothing is sent

Only the minor end of a dimension can be gathered or moved: taking the major axis away would leave a device
with rows that are not adjacent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, count, islice, permutations
from typing import NamedTuple

from shardviz.sharding import Mesh, PartitionSpec, array_bytes

MAX_PLACEMENTS = 256
"""Permutes looked at from one state; five axes of the same size have 120 or fewer."""

Axes = tuple[str, ...]
State = tuple[tuple[Axes, ...], Axes]


@dataclass(frozen=True)
class ReshardMove:
    """One operation on one array: see `Step` for `dim`, `shape`, `bytes` and `wire_bytes`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State
    shape: tuple[int, ...]
    bytes: int
    wire_bytes: int


def state_of(spec: PartitionSpec, mesh: Mesh) -> State:
    """A spec as a state; axes of size 1 split nothing and are left out."""

    def wide(axes: Axes) -> Axes:
        return tuple(axis for axis in axes if mesh.axis_size(axis) > 1)

    return tuple(wide(dim) for dim in spec.dims), wide(spec.unreduced)


def spec_of(state: State) -> PartitionSpec:
    dims, unreduced = state
    return PartitionSpec(dims, unreduced)


@dataclass(frozen=True)
class Shards:
    """The pieces of one array under any state: their shapes and bytes, and the moves between states.

    `pool` are the mesh axes that moves may use.
    """

    shape: tuple[int, ...]
    dtype: str
    sizes: dict[str, int]
    pool: Axes

    def local_shape(self, state: State) -> tuple[int, ...]:
        return tuple(-(-size // self._parts(axes)) for size, axes in zip(self.shape, state[0], strict=True))

    def local_bytes(self, state: State) -> int:
        return array_bytes(self.local_shape(state), self.dtype)

    def divides(self, state: State) -> bool:
        """Every dimension is cut into equal parts."""
        return all(size % self._parts(axes) == 0 for size, axes in zip(self.shape, state[0], strict=True))

    def _parts(self, axes: Axes) -> int:
        parts = 1
        for axis in axes:
            parts *= self.sizes[axis]
        return parts

    def move(self, op: str, axes: Axes, dim: int | None, before: State, after: State) -> ReshardMove:
        """The move with its bytes: (N-1)/N of the larger side for a gather, a scatter and an all-to-all,
        twice that for a psum, rounded up; the operand for a ppermute (Chan et al. 2007; see `Step`)."""
        larger = after if op == "all_gather" else before
        shape = self.local_shape(larger)
        size = array_bytes(shape, self.dtype)
        n = self._parts(axes)
        if op == "slice":
            wire = 0
        elif op == "ppermute":
            wire = size
        else:
            wire = -(-(2 if op == "psum" else 1) * size * (n - 1) // n)
        return ReshardMove(op, axes, dim, before, after, shape, size, wire)

    def moves(self, state: State) -> Iterator[ReshardMove]:
        """Every move from `state` to a state that cuts the dimensions into equal parts."""
        kinds = (self._slices, self._reductions, self._gathers, self._exchanges, self._permutes)
        return (move for kind in kinds for move in kind(state) if self.divides(move.after))

    def _slices(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        used = {axis for axes in dims for axis in axes}.union(unreduced)
        idle = [axis for axis in self.pool if axis not in used]
        for dim in range(len(dims)):
            for axis in idle:
                yield self.move(
                    "slice", (axis,), dim, state, (with_axes(dims, dim, (*dims[dim], axis)), unreduced)
                )

    def _reductions(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for size in range(1, len(unreduced) + 1):
            for axes in combinations(unreduced, size):
                rest = tuple(axis for axis in unreduced if axis not in axes)
                yield self.move("psum", axes, None, state, (dims, rest))
                for ordered in permutations(axes):
                    for dim in range(len(dims)):
                        after = (with_axes(dims, dim, dims[dim] + ordered), rest)
                        yield self.move("psum_scatter", ordered, dim, state, after)

    def _gathers(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for dim, axes in enumerate(dims):
            for cut in range(len(axes)):
                after = (with_axes(dims, dim, axes[:cut]), unreduced)
                yield self.move("all_gather", axes[cut:], dim, state, after)

    def _exchanges(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for source, axes in enumerate(dims):
            for cut in range(len(axes)):
                shorter = with_axes(dims, source, axes[:cut])
                for target in range(len(dims)):
                    if target != source:
                        after = (with_axes(shorter, target, dims[target] + axes[cut:]), unreduced)
                        yield self.move("all_to_all", axes[cut:], source, state, after)

    def _permutes(self, state: State) -> Iterator[ReshardMove]:
        """Moves to every other placement of axes that cuts each dimension into as many parts."""
        dims, unreduced = state
        free = tuple(axis for axis in self.pool if axis not in unreduced)
        wanted = tuple(self._parts(axes) for axes in dims)
        for placed in islice(self._placements(wanted, free), MAX_PLACEMENTS):
            if placed != dims:
                changed = [
                    axis for old, new in zip(dims, placed, strict=True) if old != new for axis in old + new
                ]
                axes = tuple(axis for axis in self.sizes if axis in changed)
                yield self.move("ppermute", axes, None, state, (placed, unreduced))

    def _placements(self, wanted: tuple[int, ...], free: Axes) -> Iterator[tuple[Axes, ...]]:
        if not wanted:
            yield ()
            return
        for axes in self._products(wanted[0], free):
            left = tuple(axis for axis in free if axis not in axes)
            for rest in self._placements(wanted[1:], left):
                yield (axes, *rest)

    def _products(self, parts: int, free: Axes) -> Iterator[Axes]:
        """Every sequence of different axes whose sizes multiply to `parts`."""
        if parts == 1:
            yield ()
            return
        for axis in free:
            if parts % self.sizes[axis] == 0:
                left = tuple(other for other in free if other != axis)
                for rest in self._products(parts // self.sizes[axis], left):
                    yield (axis, *rest)


def with_axes(dims: tuple[Axes, ...], dim: int, axes: Axes) -> tuple[Axes, ...]:
    """The axes of every dimension, with others for one of them."""
    return (*dims[:dim], axes, *dims[dim + 1 :])


EXACT_AXES = 3
"""Up to so many axes to move, the path is the cheapest. With more it is a good one: the number of states
grows with the factorial of the axes."""


class PathCost(NamedTuple):
    """The cost of moves, compared in this order: bytes on the wire, collectives, local slices."""

    wire_bytes: int = 0
    collectives: int = 0
    slices: int = 0

    def after(self, move: ReshardMove) -> PathCost:
        """The cost with one move more."""
        is_slice = move.op == "slice"
        return PathCost(
            self.wire_bytes + move.wire_bytes, self.collectives + (not is_slice), self.slices + is_slice
        )


Path = tuple[PathCost, tuple[ReshardMove, ...]]


@dataclass
class Reshards:
    """Cheapest paths between states of arrays on one mesh; `sizes` are the devices along each axis.

    Axes that stay where they are, at the major end of a dimension or pending, take no part in a search:
    what is left is a smaller array under fewer axes, and many questions share it.
    """

    sizes: dict[str, int]
    _searches: dict[tuple[tuple[int, ...], str, Axes, State], PathSearch] = field(default_factory=dict)
    _paths: dict[tuple[tuple[int, ...], str, State, State], Path] = field(default_factory=dict)

    def path(self, shape: tuple[int, ...], dtype: str, start: State, goal: State) -> Path:
        """The cost and the moves from `start` to `goal` of an array with that global shape."""
        if start == goal:
            return PathCost(), ()
        key = (shape, dtype, start, goal)
        if key not in self._paths:
            self._paths[key] = self._find(shape, dtype, start, goal)
        return self._paths[key]

    def bound(self, shape: tuple[int, ...], dtype: str, start: State, goal: State) -> int:
        """Wire bytes that no path can save: what a device does not yet hold, and the sums it lacks."""
        shards = Shards(shape, dtype, self.sizes, ())
        held, needed = shards.local_bytes(start), shards.local_bytes(goal)
        n = 1
        for axis in start[1]:
            n *= 1 if axis in goal[1] else self.sizes[axis]
        return needed * (n - 1) // n if n > 1 else max(0, needed - held)

    def _find(self, shape: tuple[int, ...], dtype: str, start: State, goal: State) -> Path:
        fixed = tuple(_common(old, new) for old, new in zip(start[0], goal[0], strict=True))
        pending = tuple(axis for axis in start[1] if axis in goal[1])
        whole = Shards(shape, dtype, self.sizes, ())
        inner_shape = whole.local_shape((fixed, ()))
        inner_start, inner_goal = _inside(start, fixed, pending), _inside(goal, fixed, pending)
        named = {axis for dims, left in (inner_start, inner_goal) for axes in (*dims, left) for axis in axes}
        pool = tuple(axis for axis in self.sizes if axis in named)
        inner = Shards(inner_shape, dtype, self.sizes, pool)
        if len(pool) <= EXACT_AXES:
            key = (inner_shape, dtype, pool, inner_start)
            moves = self._searches.setdefault(key, PathSearch(inner, inner_start)).to(inner_goal)
        else:
            moves = _greedy(inner, inner_start, inner_goal)
        cost = reduce(PathCost.after, moves, PathCost())
        return cost, tuple(
            whole.move(
                m.op, m.axes, m.dim, _outside(m.before, fixed, pending), _outside(m.after, fixed, pending)
            )
            for m in moves
        )


class PathSearch:
    """All cheapest paths from one state of an array, found as they are asked for (Dijkstra's algorithm).

    `to` resumes where the last question left off, so that asking for many goals from one start costs
    one search.
    """

    def __init__(self, shards: Shards, start: State) -> None:
        self._shards, self._start = shards, start
        self._best: dict[State, tuple[PathCost, ReshardMove | None]] = {start: (PathCost(), None)}
        self._heap = [(PathCost(), 0, start)]
        self._settled: set[State] = set()
        self._pushed = count(1)

    def to(self, goal: State) -> tuple[ReshardMove, ...]:
        """The moves of a cheapest path to `goal`."""
        while goal not in self._settled:
            if not self._heap:
                return _plain(self._shards, self._start, goal)
            cost, _, state = heapq.heappop(self._heap)
            if state not in self._settled:
                self._settled.add(state)
                self._leave(state, cost)
        path: list[ReshardMove] = []
        state = goal
        while (move := self._best[state][1]) is not None:
            path.append(move)
            state = move.before
        return tuple(reversed(path))

    def _leave(self, state: State, cost: PathCost) -> None:
        for move in self._shards.moves(state):
            reached = cost.after(move)
            known = self._best.get(move.after)
            if known is None or reached < known[0]:
                self._best[move.after] = (reached, move)
                heapq.heappush(self._heap, (reached, next(self._pushed), move.after))


def _greedy(shards: Shards, start: State, goal: State) -> tuple[ReshardMove, ...]:
    """Moves that each bring axes into place, the fewest bytes for each first; the plain way from where
    none does."""
    path: list[ReshardMove] = []
    state = start
    while state != goal:
        left = _out_of_place(state, goal)
        options: list[tuple[float, int, int, ReshardMove]] = []
        for move in shards.moves(state):
            gain = left - _out_of_place(move.after, goal)
            if gain > 0:
                options.append((move.wire_bytes / gain, -gain, len(options), move))
        if not options:
            return (*path, *_plain(shards, state, goal))
        move = min(options)[-1]
        path.append(move)
        state = move.after
    return tuple(path)


def _out_of_place(state: State, goal: State) -> int:
    """The number of axes that are not where the goal has them, or have one before them that is not."""
    misplaced = 2 * sum(axis not in goal[1] for axis in state[1])
    for held, wanted in zip(state[0], goal[0], strict=True):
        same = len(_common(held, wanted))
        misplaced += 2 * len(held[same:]) + len(wanted[same:])
    return misplaced


def _plain(shards: Shards, start: State, goal: State) -> tuple[ReshardMove, ...]:
    """The moves that reduce, gather everything, and slice: seldom the cheapest, always possible."""
    moves: list[ReshardMove] = []
    dims, pending = start

    def take(op: str, axes: Axes, dim: int | None, after: State) -> State:
        moves.append(shards.move(op, axes, dim, (dims, pending), after))
        return after

    if pending:
        dims, pending = take("psum", pending, None, (dims, ()))
    for dim, held in enumerate(dims):
        if held:
            dims, pending = take("all_gather", held, dim, (with_axes(dims, dim, ()), pending))
    for dim, wanted in enumerate(goal[0]):
        for axis in wanted:
            after = (with_axes(dims, dim, (*dims[dim], axis)), pending)
            dims, pending = take("slice", (axis,), dim, after)
    return tuple(moves)


def _common(old: Axes, new: Axes) -> Axes:
    """The axes with which both begin."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return old[:same]


def _inside(state: State, fixed: tuple[Axes, ...], pending: Axes) -> State:
    dims = tuple(axes[len(kept) :] for axes, kept in zip(state[0], fixed, strict=True))
    return dims, tuple(axis for axis in state[1] if axis not in pending)


def _outside(state: State, fixed: tuple[Axes, ...], pending: Axes) -> State:
    dims = tuple(kept + axes for kept, axes in zip(fixed, state[0], strict=True))
    return dims, tuple(sorted((*pending, *state[1])))
