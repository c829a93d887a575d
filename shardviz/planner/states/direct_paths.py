"""The moves of an array over more axes than can be searched: one way between each two states."""

from __future__ import annotations

from collections.abc import Mapping

from shardviz.planner.states.direct_moves import direct_moves
from shardviz.planner.states.moves import Axes, State, StateSpace
from shardviz.planner.states.paths import UNREACHABLE, ArrayKind, ArrayPaths, PathMove
from shardviz.planner.states.prices import Cost, Prices

MOST_SOURCES = 12
"""The cheapest states of an intermediate that are looked at."""


class DirectPaths(ArrayPaths):
    """Costs and moves of one way between each two states, which need not be the cheapest."""

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
    ) -> None:
        super().__init__(space, kind, prices, sources, ends_pending)
        cheapest = sorted(sources.items(), key=lambda source: source[1])[:MOST_SOURCES]
        self._given = dict(cheapest)
        self._found: dict[State, tuple[Cost, State, tuple[PathMove, ...]]] = {}

    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        found = self._find(state)[0]
        return None if found == UNREACHABLE or (limit is not None and found >= limit) else found

    def least(self, state: State) -> Cost:
        return self._find(state)[0]

    def least_in_any_order(self, state: State) -> Cost:  # noqa: ARG002 - nothing is known of that
        return 0

    def added(self, state: State) -> Cost:
        found, source, _ = self._find(state)
        return found - self._given[source]

    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        found, source, moves = self._find(state)
        if found == UNREACHABLE:
            raise KeyError(state)
        return source, moves

    def _find(self, state: State) -> tuple[Cost, State, tuple[PathMove, ...]]:
        if state not in self._found:
            best: tuple[Cost, State, tuple[PathMove, ...]] = (UNREACHABLE, state, ())
            for source, cost in self._given.items():
                if cost >= best[0]:
                    break
                ends = (source, state) if self._is_forward else (state, source)
                moves = direct_moves(self._space, *ends)
                total = cost + sum(self._price(move) for move in moves)
                if total < best[0]:
                    best = total, source, moves
            self._found[state] = best
        return self._found[state]

    def _price(self, move: PathMove) -> Cost:
        before, after = (self._local_bytes(self._space.node(each)) for each in (move.before, move.after))
        return self._prices.move(move.op, move.axes, before, after)
