"""The searches for the moves of arrays over some axes, each of the kind that so many axes allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.states.cheapest_paths import CheapestPaths
from shardviz.planner.states.direct_paths import DirectPaths
from shardviz.planner.states.moves import Axes, State, StateSpace, state_space
from shardviz.planner.states.paths import UNREACHABLE, ArrayKind, ArrayPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import Mesh, ShardedArray

MOST_SEARCHED = 5
"""Parts of axes up to which the cheapest moves are searched: with more, direct ones are taken."""


def space_of(pool: AxisPool, mesh: Mesh) -> StateSpace:
    """The states that arrays can be in over some axes."""
    return state_space(pool.sizes_of_parts, tuple(mesh.shape.items()), pool.may_mask)


class ArraySearches:
    """The searches over the axes of a pool; one that is asked for again is the same."""

    def __init__(self, pool: AxisPool, mesh: Mesh, prices: Prices) -> None:
        self.pool, self.space, self.prices = pool, space_of(pool, mesh), prices
        self._is_guided = len(pool.sizes) <= MOST_SEARCHED
        self._found: dict[object, ArrayPaths] = {}

    def to(self, kind: ArrayKind, sources: Mapping[State, Cost]) -> ArrayPaths:
        """The cheapest moves to any state from some, which have had a cost."""
        return self._search(kind, sources, None)

    def onward(self, kind: ArrayKind, goals: Iterable[State], pending: Axes | None = None) -> ArrayPaths:
        """The cheapest moves from any state to one of some, where sums are pending over no other axes than
        these, where they are given."""
        may_pend = tuple(self.space.sizes) if pending is None else pending
        return self._search(kind, dict.fromkeys(goals, 0), may_pend)

    def of_made(
        self, kind: ArrayKind, least: Mapping[State, Cost], exact: Callable[[State, Cost], Cost | None]
    ) -> ArrayPaths:
        """The cheapest moves from the states in which statements leave an array, which cost at least so much;
        `exact` finds how much, or None where that is not less than a limit."""
        if self._is_guided:
            return CheapestPaths(self.space, kind, self.prices, least, None, exact)
        costs = {state: exact(state, UNREACHABLE) for state in least}
        sources = {state: cost for state, cost in costs.items() if cost is not None}
        return DirectPaths(self.space, kind, self.prices, sources)

    def kind(self, array: ShardedArray) -> ArrayKind:
        return ArrayKind(array.shape, array.dtype, self.pool.uneven_of(array))

    def _search(self, kind: ArrayKind, sources: Mapping[State, Cost], pending: Axes | None) -> ArrayPaths:
        key = kind, tuple(sources.items()), pending
        if key not in self._found:
            paths = CheapestPaths if self._is_guided else DirectPaths
            self._found[key] = paths(self.space, kind, self.prices, sources, pending)
        return self._found[key]
