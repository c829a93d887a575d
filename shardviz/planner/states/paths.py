"""The moves of one array between its states: the cheapest ones, and over many axes direct ones.

Every search (A*: Hart, Nilsson and Raphael 1968) goes from a state that is asked for to where the array comes
from, or goes, led by what a `Relaxation` says is left. A state's moves are listed in stages, and those of a
stage only when nothing on the heap is cheaper than the least of them: A[X, Y] over three axes has 3 slices,
and hundreds of all-to-alls and permutes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from itertools import count, takewhile
from operator import itemgetter
from typing import NamedTuple

from shardviz.planner.states.moves import (
    EXCHANGES,
    STAGES,
    Axes,
    Dims,
    Node,
    PathMove,
    State,
    StateMove,
    StateSpace,
    remembered,
)
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices
from shardviz.planner.states.relaxation import Relaxation
from shardviz.sharding import array_bytes

MOST_SOURCES = 12
"""The cheapest states of an intermediate that direct moves start from."""
_EXCHANGE = 2
"""The stage of all-to-alls, which are followed by the axes that they move, each group when it is its turn."""
_SOURCE, _END = -1, -2
"""What else may wait beside a stage of moves: a source whose cost is to be found, and the end of a path."""


class ArrayKind(NamedTuple):
    """An array as the prices of its moves depend on it. `uneven` are the splits of its dimensions that may
    leave parts of different sizes, because somebody gives or wants them: (dimension, axes)."""

    shape: tuple[int, ...]
    dtype: str
    uneven: frozenset[tuple[int, Axes]] = frozenset()


class CheapestPaths:
    """The cheapest moves of an array from where it is to any state, or from any state to where it may end,
    each found on its own.

    `sources` are the states in which the array can be to begin with, with what that has cost. With
    `ends_pending` the search runs backward: the sources are states in which the array may end, and the costs
    those of the moves from a state to there, over which axes sums may be pending on the way. `exact` finds
    the costs of the sources, for which `sources` has bounds then; None where one is not less than a limit.
    `allows` says which moves may be taken, by the states before and after them."""

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
        exact: Callable[[State, Cost], Cost | None] | None = None,
        allows: Callable[[Node, Node], bool] | None = None,
    ) -> None:
        self.kind, self._space, self._prices = kind, space, prices
        self._is_forward = ends_pending is None
        self.sources = {space.node(state): cost for state, cost in sources.items()}
        self.pending = frozenset().union(
            *space.made_pending.values(), (axis for _, pending in sources for axis in pending)
        )
        # Over which axes sums may be pending before the array is in a state.
        before = self.pending if ends_pending is None else ends_pending
        self._pending_before = tuple(axis for axis in space.sizes if axis in before)
        self._exact, self._allows = exact, allows
        self._known: dict[Node, Cost] = {}
        self._next: dict[Node, tuple[tuple[PathMove, ...], Node]] = {}
        self._at_least: dict[Node, Cost] = {}

    @cached_property
    def relaxation(self) -> Relaxation:
        """The least cost of the moves to or from each state."""
        whole = array_bytes(self.kind.shape, self.kind.dtype)
        key = (self._space, whole, self._pending_before, self._is_forward, *self.sources.items())
        relaxation: Relaxation | None = self._prices.bounds.get(key)
        if relaxation is None:
            relaxation = self._prices.bounds[key] = Relaxation(
                self._space, self._prices, whole, self.sources, self._pending_before, forward=self._is_forward
            )
        return relaxation

    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        """The cost of having the array in a state; None where no moves lead to it for less than `limit`."""
        node, limit = self._space.node(state), UNREACHABLE if limit is None else limit
        match = self._known.get(node)
        if match is None and self._at_least.get(node, 0) < limit and self._fits(node):
            match = self._search(node, limit)
        return None if match is None or match >= limit else match

    def least(self, state: State, limit: Cost = UNREACHABLE) -> Cost:
        """The cost of a state, where it is known; else the state costs no less. From a limit on there may be
        more to it."""
        node = self._space.node(state)
        cost = self._known.get(node)
        return max(self.relaxation.least(node, limit), self._at_least.get(node, 0)) if cost is None else cost

    def least_in_any_order(self, state: State, limit: Cost = UNREACHABLE) -> Cost:
        """No state costs less that has the axes of each dimension in some order."""
        return self.relaxation.least_in_any_order(self._space.node(state), limit)

    def added(self, state: State) -> Cost:
        """The cost of the moves to a state whose cost has been found, without that of their source."""
        node = goal = self._space.node(state)
        while node in self._next:
            node = self._next[node][1]
        return self._known[goal] - self._known[node]

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        """The source of a path to a state, and its moves, or backward. Raises `KeyError` for none."""
        if self.cost(state) is None:
            raise KeyError(state)
        node, moves = self._space.node(state), tuple[PathMove, ...]()
        while node in self._next:
            own, node = self._next[node]
            moves = own + moves if self._is_forward else moves + own
        return node.state, moves

    def local_bytes(self, state: State) -> int:
        """The bytes of a device's piece of the array in a state."""
        return self._local_bytes(self._space.node(state).parts)

    @remembered
    def _local_bytes(self, parts: tuple[int, ...]) -> int:
        shape = [-(-size // count) for size, count in zip(self.kind.shape, parts, strict=True)]
        return array_bytes(shape, self.kind.dtype)

    @remembered
    def _fits(self, node: Node) -> bool:
        """Every dimension is cut into equal parts, or as somebody has it."""
        return all(
            size % parts == 0 or (dim, node.state[0][dim]) in self.kind.uneven
            for dim, (size, parts) in enumerate(zip(self.kind.shape, node.parts, strict=True))
        )

    def _search(self, start: Node, limit: Cost) -> Cost | None:
        left = self.relaxation.least
        first = left(start, limit)
        numbers = count()
        heap = [(first, first, next(numbers), start, 0)]
        costs: dict[Node, Cost] = {start: 0}
        came: dict[Node, tuple[Node, StateMove]] = {}
        done: set[Node] = set()
        while heap:
            total, rest, _, node, stage = heapq.heappop(heap)
            if total >= limit:
                break
            cost = costs[node]
            if stage == _END:
                return self._trace(node, total, costs, came)
            if stage == _SOURCE:
                initial = self.sources[node] if self._exact is None else self._exact(node.state, limit - cost)
                if initial is not None:
                    heapq.heappush(heap, (cost + initial, 0, next(numbers), node, _END))
                continue
            if stage == 0:
                if node in done:
                    continue
                done.add(node)
                known = self._known.get(node)
                if known is not None:
                    heapq.heappush(heap, (cost + known, 0, next(numbers), node, _END))
                    continue
                if node in self.sources:
                    heapq.heappush(heap, (cost + self.sources[node], 0, next(numbers), node, _SOURCE))
            if stage in (0, _EXCHANGE):
                rest_of, stages = limit - cost, range(1, len(STAGES))
                later_stages = ((later, self.relaxation.least_by(node, later, rest_of)) for later in stages)
                for later, least in self._groups(node, rest_of) if stage else later_stages:
                    bound = max(total, cost + least)
                    if bound < limit:
                        heapq.heappush(heap, (bound, rest, next(numbers), node, later))
                if stage:
                    continue
            for added, move in self._moves(node, stage):
                other = move.other
                reached = cost + added
                known = costs.get(other)
                if other in done or (known is not None and known <= reached):
                    continue
                if reached >= limit or reached + (more := left(other, limit - reached)) >= limit:
                    continue
                costs[other], came[other] = reached, (node, move)
                heapq.heappush(heap, (reached + more, more, next(numbers), other, 0))
        self._at_least[start] = limit
        return None

    def _groups(self, node: Node, limit: Cost) -> Iterator[tuple[int, Cost]]:
        """The groups of axes that an all-to-all may move, and what a way by each costs at least."""
        size, is_even = self._local_bytes(node.parts), not self.kind.uneven
        for stage, (_, axes, _) in enumerate(self._space.shortened(node), EXCHANGES):
            least: Cost = 0
            if is_even:
                least = self._prices.move_in_any_order("all_to_all", self._space.whole(axes), size, size)
            if least < limit:
                yield stage, least + self.relaxation.least_after_exchange(node, axes, limit - least)

    def _moves(self, node: Node, stage: int) -> list[tuple[Cost, StateMove]]:
        """The moves between a state and those that are nearer to the sources, with their costs."""
        moves = self._space.moves(node, stage, self._pending_before if self._is_forward else None)
        fits, bytes_of, price, allows = self._fits, self._local_bytes, self._prices.move, self._allows
        self._prices.look(len(moves))
        own, priced = bytes_of(node.parts), []
        for move in moves:
            both = (move.other, node) if self._is_forward else (node, move.other)
            if fits(move.other) and (allows is None or allows(*both)):
                size = bytes_of(move.other.parts)
                ends = (size, own) if self._is_forward else (own, size)
                priced.append((price(move.op, move.axes, *ends), move))
        return priced

    def _trace(
        self, node: Node, total: Cost, costs: Mapping[Node, Cost], came: Mapping[Node, tuple[Node, StateMove]]
    ) -> Cost:
        """Note the costs along a path that has been found."""
        while True:
            self._known[node] = total - costs[node]
            if node not in came:
                return total
            before, move = came[node]
            ends = (before.state, node.state)
            moved = PathMove(move.op, move.axes, move.dim, *(ends[::-1] if self._is_forward else ends))
            self._next[before] = (moved,), node
            node = before


class FreePaths(CheapestPaths):
    """An array that is in every state already: somebody else is charged for its moves."""

    def __init__(self, space: StateSpace, kind: ArrayKind, prices: Prices) -> None:
        super().__init__(space, kind, prices, {})
        self.pending = frozenset(space.sizes)

    def cost(self, state: State, limit: Cost | None = None) -> Cost:  # noqa: ARG002 - the same of all states
        return 0

    least = least_in_any_order = added = cost


class DirectPaths(CheapestPaths):
    """One way between each two states, maybe not the cheapest, over more axes than can be searched."""

    def least(self, state: State, limit: Cost = UNREACHABLE) -> Cost:  # noqa: ARG002 - each is found once
        cost = self.cost(state)
        return UNREACHABLE if cost is None else cost

    def least_in_any_order(self, state: State, limit: Cost = UNREACHABLE) -> Cost:  # noqa: ARG002 - unknown
        return 0

    @cached_property
    def _cheapest(self) -> list[tuple[Cost, Node]]:
        """The sources to start from, each as a node of its own, with their costs, which grow."""
        costs = (
            (cost if self._exact is None else self._exact(node.state, UNREACHABLE), node)
            for node, cost in self.sources.items()
        )
        known = [(cost, Node(node.state, self._space.sizes)) for cost, node in costs if cost is not None]
        return sorted(known, key=itemgetter(0))[:MOST_SOURCES]

    @remembered
    def _fits(self, node: Node) -> bool:  # noqa: ARG002 - larger pieces are padded
        return True

    def _search(self, start: Node, limit: Cost) -> Cost:  # noqa: ARG002 - each is found once
        best = UNREACHABLE
        for cost, source in self._cheapest:
            if cost >= best:
                break
            ends = (source.state, start.state) if self._is_forward else (start.state, source.state)
            moves = direct_moves(self._space, *ends)
            total = cost
            for move in moves:
                sizes = map(self.local_bytes, (move.before, move.after))
                total += self._prices.move(move.op, move.axes, *sizes)
            if total < best:
                best, self._next[start], self._known[source] = total, (moves, source), cost
        self._known[start] = best
        return best


# Direct moves, without a search. Until the goal is reached, the first operation of this list is taken that
# brings axes to where they are wanted, and never away again:
#
#     slice         idle axes cut dimensions further: what is moved after that is smaller
#     psum_scatter  pending sums are added into the pieces that are wanted
#     ppermute      the same cut of the array, its blocks where they are wanted
#     all_to_all    minor axes move to the dimensions that are to have them
#     psum          the other sums that are pending and not wanted so are added
#     all_gather    what no other operation brings to its place is given up, and cut again: of a dimension
#                   that is in the way of an all_to_all, or else of all dimensions at once
#     mask          whole copies become the pending sums that are wanted
#
# So A[X, Y] → A[_, (Y, X)] over axes of 2 and 4 devices is one all_to_all of X, and A[X, Y] → A[Y, X] gathers
# one of them, moves the other, and cuts.


def direct_moves(space: StateSpace, start: State, goal: State) -> tuple[PathMove, ...]:
    moves: list[PathMove] = []
    state = start
    while state != goal:
        move = next_move(space, state, goal)
        moves.append(move)
        state = move.after
    return tuple(moves)


def next_move(space: StateSpace, state: State, goal: State) -> PathMove:
    (dims, pending), (wanted, kept) = state, goal

    def move(op: str, axes: Axes, dim: int | None, after: Dims, left: Axes = pending) -> PathMove:
        return PathMove(op, space.whole(axes), dim, state, (after, left))

    extra = tuple(axis for axis in space.sizes if axis in pending and axis not in kept)
    used = {axis for axes in (*dims, pending) for axis in axes}
    for op in ("slice", "psum_scatter"):
        free = extra if op == "psum_scatter" else [axis for axis in space.sizes if axis not in used]
        after = tuple(_appended(old, new, free) for old, new in zip(dims, wanted, strict=True))
        if after != dims:
            first = next(dim for dim, axes in enumerate(after) if axes != dims[dim])
            added = tuple(axis for old, new in zip(dims, after, strict=True) for axis in new[len(old) :])
            return move(op, added, first, after, tuple(axis for axis in pending if axis not in added))
    held, needed = space.node(state), space.node((wanted, pending))
    needed_axes = {axis for axis, _, _ in needed.places}
    if dims != wanted and held.parts == needed.parts and not needed_axes.intersection(pending):
        changed = {axis for axis, _, _ in held.places ^ needed.places}
        return move("ppermute", tuple(axis for axis in space.sizes if axis in changed), None, wanted)
    # The number of axes with which each dimension and its goal begin.
    common = [
        len([*takewhile(lambda both: both[0] == both[1], zip(old, new, strict=False))])
        for old, new in zip(dims, wanted, strict=True)
    ]
    in_the_way = None
    for source, axes in enumerate(dims):
        for cut in range(common[source], len(axes)):
            target = _target(axes[cut:], source, common, wanted)
            if target is not None and common[target] == len(dims[target]):
                own = wanted[target][: common[target] + len(axes) - cut]
                moved = [*dims]
                moved[source], moved[target] = axes[:cut], own
                return move("all_to_all", axes[cut:], source, tuple(moved))
            in_the_way = target if in_the_way is None else in_the_way
    if extra:
        return move("psum", extra, None, dims, tuple(axis for axis in pending if axis not in extra))
    lost = [dim for dim, axes in enumerate(dims) if len(axes) > common[dim] and in_the_way in (None, dim)]
    if lost:
        after = tuple(axes[: common[dim]] if dim in lost else axes for dim, axes in enumerate(dims))
        return move(
            "all_gather", tuple(axis for dim in lost for axis in dims[dim][common[dim] :]), lost[0], after
        )
    return move("mask", tuple(axis for axis in kept if axis not in pending), None, dims, kept)


def _appended(old: Axes, new: Axes, free: Collection[str]) -> Axes:
    """The axes of a dimension with those behind them that are wanted next, as far as they are free."""
    if new[: len(old)] != old:
        return old
    end = len(old)
    while end < len(new) and new[end] in free:
        end += 1
    return new[:end]


def _target(moved: Axes, source: int, common: list[int], wanted: Dims) -> int | None:
    """The dimension that is to have these axes next."""
    for dim, axes in enumerate(wanted):
        if dim != source and {*axes[common[dim] : common[dim] + len(moved)]} == {*moved}:
            return dim
    return None
