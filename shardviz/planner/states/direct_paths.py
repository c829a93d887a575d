"""Moves of one array over more axes than can be searched: each brings axes to where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardviz.planner.states.moves import Axes, Dims, State, StateSpace, with_axes
from shardviz.planner.states.paths import UNREACHABLE, ArrayKind, PathMove, StateSearch
from shardviz.planner.states.prices import Cost, Prices

MOST_SOURCES = 12
"""The cheapest states of an intermediate that are looked at."""


class DirectPaths(StateSearch):
    """Costs and moves of an array as of `PathSearch`, but of one way between each two states, which need not
    be the cheapest."""

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
        """The cost of a state."""
        return self._find(state)[0]

    def least_in_any_order(self, state: State) -> Cost:  # noqa: ARG002 - nothing is known of that
        """No state costs less that has the axes of each dimension in some order."""
        return 0

    def costs(self) -> Iterator[tuple[State, Cost]]:
        return iter(self._given.items())

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
                moves = self._moves(*ends)
                if moves is not None:
                    total = cost + sum(self._price(move) for move in moves)
                    if total < best[0]:
                        best = total, source, moves
            self._found[state] = best
        return self._found[state]

    def _moves(self, start: State, goal: State) -> tuple[PathMove, ...] | None:
        """The moves between two states; None where sums would have to be pending that are not, over axes for
        which nobody wants that."""
        moves: list[PathMove] = []
        state = start
        while state != goal:
            step = _next_move(self._space, state, goal)
            moves.append(PathMove(step[0], step[1], step[2], state, step[3]))
            state = step[3]
        return tuple(moves)

    def _price(self, move: PathMove) -> Cost:
        before, after = (self._local_bytes(self._space.node(each)) for each in (move.before, move.after))
        return self._prices.move(move.op, move.axes, before, after)


def _next_move(space: StateSpace, state: State, goal: State) -> tuple[str, Axes, int | None, State]:
    """The operation, its axes, its dimension and the state after it."""
    (dims, pending), (wanted, kept) = state, goal
    if extra := tuple(axis for axis in pending if axis not in kept):
        return _reduced(space, dims, pending, wanted, extra)
    held, needed = space.node(state), space.node((wanted, pending))
    if dims != wanted and held.parts == needed.parts:
        changed = {axis for axis, _, _ in held.places ^ needed.places}
        axes = space.whole(tuple(axis for axis in space.sizes if axis in changed))
        return "ppermute", axes, None, (wanted, pending)
    common = [_common(old, new) for old, new in zip(dims, wanted, strict=True)]
    for source, axes in enumerate(dims):
        for cut in range(common[source], len(axes)):
            moved = axes[cut:]
            for target, new in enumerate(wanted):
                own = len(dims[target])
                if (
                    target != source
                    and common[target] == own
                    and set(new[own : own + len(moved)]) == {*moved}
                ):
                    after = with_axes(with_axes(dims, source, axes[:cut]), target, new[: own + len(moved)])
                    return "all_to_all", space.whole(moved), source, (after, pending)
    gathered = tuple(axis for axes, same in zip(dims, common, strict=True) for axis in axes[same:])
    if gathered:
        first = next(dim for dim, axes in enumerate(dims) if len(axes) > common[dim])
        after = tuple(axes[:same] for axes, same in zip(dims, common, strict=True))
        return "all_gather", space.whole(gathered), first, (after, pending)
    cut_by = tuple(axis for old, new in zip(dims, wanted, strict=True) for axis in new[len(old) :])
    if cut_by:
        first = next(dim for dim, axes in enumerate(dims) if len(axes) < len(wanted[dim]))
        return "slice", space.whole(cut_by), first, (wanted, pending)
    return "mask", space.whole(tuple(axis for axis in kept if axis not in pending)), None, goal


def _reduced(
    space: StateSpace, dims: Dims, pending: Axes, wanted: Dims, extra: Axes
) -> tuple[str, Axes, int | None, State]:
    """Pending sums added: to pieces where they are wanted next, else to whole copies."""
    after = list(dims)
    scattered: list[str] = []
    first = None
    for dim, (old, new) in enumerate(zip(dims, wanted, strict=True)):
        if new[: len(old)] == old:
            for axis in new[len(old) :]:
                if axis not in extra:
                    break
                after[dim] += (axis,)
                scattered.append(axis)
                first = dim if first is None else first
    rest = tuple(axis for axis in pending if axis not in (scattered or extra))
    if scattered:
        return "psum_scatter", space.whole(tuple(scattered)), first, (tuple(after), rest)
    return "psum", space.whole(tuple(a for a in space.sizes if a in extra)), None, (dims, rest)


def _common(old: Axes, new: Axes) -> int:
    """The number of axes with which both begin."""
    return next(
        (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )
