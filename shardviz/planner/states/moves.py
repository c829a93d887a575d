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
    pad           minor axes become pending sums: every device pads its piece with zeros, nothing is sent

Only the minor end of a dimension can be gathered or moved: taking the major axis away would leave a device
with rows that are not adjacent. The axes are those of the mesh, or parts of these (`axis_parts`), and each
move is listed once, with the axes of its groups in the order in which it takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import chain, combinations, permutations, product
from types import MethodType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from shardviz.planner.plan import LOCAL_OPS, Step
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape
from shardviz.sharding.axis_parts import joined_parts

Axes = tuple[str, ...]
Dims = tuple[Axes, ...]
State = tuple[Dims, Axes]
"""The axes of each dimension, and those over which the array is a pending sum, ordered by name."""


def state_of(spec: PartitionSpec, mesh: Mesh) -> State:
    """A spec as a state; axes of size 1 split nothing and are left out."""

    def wide(axes: Axes) -> Axes:
        return tuple(axis for axis in axes if mesh.axis_size(axis) > 1)

    return tuple(wide(dim) for dim in spec.dims), wide(spec.unreduced)


def spec_of(state: State, mesh: Mesh | None = None) -> PartitionSpec:
    """A state as a spec; on a `mesh` adjacent parts of an axis are written as one."""
    dims, unreduced = state
    if mesh is not None and any(":" in axis for axes in (*dims, unreduced) for axis in axes):
        dims = tuple(joined_parts(axes, mesh.shape) for axes in dims)
        unreduced = joined_parts(sorted(unreduced), mesh.shape)
    return PartitionSpec(dims, unreduced)


class PathMove(NamedTuple):
    """One operation on one array: see `Step` for `op`, `axes` and `dim`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State


def move_step(array: ShardedArray, mesh: Mesh, move: PathMove) -> Step:
    """A move as a step without a reason, adjacent parts of an axis as one (bytes: Chan et al. 2007)."""
    op, axes, dim, *ends = move
    before, after = (spec_of(state, mesh) for state in ends)
    shape = shard_shape(array.shape, after if op in ("all_gather", "pad") else before, mesh)
    size = array_bytes(shape, array.dtype)
    wire_bytes = wire_bytes_of(op, size, mesh.group_size(axes))
    return Step(op, array.name, axes, dim, before, after, shape, array.dtype, size, wire_bytes)


def wire_bytes_of(op: str, size: int, devices: int) -> int:
    """Bytes that one device of a group must send, where `size` is as in `Step.bytes`: (N-1)/N of the larger
    side, twice that for a psum, rounded up; the operand for a ppermute."""
    if op in LOCAL_OPS:
        return 0
    if op == "ppermute":
        return size
    return -(-(2 if op in ("psum", "pmax") else 1) * size * (devices - 1) // devices)


P = ParamSpec("P")
R = TypeVar("R")


def remembered(method: Callable[Concatenate[Any, P], R]) -> cached_property[Callable[P, R]]:
    """A method whose results each object keeps by the arguments: `functools.cache` with the object's life."""

    def of(own: object) -> Callable[P, R]:
        return cast("Callable[P, R]", cache(MethodType(method, own)))

    return cached_property(of)


STAGES = (("mask", "slice"), ("psum", "all_gather", "psum_scatter", "pad"), ("all_to_all",), ("ppermute",))
"""The operations, in groups: those of the last are the most, and seldom the cheapest way on."""
EXCHANGES = len(STAGES)
"""From here on a stage is one group of axes that an all-to-all moves, by its number."""


class Node:
    """A state of arrays of one rank: `parts` are the pieces of each dimension, `places` the axes that split
    it, each with its dimension and the pieces into which the axes before it cut that."""

    __slots__ = ("parts", "places", "state")

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


class StateMove(NamedTuple):
    """A move to or from another state; `dim` is the first that is gathered, moved away, scattered or cut."""

    op: str
    axes: Axes
    dim: int | None
    other: Node


_Move = tuple[str, Axes, int | None, Dims, Axes]
"""The operation, axes and dimension of a move, and the state at its other end."""
_Taken = tuple[Dims, Axes, int | None]
"""Axes that a move takes: the dimensions without them, the axes, the first dimension that had some."""
_CARRIES = {
    "slice": ("idle", "split"),
    "mask": ("idle", "pending"),
    "pad": ("split", "pending"),
    "all_gather": ("split", "idle"),
    "psum": ("pending", "idle"),
    "psum_scatter": ("pending", "split"),
    "all_to_all": ("split", "split"),
}
"""The places from which an operation takes axes, and to which it brings them: those that split a dimension,
those over which sums are pending, and those that do neither. Backward it is the other way round."""


@lru_cache(maxsize=8)  # problems on one mesh share the states and the moves between them
def state_space(
    sizes: tuple[tuple[str, int], ...],
    mesh_shape: tuple[tuple[str, int], ...],
    may_mask: frozenset[str],
    may_pad: frozenset[str] = frozenset(),
) -> StateSpace:
    """The states over these axis parts, the same object each time."""
    return StateSpace(dict(sizes), dict(mesh_shape), may_mask, may_pad)


