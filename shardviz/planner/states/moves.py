"""The states in which an array can be split, and the moves between them, each one operation of JAX.

A state is where an array's axes are: the axes of every dimension (major first) and the axes over which it
is still a pending sum. The moves, inside `shard_map`:

    all_gather    the minor axes of some dimensions are dropped; devices concatenate their pieces
    all_to_all    the minor axes of some dimensions move to the minor end of others
    ppermute      the same cut of the array, its blocks on other devices
    psum          pending sums are added; everyone gets the total
    psum_scatter  pending sums are added; everyone gets one piece of the total
    slice         idle axes cut some dimensions further; every device keeps its part, nothing is sent
    mask          a whole copy becomes a pending sum: the first device keeps it, the others have zeros

Only the minor end of a dimension can be gathered or moved: taking the major axis away would leave a device
with rows that are not adjacent. The axes are those of the mesh, or parts of these (`axis_parts`), and each
move is listed once, with the axes of its groups in the order in which it takes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import NamedTuple

from shardviz.planner.plan import LOCAL_OPS
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape
from shardviz.sharding.axis_parts import joined_parts

Axes = tuple[str, ...]
Dims = tuple[Axes, ...]
State = tuple[Dims, Axes]
"""The axes of each dimension, and those over which the array is a pending sum, in the order of their
names."""


def state_of(spec: PartitionSpec, mesh: Mesh) -> State:
    """A spec as a state; axes of size 1 split nothing and are left out. An array on one device is a pending
    sum over all axes (`first_steps`)."""

    def wide(axes: Axes) -> Axes:
        return tuple(axis for axis in axes if mesh.axis_size(axis) > 1)

    pending = spec.unreduced if spec.only_device is None else tuple(sorted(mesh.axis_names))
    return tuple(wide(dim) for dim in spec.dims), wide(pending)


def spec_of(state: State, mesh: Mesh | None = None) -> PartitionSpec:
    """A state as a spec; on a `mesh` adjacent parts of an axis are written as one."""
    dims, unreduced = state
    if mesh is not None and any(":" in axis for axes in (*dims, unreduced) for axis in axes):
        dims = tuple(joined_parts(axes, mesh.shape) for axes in dims)
        unreduced = joined_parts(sorted(unreduced), mesh.shape)
    return PartitionSpec(dims, unreduced)


def with_axes(dims: Dims, dim: int, axes: Axes) -> Dims:
    """The axes of every dimension, with others for one of them."""
    return (*dims[:dim], axes, *dims[dim + 1 :])


@dataclass(frozen=True)
class PathMove:
    """One operation on one array: see `Step` for `op`, `axes` and `dim`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State


@dataclass(frozen=True)
class ReshardMove(PathMove):
    """An operation with the bytes that it takes: see `Step` for `shape`, `bytes` and `wire_bytes`."""

    shape: tuple[int, ...]
    bytes: int
    wire_bytes: int


def reshard_move(
    array: ShardedArray, mesh: Mesh, op: str, axes: Axes, dim: int | None, before: State, after: State
) -> ReshardMove:
    """The move with its bytes: (N-1)/N of the larger side for a gather, a scatter and an all-to-all, twice
    that for a psum, rounded up; the operand for a ppermute (Chan et al. 2007; see `Step`)."""
    shape = shard_shape(array.shape, spec_of(after if op == "all_gather" else before), mesh)
    size = array_bytes(shape, array.dtype)
    return ReshardMove(
        op, axes, dim, before, after, shape, size, wire_bytes_of(op, size, mesh.group_size(axes))
    )


