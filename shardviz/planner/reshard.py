"""The cheapest way to bring one array from one sharding to another."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from shardviz.planner.moves import Axes, ReshardMove, Shards, State

EXACT_AXES = 3
"""Up to so many axes to move, the path is the cheapest. With more it is a good one: the number of states
grows with the factorial of the axes."""


@dataclass(frozen=True, order=True)
class PathCost:
    """The cost of moves, compared in this order: bytes on the wire, collectives, local slices."""

    wire_bytes: int = 0
    collectives: int = 0
    slices: int = 0

    def __add__(self, other: PathCost) -> PathCost:
        return PathCost(
            self.wire_bytes + other.wire_bytes,
            self.collectives + other.collectives,
            self.slices + other.slices,
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
        inner_start, inner_goal = _without(start, fixed, pending), _without(goal, fixed, pending)
        named = {axis for dims, left in (inner_start, inner_goal) for axes in (*dims, left) for axis in axes}
        pool = tuple(axis for axis in self.sizes if axis in named)
        inner = Shards(inner_shape, dtype, self.sizes, pool)
        if len(pool) <= EXACT_AXES:
            key = (inner_shape, dtype, pool, inner_start)
            moves = self._searches.setdefault(key, PathSearch(inner, inner_start)).to(inner_goal)
        else:
            moves = _greedy(inner, inner_start, inner_goal)
        cost = sum(map(_cost, moves), start=PathCost())
        return cost, tuple(
            whole.move(m.op, m.axes, m.dim, _with(m.before, fixed, pending), _with(m.after, fixed, pending))
            for m in moves
        )


@dataclass
class PathSearch:
    """All cheapest paths from one state of an array, found as they are asked for (Dijkstra's algorithm).

    `to` resumes where the last question left off, so that asking for many goals from one start costs
    one search.
    """

    shards: Shards
    start: State
    _best: dict[State, tuple[PathCost, ReshardMove | None]] = field(init=False)
    _heap: list[tuple[PathCost, int, State]] = field(init=False)
    _settled: set[State] = field(init=False, default_factory=set)
    _pushed: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._best = {self.start: (PathCost(), None)}
        self._heap = [(PathCost(), 0, self.start)]

    def to(self, goal: State) -> tuple[ReshardMove, ...]:
        """The moves of a cheapest path to `goal`."""
        while goal not in self._settled:
            if not self._heap:
                return _plain(self.shards, self.start, goal)
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
        for move in self.shards.moves(state):
            reached = cost + _cost(move)
            known = self._best.get(move.after)
            if known is None or reached < known[0]:
                self._best[move.after] = (reached, move)
                self._pushed += 1
                heapq.heappush(self._heap, (reached, self._pushed, move.after))


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
    count = 2 * sum(axis not in goal[1] for axis in state[1])
    for held, wanted in zip(state[0], goal[0], strict=True):
        same = len(_common(held, wanted))
        count += 2 * len(held[same:]) + len(wanted[same:])
    return count


def _plain(shards: Shards, start: State, goal: State) -> tuple[ReshardMove, ...]:
    """Reduce, gather everything, slice: seldom cheapest, always possible."""
    moves: list[ReshardMove] = []
    dims, pending = start

    def take(op: str, axes: Axes, dim: int | None, after: State) -> State:
        moves.append(shards.move(op, axes, dim, (dims, pending), after))
        return after

    if pending:
        dims, pending = take("psum", pending, None, (dims, ()))
    for dim, held in enumerate(dims):
        if held:
            dims, pending = take("all_gather", held, dim, ((*dims[:dim], (), *dims[dim + 1 :]), pending))
    for dim, wanted in enumerate(goal[0]):
        for axis in wanted:
            after = (*dims[:dim], (*dims[dim], axis), *dims[dim + 1 :])
            dims, pending = take("slice", (axis,), dim, (after, pending))
    return tuple(moves)


def _cost(move: ReshardMove) -> PathCost:
    return PathCost(move.wire_bytes, int(move.op != "slice"), int(move.op == "slice"))


def _common(old: Axes, new: Axes) -> Axes:
    """The axes with which both begin."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return old[:same]


def _without(state: State, fixed: tuple[Axes, ...], pending: Axes) -> State:
    dims = tuple(axes[len(kept) :] for axes, kept in zip(state[0], fixed, strict=True))
    return dims, tuple(axis for axis in state[1] if axis not in pending)


def _with(state: State, fixed: tuple[Axes, ...], pending: Axes) -> State:
    dims = tuple(kept + axes for kept, axes in zip(fixed, state[0], strict=True))
    return dims, tuple(sorted((*pending, *state[1])))
