"""The copies of an array that a device holds under several shardings, and the moves that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shardviz.planner.states.moves import State, StateSpace
from shardviz.planner.states.paths import ArrayKind, PathMove, PathSearch
from shardviz.planner.states.prices import Cost, Prices


@dataclass(frozen=True, eq=False, slots=True)
class ArrayCopies:
    """The states in which a device holds an array: as it was made, then the others in order.

    `CopyMoves` has one object for all that are alike: they are compared and looked up as objects, which is
    most of what planning a program does.
    """

    kind: ArrayKind
    states: tuple[State, ...]


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
        self._copies: dict[tuple[ArrayKind, tuple[State, ...]], ArrayCopies] = {}
        self._nearest: dict[tuple[ArrayCopies, State], tuple[Cost, State]] = {}
        self._imitations: dict[tuple[ArrayCopies, ArrayCopies], Cost] = {}

    def copies(self, kind: ArrayKind, *states: State) -> ArrayCopies:
        """The copies of an array in these states."""
        found = self._copies.get((kind, states))
        if found is None:
            found = self._copies[kind, states] = ArrayCopies(kind, states)
        return found

    def with_copies(self, copies: ArrayCopies, made: Iterable[State]) -> ArrayCopies:
        """Copies with further ones; the first stays the first."""
        first, *others = copies.states
        new = {state for state in made if state not in copies.states}
        return self.copies(copies.kind, first, *sorted(new.union(others))) if new else copies

    def nearest(
        self, copies: ArrayCopies, goal: State, limit: Cost | None = None
    ) -> tuple[Cost, State] | None:
        """The least cost of making a copy, and of which; None where no moves lead to it, or none for less
        than `limit`."""
        key = (copies, goal)
        found = self._nearest.get(key)
        if found is None:
            for copy in copies.states:
                cost = 0 if copy == goal else self._search(copies.kind, copy).cost(goal, limit)
                if cost is not None and (limit is None or cost < limit):
                    found, limit = (cost, copy), cost
            if found is not None:
                self._nearest[key] = found
        return found

    def path(self, kind: ArrayKind, start: State, goal: State) -> ArrayPath:
        """The cheapest moves from one copy to another."""
        if start == goal:
            return ArrayPath(start)
        return ArrayPath(*self._search(kind, start).path(goal))

    def imitation(self, copies: ArrayCopies, others: ArrayCopies, limit: Cost | None = None) -> Cost | None:
        """The cost of making all of `others`, each on its own; None where no moves lead to one, or none for
        less than `limit`."""
        key = (copies, others)
        total = self._imitations.get(key)
        if total is None:
            total = 0
            for state in others.states:
                if state not in copies.states:
                    found = self.nearest(copies, state, None if limit is None else limit - total)
                    if found is None:
                        return None
                    total += found[0]
            self._imitations[key] = total
        return total

    def free_end(self, copies: ArrayCopies, splits: frozenset[tuple[int, str]]) -> tuple[Cost, State, State]:
        """The least cost of leaving an array without pending sums, its dimensions split over no axes but
        those in `splits` (by the dimension's number): with the copy and the state."""
        found: list[tuple[Cost, State, State]] = []
        for copy in copies.states:
            for end, cost in self._search(copies.kind, copy).costs():
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
