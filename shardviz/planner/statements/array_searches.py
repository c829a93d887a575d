"""The searches for the moves of arrays over some axes, each of the kind that so many axes allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.states.direct_paths import DirectPaths
from shardviz.planner.states.guided_paths import GuidedPaths
from shardviz.planner.states.moves import Axes, State, StateSpace, state_space
from shardviz.planner.states.paths import UNREACHABLE, ArrayKind
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import Mesh, ShardedArray

MOST_SEARCHED = 5
"""Parts of axes up to which the cheapest moves are searched: with more, direct ones are taken."""

ArrayPaths = GuidedPaths | DirectPaths
"""The moves of an array, of which each is found when it is asked for."""


def space_of(pool: AxisPool, mesh: Mesh) -> StateSpace:
    """The states that arrays can be in over some axes."""
    return state_space(pool.sizes_of_parts, tuple(mesh.shape.items()), pool.may_mask)


class ArraySearches:
    """The searches over the axes of a pool; one that is asked for again is the same."""

    def __init__(self, pool: AxisPool, mesh: Mesh, prices: Prices) -> None:
        self.pool, self.space, self.prices = pool, space_of(pool, mesh), prices
        self._is_guided = len(pool.sizes) <= MOST_SEARCHED
        self._found: dict[object, ArrayPaths] = {}

    def to(self, array: ShardedArray, sources: Mapping[State, Cost]) -> ArrayPaths:
        """The cheapest moves to any state from some, which have had a cost."""
        return self._search(array, sources, None)

    def onward(self, array: ShardedArray, goals: Iterable[State], pending: Axes) -> ArrayPaths:
        """The cheapest moves from any state to one of some, where sums are pending over no other axes."""
        return self._search(array, dict.fromkeys(goals, 0), pending)

    def of_made(
        self, array: ShardedArray, least: Mapping[State, Cost], exact: Callable[[State, Cost], Cost | None]
    ) -> ArrayPaths:
        """The cheapest moves from the states in which statements leave an array, which cost at least so much;
        `exact` finds how much, or None where that is not less than a limit."""
        if self._is_guided:
            return GuidedPaths(self.space, self._kind(array), self.prices, least, None, exact)
        costs = {state: exact(state, UNREACHABLE) for state in least}
        sources = {state: cost for state, cost in costs.items() if cost is not None}
        return DirectPaths(self.space, self._kind(array), self.prices, sources)

    def _search(self, array: ShardedArray, sources: Mapping[State, Cost], pending: Axes | None) -> ArrayPaths:
        kind = self._kind(array)
        key = kind, tuple(sources.items()), pending
        if key not in self._found:
            found = GuidedPaths if self._is_guided else DirectPaths
            self._found[key] = found(self.space, kind, self.prices, sources, pending)
        return self._found[key]

    def _kind(self, array: ShardedArray) -> ArrayKind:
        return ArrayKind(array.shape, array.dtype, self.pool.uneven_of(array))
