"""The cheapest moves of one array between its states (Dijkstra's algorithm)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.planner.moves import Axes, Node, State, StateMove, StateSpace
from shardviz.planner.prices import Cost, Prices
from shardviz.sharding import array_bytes


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


class PathSearch:
    """The least costs of having an array in each of its states, and the moves to there.

    `sources` are the states in which it can be to begin with, with what that has cost. Costs are found as
    they are asked for: `cost` goes on where the last question left off, so that many goals cost one search.
    """

    def __init__(
        self, space: StateSpace, kind: ArrayKind, prices: Prices, sources: Mapping[State, Cost]
    ) -> None:
        self.kind = kind
        self._space, self._prices = space, prices
        self._best: dict[Node, tuple[Cost, Node | None, StateMove | None]] = {}
        self._settled: dict[Node, Cost] = {}
        self._bytes: dict[tuple[int, ...], int] = {}
        self._fitting: dict[Node, bool] = {}
        self._heap: list[tuple[Cost, int, Node]] = []
        self.is_argument = not any(sources.values())
        for state, cost in sources.items():
            node = space.node(state)
            self._best[node] = (cost, None, None)
            heapq.heappush(self._heap, (cost, node.number, node))
        self.pending = frozenset(axis for _, pending in sources for axis in pending)

    @property
    def reached(self) -> Cost:
        """No state that has not been asked for costs less than this."""
        return self._heap[0][0] if self._heap else 0

    def cost(self, state: State) -> Cost | None:
        """The least cost of having the array in a state; None where no moves lead to it."""
        goal = self._space.node(state)
        found = self._settled.get(goal)
        while found is None:
            if not self._settle():
                return None
            found = self._settled.get(goal)
        return found

    def costs(self) -> Iterator[tuple[State, Cost]]:
        """All states that can be had, the cheapest first."""
        given = 0
        while True:
            settled = list(self._settled.items())[given:]
            yield from ((node.state, cost) for node, cost in settled)
            given += len(settled)
            if not settled and not self._settle():
                return

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        """The source of a cheapest path to a state, and the moves from there. Raises `KeyError` where there
        is none."""
        if self.cost(state) is None:
            raise KeyError(state)
        moves: list[PathMove] = []
        node = self._space.node(state)
        while True:
            _, before, edge = self._best[node]
            if before is None or edge is None:
                return node.state, tuple(reversed(moves))
            moves.append(PathMove(edge.op, edge.axes, edge.dim, before.state, node.state))
            node = before

    def _settle(self) -> bool:
        """Settle one state more; False where there is none left."""
        while self._heap:
            cost, _, node = heapq.heappop(self._heap)
            if node not in self._settled:
                self._settled[node] = cost
                self._leave(node, cost)
                return True
        return False

    def _leave(self, node: Node, cost: Cost) -> None:
        held = self._local_bytes(node)
        best, settled, heap, price = self._best, self._settled, self._heap, self._prices.move
        for edge in self._space.edges(node):
            after = edge.after
            if after in settled or not self._fits(after):
                continue
            reached = cost + price(edge.op, edge.axes, held, self._local_bytes(after))
            known = best.get(after)
            if known is None or reached < known[0]:
                best[after] = (reached, node, edge)
                heapq.heappush(heap, (reached, after.number, after))

    def _local_bytes(self, node: Node) -> int:
        found = self._bytes.get(node.parts)
        if found is None:
            shape = [-(-size // parts) for size, parts in zip(self.kind.shape, node.parts, strict=True)]
            found = self._bytes[node.parts] = array_bytes(shape, self.kind.dtype)
        return found

    def _fits(self, node: Node) -> bool:
        """Every dimension is cut into equal parts, or as somebody has it."""
        found = self._fitting.get(node)
        if found is None:
            found = self._fitting[node] = all(
                size % parts == 0 or (dim, node.state[0][dim]) in self.kind.uneven
                for dim, (size, parts) in enumerate(zip(self.kind.shape, node.parts, strict=True))
            )
        return found
