"""The copies of an array that a device holds under several shardings, and the moves that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardviz.planner.statements.array_searches import ArraySearches
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import ArrayKind, ArrayPaths, PathMove
from shardviz.planner.states.prices import Cost


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

    def __init__(self, searches: ArraySearches) -> None:
        self.searches = searches
        self._from: dict[tuple[ArrayKind, State], ArrayPaths] = {}
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

    def free_end(self, copies: ArrayCopies, goals: tuple[State, ...]) -> tuple[Cost, ArrayPath]:
        """The least cost of leaving an array in one of some states, and the moves."""
        ends = self.searches.onward(copies.kind, goals)
        found: tuple[Cost, State] | None = None
        for copy in copies.states:
            cost = ends.cost(copy, None if found is None else found[0])
            if cost is not None:
                found = cost, copy
        assert found is not None  # a copy on every device is one of the goals
        return found[0], ArrayPath(found[1], ends.path(found[1])[1])

    def _search(self, kind: ArrayKind, start: State) -> ArrayPaths:
        found = self._from.get((kind, start))
        if found is None:
            found = self._from[kind, start] = self.searches.to(kind, {start: 0})
        return found
