"""The copies of an array that a device holds under several shardings, and the moves that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shardviz.planner.pricing.prices import Cost, Prices
from shardviz.planner.states.moves import State, StateSpace
from shardviz.planner.states.paths import ArrayKind, PathMove, PathSearch

Copies = tuple[State, ...]
"""The states in which a device holds an array: as it was made, then the others in order."""


def with_copies(copies: Copies, made: Iterable[State]) -> Copies:
    """Copies with further ones; the first stays the first."""
    new = [state for state in made if state not in copies]
    return (copies[0], *sorted({*copies[1:], *new})) if new else copies


@dataclass(frozen=True)
class ArrayPath:
    """Moves of one array from the state of a copy."""

    start: State
    moves: tuple[PathMove, ...] = ()

    @property
    def states(self) -> Iterator[State]:
        """The states that the moves make."""
        return (move.after for move in self.moves)


class CopyMoves:
    """The least costs of making copies of an array from others, for all arrays of a kind alike."""

    def __init__(self, space: StateSpace, prices: Prices) -> None:
        self._space, self._prices = space, prices
        self._searches: dict[tuple[ArrayKind, State], PathSearch] = {}
        self._nearest: dict[tuple[ArrayKind, Copies, State], tuple[Cost, State] | None] = {}

    def nearest(self, kind: ArrayKind, copies: Copies, goal: State) -> tuple[Cost, State] | None:
        """The least cost of making a copy, and of which; None where no moves lead to it."""
        key = (kind, copies, goal)
        if key not in self._nearest:
            found: tuple[Cost, State] | None = None
            for copy in copies:
                cost = 0 if copy == goal else self._search(kind, copy).cost(goal)
                if cost is not None and (found is None or cost < found[0]):
                    found = (cost, copy)
            self._nearest[key] = found
        return self._nearest[key]

    def path(self, kind: ArrayKind, start: State, goal: State) -> ArrayPath:
        """The cheapest moves from one copy to another."""
        if start == goal:
            return ArrayPath(start)
        return ArrayPath(*self._search(kind, start).path(goal))

    def imitation(self, kind: ArrayKind, copies: Copies, others: Copies) -> Cost | None:
        """The cost of making all of `others`, each on its own."""
        total = 0
        for state in others:
            if state not in copies:
                found = self.nearest(kind, copies, state)
                if found is None:
                    return None
                total += found[0]
        return total

    def free_end(
        self, kind: ArrayKind, copies: Copies, splits: frozenset[tuple[int, str]]
    ) -> tuple[Cost, State, State]:
        """The least cost of leaving an array without pending sums, its dimensions split over no axes but
        those in `splits` (by the dimension's number): with the copy and the state."""
        found: list[tuple[Cost, State, State]] = []
        for copy in copies:
            for end, cost in self._search(kind, copy).costs():
                placed = {(dim, axis) for dim, axes in enumerate(end[0]) for axis in axes}
                if not end[1] and placed <= splits:
                    found.append((cost, copy, end))
                    break
        return min(found)

    def search_from(self, kind: ArrayKind, sources: Mapping[State, Cost]) -> PathSearch:
        """A search from the states in which an array can be, with what that has cost."""
        return PathSearch(self._space, kind, self._prices, sources)

    def _search(self, kind: ArrayKind, start: State) -> PathSearch:
        found = self._searches.get((kind, start))
        if found is None:
            found = self.search_from(kind, {start: 0})
            self._searches[kind, start] = found
        return found