def wire_bytes_of(op: str, size: int, devices: int) -> int:
    """Bytes that one device of a group must send, where `size` is as in `Step.bytes`."""
    if op in LOCAL_OPS:
        return 0
    if op == "ppermute":
        return size
    return -(-(2 if op in ("psum", "pmax") else 1) * size * (devices - 1) // devices)


STAGES = (("slice", "mask"), ("all_gather", "psum", "psum_scatter"), ("all_to_all",), ("ppermute",))
"""The operations, in groups: those of the last are the most, and seldom the cheapest way on."""
EXCHANGES = len(STAGES)
"""From here on a stage is one group of axes that an all-to-all moves, by its number."""


class Node:
    """A state of arrays of one rank: `parts` are the numbers of pieces of each dimension, `places` the axes
    that split it, each with its dimension and the pieces into which the axes before it cut that."""

    __slots__ = ("moves", "parts", "places", "shortened", "state")

    def __init__(self, state: State, sizes: Mapping[str, int]) -> None:
        self.state = state
        parts, places = [], []
        for dim, axes in enumerate(state[0]):
            cut = 1
            for axis in axes:
                places.append((axis, dim, cut))
                cut *= sizes[axis]
            parts.append(cut)
        self.parts, self.places = tuple(parts), frozenset(places)
        self.shortened: tuple[tuple[Dims, Axes, int], ...] | None = None
        self.moves: dict[tuple[int, Axes | None], tuple[StateMove, ...]] = {}


class StateMove(NamedTuple):
    """A move to or from another state: `dim` is the first dimension that is gathered, moved away, scattered
    or cut."""

    op: str
    axes: Axes
    dim: int | None
    other: Node


_Move = tuple[str, Axes, int | None, Dims, Axes]
"""The operation, axes and dimension of a move, and the state at its other end."""


@lru_cache(maxsize=8)  # problems on one mesh share the states and the moves between them
def state_space(
    sizes: tuple[tuple[str, int], ...], mesh_shape: tuple[tuple[str, int], ...], may_mask: frozenset[str]
) -> StateSpace:
    """The states over these axis parts, the same object each time."""
    return StateSpace(dict(sizes), dict(mesh_shape), may_mask)


class StateSpace:
    """The states of arrays of one rank over some axis parts, made as they are reached.

    `sizes` are the devices along each part, in the mesh's order; only over parts in `may_mask` does a copy
    become a pending sum. Moves name whole axes where they are over all of their parts.
    """

    def __init__(
        self, sizes: Mapping[str, int], mesh_shape: Mapping[str, int], may_mask: frozenset[str] = frozenset()
    ) -> None:
        self.sizes, self.may_mask = dict(sizes), may_mask
        self._mesh_shape = mesh_shape
        self._has_parts = any(":" in axis for axis in sizes)
        self._joined: dict[Axes, Axes] = {}
        self._nodes: dict[State, Node] = {}
        self._cuts: dict[tuple[tuple[int, ...], frozenset[str]], tuple[Dims, ...]] = {}

    def node(self, state: State) -> Node:
        """The node of a state, which is the same one each time."""
        found = self._nodes.get(state)
        if found is None:
            found = self._nodes[state] = Node(state, self.sizes)
        return found

    def group_size(self, axes: Axes) -> int:
        return math.prod([self.sizes[axis] for axis in axes])

    def whole(self, axes: Axes) -> Axes:
        """The axes, of which adjacent parts are one."""
        found = self._joined.get(axes)
        if found is None:
            found = self._joined[axes] = joined_parts(axes, self._mesh_shape)
        return found

    def moves(self, node: Node, stage: int, arriving: Axes | None = None) -> tuple[StateMove, ...]:
        """Every move from a state by the operations of one of the `STAGES`; or with `arriving` every one to
        it, where sums are pending over no other axes than these."""
        found = node.moves.get((stage, arriving))
        if found is None:
            if stage >= EXCHANGES:
                moves = self._exchanges(node, stage - EXCHANGES, arriving)
            else:
                makers = (self._local, self._reductions, self._all_exchanges, self._permutes)
                moves = makers[stage](node, arriving)
            found = node.moves[stage, arriving] = tuple(map(self._joined_move, moves))
        return found

    def exchange_groups(self, node: Node) -> list[Axes]:
        """The axes that an all-to-all may move from a state, or have moved to there, each time they are the
        minor ones of some dimensions."""
        if node.shortened is None:
            node.shortened = tuple(_shortened(node.state[0]))
        return [taken for _, taken, _ in node.shortened]

    def _joined_move(self, move: _Move) -> StateMove:
        op, axes, dim, dims, pending = move
        return StateMove(op, self.whole(axes) if self._has_parts else axes, dim, self.node((dims, pending)))

    def _idle(self, dims: Dims, pending: Axes) -> Axes:
        used = {axis for axes in dims for axis in axes}.union(pending)
        return tuple(axis for axis in self.sizes if axis not in used)

    def _local(self, node: Node, arriving: Axes | None) -> Iterator[_Move]:
        dims, pending = node.state
        if arriving is not None:
            for axes in _subsets(axis for axis in pending if axis in self.may_mask):
                yield "mask", axes, None, dims, _without(pending, axes)
            for kept, taken, first in _shortened(dims):
                yield "slice", taken, first, kept, pending
            return
        idle = self._idle(dims, pending)
        for axes in _subsets(idle):
            for after, order, first in _appended(dims, axes, range(len(dims))):
                yield "slice", order, first, after, pending
        for axes in _subsets(axis for axis in idle if axis in self.may_mask):
            yield "mask", axes, None, dims, _with(pending, axes)

    def _reductions(self, node: Node, arriving: Axes | None) -> Iterator[_Move]:
        dims, pending = node.state
        every = range(len(dims))
        if arriving is not None:
            idle = self._idle(dims, pending)
            for axes in _subsets(axis for axis in idle if axis in arriving):
                yield "psum", axes, None, dims, _with(pending, axes)
            for axes in _subsets(idle):
                for before, order, first in _appended(dims, axes, every):
                    yield "all_gather", order, first, before, pending
            for kept, taken, first in _shortened(dims):
                if set(taken) <= set(arriving):
                    yield "psum_scatter", taken, first, kept, _with(pending, taken)
            return
        for axes in _subsets(axis for axis in self.sizes if axis in pending):
            rest = _without(pending, axes)
            yield "psum", axes, None, dims, rest
            for after, order, first in _appended(dims, axes, every):
                yield "psum_scatter", order, first, after, rest
        for kept, taken, first in _shortened(dims):
            yield "all_gather", taken, first, kept, pending

    def _all_exchanges(self, node: Node, arriving: Axes | None) -> Iterator[_Move]:
        for group in range(len(self.exchange_groups(node))):
            yield from self._exchanges(node, group, arriving)

    def _exchanges(self, node: Node, group: int, arriving: Axes | None) -> Iterator[_Move]:
        """The all-to-alls that move one of the `exchange_groups`."""
        dims, pending = node.state
        kept, taken, first = (node.shortened or ())[group]
        others = [dim for dim in range(len(dims)) if kept[dim] == dims[dim]]
        for held, order, other in _appended(kept, taken, others):
            yield "all_to_all", *((taken, first) if arriving is None else (order, other)), held, pending

    def _permutes(self, node: Node, _: Axes | None) -> Iterator[_Move]:
        """Moves to every other placement of axes that cuts each dimension into as many parts."""
        dims, pending = node.state
        for placed in self._placements(node.parts, frozenset(pending)):
            if placed != dims:
                changed = {axis for axis, _, _ in node.places ^ self.node((placed, pending)).places}
                axes = tuple([axis for axis in self.sizes if axis in changed])
                yield "ppermute", axes, None, placed, pending

    def _placements(self, parts: tuple[int, ...], taken: frozenset[str]) -> tuple[Dims, ...]:
        """Every placement of axes that are not taken that cuts the dimensions into so many parts."""
        if not parts:
            return ((),)
        key = (parts, taken)
        if key not in self._cuts:
            self._cuts[key] = tuple(
                (axes, *rest)
                for axes in self._products(parts[0], taken)
                for rest in self._placements(parts[1:], taken.union(axes))
            )
        return self._cuts[key]

    def _products(self, parts: int, taken: frozenset[str]) -> Iterator[Axes]:
        """Every sequence of different axes whose sizes multiply to `parts`."""
        if parts == 1:
            yield ()
            return
        for axis, size in self.sizes.items():
            if axis not in taken and parts % size == 0:
                for rest in self._products(parts // size, taken | {axis}):
                    yield (axis, *rest)


def _with(pending: Axes, axes: Axes) -> Axes:
    return tuple(sorted((*pending, *axes)))


def _without(pending: Axes, axes: Axes) -> Axes:
    return tuple([axis for axis in pending if axis not in axes])


def _subsets(axes: Iterable[str]) -> Iterator[Axes]:
    """Every subset but the empty one, in the order of the axes."""
    axes = tuple(axes)
    for size in range(1, len(axes) + 1):
        yield from combinations(axes, size)


def _shortened(dims: Dims) -> Iterator[tuple[Dims, Axes, int]]:
    """Every way to take minor axes away: the dimensions without them, the axes, the first dimension."""
    for cuts in product(*(range(len(axes), -1, -1) for axes in dims)):
        taken = [axes[cut:] for axes, cut in zip(dims, cuts, strict=True)]
        first = next((dim for dim, axes in enumerate(taken) if axes), None)
        if first is not None:
            kept = tuple(axes[:cut] for axes, cut in zip(dims, cuts, strict=True))
            yield kept, tuple(axis for axes in taken for axis in axes), first


def _appended(dims: Dims, axes: Axes, targets: range | list[int]) -> Iterator[tuple[Dims, Axes, int]]:
    """Every way to append all of the axes to dimensions among `targets`: the dimensions with them, the axes
    in the order in which they come to stand, the first dimension."""
    for places in product(targets, repeat=len(axes)):
        members: dict[int, list[str]] = {dim: [] for dim in sorted(set(places))}
        for axis, dim in zip(axes, places, strict=True):
            members[dim].append(axis)
        for ordered in product(*(permutations(own) for own in members.values())):
            found = list(dims)
            for dim, own in zip(members, ordered, strict=True):
                found[dim] = dims[dim] + own
            yield tuple(found), tuple(axis for own in ordered for axis in own), next(iter(members))
