"""The moves of one array between its states: the cheapest ones (A*), and over many axes direct ones.

Of the many states that an array over four or five axes has few are asked for. Every search goes from such a
state to where the array comes from, or goes, led by what a `Relaxation` says is left (Hart, Nilsson and
Raphael, "A Formal Basis for the Heuristic Determination of Minimum Cost Paths", 1968). The bound never falls
by more than a move costs, so a state that is taken from the heap has its least cost.

A state's moves are listed in stages, and those of a stage only when nothing on the heap is cheaper than the
least of them: A[X, Y] over three axes has 3 slices, and hundreds of all-to-alls and permutes, which are
seldom asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import count
from operator import itemgetter
from typing import NamedTuple

from shardviz.planner.states.direct_moves import direct_moves
from shardviz.planner.states.moves import (
    EXCHANGES,
    STAGES,
    Axes,
    Node,
    PathMove,
    State,
    StateMove,
    StateSpace,
)
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices
from shardviz.planner.states.relaxation import Relaxation
from shardviz.sharding import array_bytes

MOST_SOURCES = 12
"""The cheapest states of an intermediate that direct moves start from."""
_LATER = range(1, len(STAGES))
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
    those of the moves from a state to there, over which axes sums may be pending on the way.

    Where `exact` is given, it finds the costs of the sources, for which `sources` has bounds; None where one
    is not less than a limit. A search that has listed `most_moves` gives up, as if nothing led there. Where
    `allows` is given, it says which moves may be taken, by the states before and after them.
    """

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
        exact: Callable[[State, Cost], Cost | None] | None = None,
        most_moves: int | None = None,
        allows: Callable[[Node, Node], bool] | None = None,
    ) -> None:
        self.kind, self._space, self._prices = kind, space, prices
        self._is_forward = ends_pending is None
        self._bytes: dict[tuple[int, ...], int] = {}
        self._fitting: dict[Node, bool] = {}
        self.sources = {space.node(state): cost for state, cost in sources.items()}
        self.pending = space.may_mask.union(axis for _, pending in sources for axis in pending)
        # Over which axes sums may be pending before the array is in a state.
        before = self.pending if ends_pending is None else ends_pending
        self._pending_before = tuple(axis for axis in space.sizes if axis in before)
        self._exact, self._most_moves, self._allows = exact, most_moves, allows
        self._known: dict[Node, Cost] = {}
        self._next: dict[Node, tuple[tuple[PathMove, ...], Node]] = {}
        self._at_least: dict[Node, Cost] = {}

    @cached_property
    def relaxation(self) -> Relaxation:
        """The least cost of the moves to or from each state."""
        whole = array_bytes(self.kind.shape, self.kind.dtype)
        key = (self._space, whole, self._pending_before, self._is_forward, *self.sources.items())
        found: Relaxation | None = self._prices.bounds.get(key)
        if found is None:
            found = self._prices.bounds[key] = Relaxation(
                self._space, self._prices, whole, self.sources, self._pending_before, forward=self._is_forward
            )
        return found

    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        """The cost of having the array in a state; None where no moves lead to it, or none for less than
        `limit`."""
        node, limit = self._space.node(state), UNREACHABLE if limit is None else limit
        found = self._known.get(node)
        if found is None and self._at_least.get(node, 0) < limit and self._fits(node):
            found = self._search(node, limit)
        return None if found is None or found >= limit else found

    def least(self, state: State) -> Cost:
        """The cost of a state, where it is known; else the state costs no less."""
        node = self._space.node(state)
        found = self._known.get(node)
        return max(self.relaxation.least(node), self._at_least.get(node, 0)) if found is None else found

    def least_in_any_order(self, state: State) -> Cost:
        """No state costs less that has the axes of each dimension in some order."""
        return self.relaxation.least_in_any_order(self._space.node(state))

    def added(self, state: State) -> Cost:
        """The cost of the moves to a state whose cost has been found, without that of their source."""
        node = goal = self._space.node(state)
        while node in self._next:
            node = self._next[node][1]
        return self._known[goal] - self._known[node]

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        """The source of a path to a state, and the moves from there, or backward to there. Raises `KeyError`
        where there is none."""
        if self.cost(state) is None:
            raise KeyError(state)
        node, moves = self._space.node(state), tuple[PathMove, ...]()
        while node in self._next:
            own, node = self._next[node]
            moves = own + moves if self._is_forward else moves + own
        return node.state, moves

    def local_bytes(self, state: State) -> int:
        """The bytes of a device's piece of the array in a state."""
        return self._local_bytes(self._space.node(state))

    def _local_bytes(self, node: Node) -> int:
        found = self._bytes.get(node.parts)
        if found is None:
            shape = [-(-size // parts) for size, parts in zip(self.kind.shape, node.parts, strict=True)]
            found = self._bytes[node.parts] = array_bytes(shape, self.kind.dtype)
        return found

    def _fits(self, node: Node) -> bool:
        """Every dimension is cut into equal parts, or as somebody has it."""
        found = self._fitting[node] = all(
            size % parts == 0 or (dim, node.state[0][dim]) in self.kind.uneven
            for dim, (size, parts) in enumerate(zip(self.kind.shape, node.parts, strict=True))
        )
        return found

    def _search(self, start: Node, limit: Cost) -> Cost | None:
        """The cost of a state; None where it is not less than a limit."""
        left, bounds = self.relaxation.least, self.relaxation.known
        first = left(start)
        numbers = count()
        heap = [(first, first, next(numbers), start, 0)]
        costs: dict[Node, Cost] = {start: 0}
        came: dict[Node, tuple[Node, StateMove]] = {}
        done: set[Node] = set()
        listed = 0
        while heap:
            total, rest, _, node, stage = heapq.heappop(heap)
            if total >= limit or (self._most_moves is not None and listed > self._most_moves):
                break
            cost = costs[node]
            if stage == _END:
                return self._trace(node, total, costs, came)
            if stage == _SOURCE:
                found = self.sources[node] if self._exact is None else self._exact(node.state, limit - cost)
                if found is not None:
                    heapq.heappush(heap, (cost + found, 0, next(numbers), node, _END))
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
                later_stages = ((later, self.relaxation.least_by(node, later)) for later in _LATER)
                for later, least in self._groups(node) if stage else later_stages:
                    bound = max(total, cost + least)
                    if bound < limit:
                        heapq.heappush(heap, (bound, rest, next(numbers), node, later))
                if stage:
                    continue
            moves = self._moves(node, stage)
            listed += len(moves)
            for added, move in moves:
                other = move.other
                reached = cost + added
                known = costs.get(other)
                if other in done or (known is not None and known <= reached):
                    continue
                more = bounds.get(other)
                if more is None:
                    more = left(other)
                if reached + more >= limit:
                    continue
                costs[other], came[other] = reached, (node, move)
                heapq.heappush(heap, (reached + more, more, next(numbers), other, 0))
        self._at_least[start] = limit
        return None

    def _groups(self, node: Node) -> Iterator[tuple[int, Cost]]:
        """The groups of axes that an all-to-all may move, each a stage of its own, and what a way by one of
        them costs at least."""
        size, is_even = self._local_bytes(node), not self.kind.uneven
        for stage, axes in enumerate(self._space.exchange_groups(node), EXCHANGES):
            least = self.relaxation.least_after_exchange(node, axes)
            if is_even:
                least += self._prices.move_in_any_order("all_to_all", self._space.whole(axes), size, size)
            yield stage, least

    def _moves(self, node: Node, stage: int) -> list[tuple[Cost, StateMove]]:
        """The moves between a state and those that are nearer to the sources, with their costs."""
        moves = self._space.moves(node, stage, self._pending_before if self._is_forward else None)
        if (allows := self._allows) is not None:
            forward = self._is_forward
            moves = tuple(
                move for move in moves if (allows(move.other, node) if forward else allows(node, move.other))
            )
        own, price = self._local_bytes(node), self._prices.move
        found = []
        for move in moves:
            other = move.other
            fits = self._fitting.get(other)
            if not (self._fits(other) if fits is None else fits):
                continue
            size = self._bytes.get(other.parts)
            if size is None:
                size = self._local_bytes(other)
            ends = (size, own) if self._is_forward else (own, size)
            found.append((price(move.op, move.axes, *ends), move))
        return found

    def _trace(
        self,
        node: Node,
        total: Cost,
        costs: Mapping[Node, Cost],
        came: Mapping[Node, tuple[Node, StateMove]],
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

    def least(self, state: State) -> Cost:  # noqa: ARG002
        return 0

    least_in_any_order = added = least


class DirectPaths(CheapestPaths):
    """The moves of an array over more axes than can be searched: one way between each two states, which need
    not be the cheapest."""

    def least(self, state: State) -> Cost:
        found = self.cost(state)
        return UNREACHABLE if found is None else found

    def least_in_any_order(self, state: State) -> Cost:  # noqa: ARG002 - nothing is known of that
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

    def _fits(self, node: Node) -> bool:  # noqa: ARG002 - larger pieces are padded
        return True

    def _search(self, start: Node, limit: Cost) -> Cost:  # noqa: ARG002 - each is found once
        best = UNREACHABLE
        for cost, source in self._cheapest:
            if cost >= best:
                break
            ends = (source.state, start.state) if self._is_forward else (start.state, source.state)
            moves = direct_moves(self._space, *ends)
            total = cost + sum(
                self._prices.move(
                    move.op, move.axes, self.local_bytes(move.before), self.local_bytes(move.after)
                )
                for move in moves
            )
            if total < best:
                best, self._next[start], self._known[source] = total, (moves, source), cost
        self._known[start] = best
        return best