class StateSpace:
    """The states of arrays of one rank over some axis parts, made as they are reached. `sizes` are the
    devices along each part, in the mesh's order; only over parts in `may_mask` does a copy become a pending
    sum, and over those in `may_pad` shards do. Moves name whole axes where these are over all their parts."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        mesh_shape: Mapping[str, int],
        may_mask: frozenset[str] = frozenset(),
        may_pad: frozenset[str] = frozenset(),
    ) -> None:
        self.sizes = dict(sizes)
        self.made_pending = {"mask": may_mask, "pad": may_pad}
        self._mesh_shape = mesh_shape
        self._has_parts = any(":" in axis for axis in sizes)

    @remembered
    def node(self, state: State) -> Node:
        """The node of a state, which is the same one each time."""
        return Node(state, self.sizes)

    @remembered
    def group_size(self, axes: Axes) -> int:
        return math.prod([self.sizes[axis] for axis in axes])

    @remembered
    def whole(self, axes: Axes) -> Axes:
        """The axes, of which adjacent parts are one."""
        return joined_parts(axes, self._mesh_shape)

    @remembered
    def moves(self, node: Node, stage: int, arriving: Axes | None = None) -> tuple[StateMove, ...]:
        """Every move from a state by a stage's operations; or to it, with sums over `arriving` alone."""
        if stage >= EXCHANGES:
            moves = self._carried(node, "all_to_all", arriving, self.shortened(node)[stage - EXCHANGES :][:1])
        elif STAGES[stage] == ("ppermute",):
            moves = self._permutes(node)
        else:
            moves = chain.from_iterable(self._carried(node, op, arriving) for op in STAGES[stage])
        return tuple(
            StateMove(op, self.whole(axes) if self._has_parts else axes, dim, self.node((dims, pending)))
            for op, axes, dim, dims, pending in moves
        )

    @remembered
    def shortened(self, node: Node) -> list[_Taken]:
        """Every way to take minor axes away, as an all-to-all may."""
        dims = node.state[0]
        ways: list[_Taken] = []
        for cuts in product(*(range(len(axes), -1, -1) for axes in dims)):
            taken = [axes[cut:] for axes, cut in zip(dims, cuts, strict=True)]
            first = next((dim for dim, axes in enumerate(taken) if axes), None)
            if first is not None:
                kept = tuple(axes[:cut] for axes, cut in zip(dims, cuts, strict=True))
                ways.append((kept, tuple(axis for axes in taken for axis in axes), first))
        return ways

    def _carried(
        self, node: Node, op: str, arriving: Axes | None, groups: Iterable[_Taken] | None = None
    ) -> Iterator[_Move]:
        """The moves from a state, or to it, that carry axes between places, of some or all groups."""
        dims, pending = node.state
        is_forward = arriving is None
        source, target = _CARRIES[op] if is_forward else _CARRIES[op][::-1]
        if groups is None and source == "split":
            groups = self.shortened(node)
        elif groups is None:
            used = {axis for axes in dims for axis in axes}.union(pending)
            movable = [
                axis for axis in self.sizes if (axis in pending if source == "pending" else axis not in used)
            ]
            groups = ((dims, axes, None) for axes in subsets(movable))
        may_pend: frozenset[str] | None = None
        if op in self.made_pending:
            may_pend = self.made_pending[op]
        elif target == "pending":
            may_pend = frozenset(arriving or ())
        for kept, taken, first in groups:
            if may_pend is not None and not may_pend.issuperset(taken):
                continue
            rest = pending
            if source == "pending":
                rest = tuple([axis for axis in pending if axis not in taken])
            if target != "split":
                yield op, taken, first, kept, tuple(sorted((*rest, *taken))) if target == "pending" else rest
                continue
            others = [dim for dim in range(len(dims)) if kept[dim] == dims[dim]]
            for held, order, other in _appended(kept, taken, others):
                own = (taken, first) if source == "split" and is_forward else (order, other)
                yield op, *own, held, rest

    def _permutes(self, node: Node) -> Iterator[_Move]:
        """Moves to every other placement of axes that cuts each dimension into as many parts."""
        dims, pending = node.state
        for placed in self._placements(node.parts, frozenset(pending)):
            if placed != dims:
                changed = {axis for axis, _, _ in node.places ^ self.node((placed, pending)).places}
                axes = tuple([axis for axis in self.sizes if axis in changed])
                yield "ppermute", axes, None, placed, pending

    @remembered
    def _placements(self, parts: tuple[int, ...], taken: frozenset[str]) -> tuple[Dims, ...]:
        """Every placement of axes that are not taken that cuts the dimensions into so many parts."""
        if not parts:
            return ((),)
        return tuple(
            (axes, *rest)
            for axes in self._products(parts[0], taken)
            for rest in self._placements(parts[1:], taken.union(axes))
        )

    def _products(self, parts: int, taken: frozenset[str]) -> Iterator[Axes]:
        """Every sequence of different axes whose sizes multiply to `parts`."""
        if parts == 1:
            yield ()
            return
        for axis, size in self.sizes.items():
            if axis not in taken and parts % size == 0:
                for rest in self._products(parts // size, taken | {axis}):
                    yield (axis, *rest)


def subsets(axes: Iterable[str]) -> Iterator[Axes]:
    """Every subset but the empty one, in the order of the axes."""
    axes = tuple(axes)
    for size in range(1, len(axes) + 1):
        yield from combinations(axes, size)


def _appended(dims: Dims, axes: Axes, targets: list[int]) -> Iterator[tuple[Dims, Axes, int]]:
    """Every way to append the axes to `targets`: dimensions, axes as they then stand, first dimension."""
    for places in product(targets, repeat=len(axes)):
        members: dict[int, list[str]] = {dim: [] for dim in sorted(set(places))}
        for axis, dim in zip(axes, places, strict=True):
            members[dim].append(axis)
        for ordered in product(*(permutations(own) for own in members.values())):
            appended = list(dims)
            for dim, own in zip(members, ordered, strict=True):
                appended[dim] = dims[dim] + own
            yield tuple(appended), tuple(axis for own in ordered for axis in own), next(iter(members))
