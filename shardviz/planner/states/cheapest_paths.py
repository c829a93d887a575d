"""The cheapest moves of one array between its states, of which few are asked for (A*).

Every search goes from a state that is asked for to where the array comes from, or goes, led by what a
`Relaxation` says is left: it looks at few of the many states that an array over four or five axes has (Hart,
Nilsson and Raphael, "A Formal Basis for the Heuristic Determination of Minimum Cost Paths", 1968). The bound
never falls by more than a move costs, so a state that is taken from the heap has its least cost.

A state's moves are listed in stages, and those of a stage only when nothing on the heap is cheaper than the
least of them: A[X, Y] over three axes has 3 slices, and hundreds of all-to-alls and permutes, which are
seldom asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import count

from shardviz.planner.states.moves import STAGES, Axes, Node, State, StateMove, StateSpace
from shardviz.planner.states.paths import UNREACHABLE, ArrayKind, ArrayPaths, PathMove
from shardviz.planner.states.prices import Cost, Prices
from shardviz.planner.states.relaxation import Relaxation
from shardviz.sharding import array_bytes

_EXCHANGE, _PERMUTE = 2, 3
"""The stages whose moves are many: all-to-alls are followed by the axes that they move, each group when it is
its turn."""
_SOURCE, _END, _GROUPS = len(STAGES), len(STAGES) + 1, len(STAGES) + 2
"""What else may wait beside a stage of moves: a source whose cost is to be found, the end of a path, and
groups of an all-to-all."""


class CheapestPaths(ArrayPaths):
    """The least costs, and moves that have them, each found on its own.

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
        super().__init__(space, kind, prices, sources, ends_pending)
        self._given = {space.node(state): cost for state, cost in sources.items()}
        self._exact, self._most_moves, self._allows = exact, most_moves, allows
        self._known: dict[Node, Cost] = {}
        self._next: dict[Node, tuple[StateMove, Node]] = {}
        self._at_least: dict[Node, Cost] = {}

    @cached_property
    def relaxation(self) -> Relaxation:
        """The least cost of the moves to or from each state."""
        whole = array_bytes(self.kind.shape, self.kind.dtype)
        sources = self._given.items()
        return Relaxation(
            self._space, self._prices, whole, sources, self._pending_before, forward=self._is_forward
        )

    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        node = self._space.node(state)
        found = self._known.get(node)
        if found is None and self._fits(node):
            limit = UNREACHABLE if limit is None else limit
            if self._at_least.get(node, 0) < limit:
                found = self._search(node, limit)
        return found

    def least(self, state: State) -> Cost:
        node = self._space.node(state)
        found = self._known.get(node)
        if found is None:
            found = max(self.relaxation.least(node), self._at_least.get(node, 0))
        return found

    def least_in_any_order(self, state: State) -> Cost:
        return self.relaxation.least_in_any_order(self._space.node(state))

    def added(self, state: State) -> Cost:
        node = goal = self._space.node(state)
        while node in self._next:
            node = self._next[node][1]
        return self._known[goal] - self._known[node]

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        if self.cost(state) is None:
            raise KeyError(state)
        moves: list[PathMove] = []
        node = self._space.node(state)
        while node in self._next:
            move, other = self._next[node]
            ends = (other, node) if self._is_forward else (node, other)
            moves.append(PathMove(move.op, move.axes, move.dim, ends[0].state, ends[1].state))
            node = other
        return node.state, tuple(reversed(moves) if self._is_forward else moves)

    def _search(self, start: Node, limit: Cost) -> Cost | None:
        """The cost of a state; None where it is not less than a limit."""
        left = self.relaxation.least
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
                found = self._given[node] if self._exact is None else self._exact(node.state, limit - cost)
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
                if node in self._given:
                    heapq.heappush(heap, (cost + self._given[node], 0, next(numbers), node, _SOURCE))
                for later, least in self._later_stages(node):
                    bound = max(total, cost + least)
                    if bound < limit:
                        heapq.heappush(heap, (bound, rest, next(numbers), node, later))
            elif stage == _EXCHANGE:
                for group, least in self._groups(node):
                    bound = max(total, cost + least)
                    if bound < limit:
                        heapq.heappush(heap, (bound, rest, next(numbers), node, _GROUPS + group))
                continue
            moves = self._moves(node, stage)
            listed += len(moves)
            for added, move in moves:
                other = move.other
                reached = cost + added
                known = costs.get(other)
                if other in done or (known is not None and known <= reached):
                    continue
                more = left(other)
                if reached + more >= limit:
                    continue
                costs[other], came[other] = reached, (node, move)
                heapq.heappush(heap, (reached + more, more, next(numbers), other, 0))
        self._at_least[start] = limit
        return None

    def _later_stages(self, node: Node) -> Iterator[tuple[int, Cost]]:
        """The stages whose moves wait, and what a way by one of them costs at least."""
        size, is_even = self._local_bytes(node), not self.kind.uneven
        least = self._prices.least_moves(self._space, size, forward=not self._is_forward)
        yield 1, least[1] * is_even
        yield _EXCHANGE, least[_EXCHANGE] * is_even
        yield _PERMUTE, self.relaxation.least_by_permute(node)

    def _groups(self, node: Node) -> Iterator[tuple[int, Cost]]:
        """The groups of axes that an all-to-all may move, and what a way by one of them costs at least."""
        size, is_even = self._local_bytes(node), not self.kind.uneven
        for group, axes in enumerate(self._space.exchange_groups(node)):
            least = self.relaxation.least_after_exchange(node, axes)
            if is_even:
                least += self._prices.move_in_any_order("all_to_all", self._space.whole(axes), size, size)
            yield group, least

    def _moves(self, node: Node, stage: int) -> list[tuple[Cost, StateMove]]:
        """The moves between a state and those that are nearer to the sources, with their costs."""
        if stage >= _GROUPS:
            moves = self._space.exchanges(node, stage - _GROUPS, arriving=self._is_forward)
        elif self._is_forward:
            moves = self._space.arrivals(node, stage, self._pending_before)
        else:
            moves = self._space.departures(node, stage)
        if (allows := self._allows) is not None:
            forward = self._is_forward
            moves = tuple(
                move for move in moves if (allows(move.other, node) if forward else allows(node, move.other))
            )
        own = self._local_bytes(node)
        costs = self._prices.costs_from(self._space, own, forward=not self._is_forward)
        found = []
        for move in moves:
            other = move.other
            fits = self._fitting.get(other)
            if not (self._fits(other) if fits is None else fits):
                continue
            size = self._bytes.get(other.parts)
            if size is None:
                size = self._local_bytes(other)
            added = costs.get((move.kind, size))
            if added is None:
                ends = (size, own) if self._is_forward else (own, size)
                added = costs[move.kind, size] = self._prices.move(move.op, move.axes, *ends)
            found.append((added, move))
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
            self._next[before] = move, node
            node = before
