"""One way from a state of an array to another, without a search.

Until the goal is reached, the first operation of this list is taken that brings axes to where they are
wanted, and never away again:

    slice         idle axes cut dimensions further: what is moved after that is smaller
    psum_scatter  pending sums are added into the pieces that are wanted
    ppermute      the same cut of the array, its blocks where they are wanted
    all_to_all    minor axes move to the dimensions that are to have them
    psum          the other sums that are pending and not wanted so are added
    all_gather    what no other operation brings to its place is given up, and cut again: of a dimension that
                  is in the way of an all_to_all, or else of all dimensions at once
    mask          whole copies become the pending sums that are wanted

So A[X, Y] → A[_, (Y, X)] over axes of 2 and 4 devices is one all_to_all of X, and A[X, Y] → A[Y, X] gathers
one of them, moves the other, and cuts. The cheapest way may be another (`paths`).
"""

from __future__ import annotations

from shardviz.planner.states.moves import Axes, Dims, PathMove, State, StateSpace, with_axes


def direct_moves(space: StateSpace, start: State, goal: State) -> tuple[PathMove, ...]:
    """The moves from one state to another."""
    moves: list[PathMove] = []
    state = start
    while state != goal:
        move = _next_move(space, state, goal)
        moves.append(move)
        state = move.after
    return tuple(moves)


def _next_move(space: StateSpace, state: State, goal: State) -> PathMove:
    (dims, pending), (wanted, kept) = state, goal

    def move(op: str, axes: Axes, dim: int | None, after: Dims, left: Axes = pending) -> PathMove:
        return PathMove(op, space.whole(axes), dim, state, (after, left))

    extra = tuple(axis for axis in space.sizes if axis in pending and axis not in kept)
    used = {axis for axes in (*dims, pending) for axis in axes}
    for op in ("slice", "psum_scatter"):
        after = tuple(
            _appended(
                old,
                new,
                [axis for axis in new if (axis in extra if op == "psum_scatter" else axis not in used)],
            )
            for old, new in zip(dims, wanted, strict=True)
        )
        if after != dims:
            first = next(dim for dim, axes in enumerate(after) if axes != dims[dim])
            added = tuple(axis for old, new in zip(dims, after, strict=True) for axis in new[len(old) :])
            return move(op, added, first, after, tuple(axis for axis in pending if axis not in added))
    held, needed = space.node(state), space.node((wanted, pending))
    needed_axes = {axis for axis, _, _ in needed.places}
    if dims != wanted and held.parts == needed.parts and not needed_axes.intersection(pending):
        changed = {axis for axis, _, _ in held.places ^ needed.places}
        return move("ppermute", tuple(axis for axis in space.sizes if axis in changed), None, wanted)
    common = [_common(old, new) for old, new in zip(dims, wanted, strict=True)]
    in_the_way = None
    for source, axes in enumerate(dims):
        for cut in range(common[source], len(axes)):
            target = _target(axes[cut:], source, common, wanted)
            if target is not None and common[target] == len(dims[target]):
                own = wanted[target][: common[target] + len(axes) - cut]
                return move(
                    "all_to_all",
                    axes[cut:],
                    source,
                    with_axes(with_axes(dims, source, axes[:cut]), target, own),
                )
            in_the_way = target if in_the_way is None else in_the_way
    if extra:
        return move("psum", extra, None, dims, tuple(axis for axis in pending if axis not in extra))
    lost = [dim for dim, axes in enumerate(dims) if len(axes) > common[dim] and in_the_way in (None, dim)]
    if lost:
        after = tuple(axes[: common[dim]] if dim in lost else axes for dim, axes in enumerate(dims))
        return move(
            "all_gather", tuple(axis for dim in lost for axis in dims[dim][common[dim] :]), lost[0], after
        )
    return move("mask", tuple(axis for axis in kept if axis not in pending), None, dims, kept)


def _appended(old: Axes, new: Axes, free: list[str]) -> Axes:
    """The axes of a dimension with those behind them that are wanted next, as far as they are free."""
    if new[: len(old)] != old:
        return old
    end = len(old)
    while end < len(new) and new[end] in free:
        end += 1
    return new[:end]


def _target(moved: Axes, source: int, common: list[int], wanted: Dims) -> int | None:
    """The dimension that is to have these axes next, behind those that it has in common with its goal."""
    for dim, axes in enumerate(wanted):
        if dim != source and {*axes[common[dim] : common[dim] + len(moved)]} == {*moved}:
            return dim
    return None


def _common(old: Axes, new: Axes) -> int:
    """The number of axes with which both begin."""
    return next(
        (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )
