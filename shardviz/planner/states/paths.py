"""The cheapest moves of one array between its states (Dijkstra's algorithm)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.planner.states.moves import STAGES, Axes, Node, State, StateMove, StateSpace
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import array_bytes

UNREACHABLE: Cost = 1 << 1024
"""More than anything costs."""


class ArrayKind(NamedTuple):
    """An array as the prices of its moves depend on it. `uneven` are the splits of its dimensions that may
    leave parts of different sizes, because somebody gives or wants them: (dimension, axes)."""

    shape: tuple[int, ...]
    dtype: str
    uneven: frozenset[tuple[int, Axes]] = frozenset()


@dataclass(frozen=True)
class PathMove:
    """One operation on one array: see `Step` for `op`, `axes` and `dim`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State


class StateSearch:
    """A search through the states of an array, which knows of each its bytes and whether it can be.

    `sources` are the states in which the array can be to begin with, with what that has cost. With
    `ends_pending` the search runs backward: the sources are states in which the array may end, and the costs
    those of the moves from a state to there, over which axes sums may be pending on the way.
    """

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
    ) -> None:
        self.kind = kind
        self._space, self._prices = space, prices
        self._is_forward = ends_pending is None
        self._bytes: dict[tuple[int, ...], int] = {}
        self._fitting: dict[Node, bool] = {}
        self.sources = tuple(space.node(state) for state in sources)
        self.pending = space.may_mask.union(axis for _, pending in sources for axis in pending)
        # Over which axes sums may be pending before the array is in a state.
        before = self.pending if ends_pending is None else ends_pending
        self._pending_before = tuple(axis for axis in space.sizes if axis in before)

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


class PathSearch(StateSearch):
    """The least costs of having an array in each of its states, and the moves to there.

    Costs are found as they are asked for: `cost` goes on where the last question left off, so that many goals
    cost one search.
    """

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
    ) -> None:
        super().__init__(space, kind, prices, sources, ends_pending)
        self._best: dict[Node, tuple[Cost, Node | None, StateMove | None]] = {}
        self._settled: dict[Node, Cost] = {}
        self._heap: list[tuple[Cost, int, State, Node]] = []
        for node, cost in zip(self.sources, sources.values(), strict=True):
            self._best[node] = (cost, None, None)
            heapq.heappush(self._heap, (cost, 0, node.state, node))

    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        """The least cost of having the array in a state; None where no moves lead to it, or none for less
        than `limit`."""
        goal = self._space.node(state)
        found = self._settled.get(goal)
        while found is None:
            if not self._heap or (limit is not None and self._heap[0][0] >= limit):
                return None
            self._settle()
            found = self._settled.get(goal)
        return found

    def costs(self) -> Iterator[tuple[State, Cost]]:
        """All states that can be had, the cheapest first."""
        given = 0
        while True:
            settled = list(self._settled.items())[given:]
            yield from ((node.state, cost) for node, cost in settled)
            given += len(settled)
            if not settled:
                if not self._heap:
                    return
                self._settle()

    def added(self, state: State) -> Cost:
        """The cost of the moves to a state whose cost has been found, without that of their source."""
        node = goal = self._space.node(state)
        while (before := self._best[node][1]) is not None:
            node = before
        return self._settled[goal] - self._settled[node]

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        """The source of a cheapest path to a state, and the moves from there, or backward to there. Raises
        `KeyError` where there is none."""
        if self.cost(state) is None:
            raise KeyError(state)
        moves: list[PathMove] = []
        node = self._space.node(state)
        while True:
            _, before, move = self._best[node]
            if before is None or move is None:
                break
            ends = (before, node) if self._is_forward else (node, before)
            moves.append(PathMove(move.op, move.axes, move.dim, ends[0].state, ends[1].state))
            node = before
        return node.state, tuple(reversed(moves) if self._is_forward else moves)

    def _settle(self) -> None:
        """Go on from the cheapest state that is not settled, or with more of its moves."""
        cost, stage, _, node = heapq.heappop(self._heap)
        if stage:
            self._follow(node, self._settled[node], stage)
        elif node not in self._settled:
            self._settled[node] = cost
            self._follow(node, cost, 0)
            # Collectives are many: they are listed once nothing is left that is cheaper than any of them.
            least = self._prices.least_moves(self._space, self._local_bytes(node), forward=self._is_forward)
            is_even = not self.kind.uneven
            for later in range(1, len(STAGES)):
                heapq.heappush(self._heap, (cost + least[later] * is_even, later, node.state, node))

    def _follow(self, node: Node, cost: Cost, stage: int) -> None:
        if self._is_forward:
            moves = self._space.departures(node, stage)
        else:
            moves = self._space.arrivals(node, stage, self._pending_before)
        own = self._local_bytes(node)
        best, settled, heap = self._best, self._settled, self._heap
        fitting, local_bytes = self._fitting, self._bytes
        forward = self._is_forward
        costs = self._prices.costs_from(self._space, own, forward=forward)
        for move in moves:
            other = move.other
            if other in settled:
                continue
            fits = fitting.get(other)
            if fits is None:
                fits = self._fits(other)
            if not fits:
                continue
            size = local_bytes.get(other.parts)
            if size is None:
                size = self._local_bytes(other)
            added = costs.get((move.kind, size))
            if added is None:
                ends = (own, size) if forward else (size, own)
                added = costs[move.kind, size] = self._prices.move(move.op, move.axes, *ends)
            reached = cost + added
            known = best.get(other)
            if known is None or reached < known[0]:
                best[other] = (reached, node, move)
                heapq.heappush(heap, (reached, 0, other.state, other))
