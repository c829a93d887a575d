"""The moves that change how one array is split, and what each costs on the wire.

A state is where an array's axes are: the axes of every dimension (major first) and the axes over
which it is still a pending sum. Every move is one operation of JAX inside `shard_map`, over whole mesh
axes:

    all_gather    the minor axes of a dimension are dropped; devices concatenate their pieces
    all_to_all    the minor axes of a dimension move to the minor end of another
    ppermute      the same cut of the array, its blocks on other devices
    psum          pending sums are added; everyone gets the total
    psum_scatter  pending sums are added; everyone gets one piece of the total
    slice         an idle axis cuts a dimension further; every device keeps its part, nothing is sent

Only the minor end of a dimension can be gathered or moved: taking the major axis away would leave a
device with rows that do not lie next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, permutations

from shardviz.sharding import Mesh, PartitionSpec, array_bytes

MAX_PLACEMENTS = 256
"""Permutes looked at from one state; five axes of the same size have 120 or fewer."""

Axes = tuple[str, ...]
State = tuple[tuple[Axes, ...], Axes]


@dataclass(frozen=True)
class ReshardMove:
    """One operation on one array: see `Step` for `dim`, `shape`, `bytes` and `wire_bytes`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State
    shape: tuple[int, ...]
    bytes: int
    wire_bytes: int


def state_of(spec: PartitionSpec, mesh: Mesh) -> State:
    """A spec as a state; axes of size 1 split nothing and are left out."""

    def wide(axes: Axes) -> Axes:
        return tuple(axis for axis in axes if mesh.axis_size(axis) > 1)

    return tuple(wide(dim) for dim in spec.dims), wide(spec.unreduced)


def spec_of(state: State) -> PartitionSpec:
    dims, unreduced = state
    return PartitionSpec(dims, unreduced)


@dataclass(frozen=True)
class Shards:
    """The pieces of one array under any state: their shapes and bytes, and the moves between states.

    `pool` are the mesh axes that moves may use.
    """

    shape: tuple[int, ...]
    dtype: str
    sizes: dict[str, int]
    pool: Axes

    def local_shape(self, state: State) -> tuple[int, ...]:
        return tuple(-(-size // self._parts(axes)) for size, axes in zip(self.shape, state[0], strict=True))

    def local_bytes(self, state: State) -> int:
        return array_bytes(self.local_shape(state), self.dtype)

    def divides(self, state: State) -> bool:
        """Every dimension is cut into equal parts."""
        return all(size % self._parts(axes) == 0 for size, axes in zip(self.shape, state[0], strict=True))

    def _parts(self, axes: Axes) -> int:
        parts = 1
        for axis in axes:
            parts *= self.sizes[axis]
        return parts

    def move(self, op: str, axes: Axes, dim: int | None, before: State, after: State) -> ReshardMove:
        """The move with its bytes: (N-1)/N of the larger side for a gather, a scatter and an all-to-all,
        twice that for a psum, rounded up; the operand for a ppermute (Chan et al. 2007; see `Step`)."""
        larger = after if op == "all_gather" else before
        shape = self.local_shape(larger)
        size = array_bytes(shape, self.dtype)
        n = self._parts(axes)
        if op == "slice":
            wire = 0
        elif op == "ppermute":
            wire = size
        else:
            wire = -(-(2 if op == "psum" else 1) * size * (n - 1) // n)
        return ReshardMove(op, axes, dim, before, after, shape, size, wire)

    def moves(self, state: State) -> Iterator[ReshardMove]:
        """Every move from `state` to a state that cuts the dimensions into equal parts."""
        kinds = (self._slices, self._reductions, self._gathers, self._exchanges, self._permutes)
        return (move for kind in kinds for move in kind(state) if self.divides(move.after))

    def _slices(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        used = {axis for axes in dims for axis in axes}.union(unreduced)
        idle = [axis for axis in self.pool if axis not in used]
        for dim in range(len(dims)):
            for axis in idle:
                yield self.move(
                    "slice", (axis,), dim, state, (_with(dims, dim, (*dims[dim], axis)), unreduced)
                )

    def _reductions(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for count in range(1, len(unreduced) + 1):
            for axes in combinations(unreduced, count):
                rest = tuple(axis for axis in unreduced if axis not in axes)
                yield self.move("psum", axes, None, state, (dims, rest))
                for ordered in permutations(axes):
                    for dim in range(len(dims)):
                        after = (_with(dims, dim, dims[dim] + ordered), rest)
                        yield self.move("psum_scatter", ordered, dim, state, after)

    def _gathers(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for dim, axes in enumerate(dims):
            for cut in range(len(axes)):
                after = (_with(dims, dim, axes[:cut]), unreduced)
                yield self.move("all_gather", axes[cut:], dim, state, after)

    def _exchanges(self, state: State) -> Iterator[ReshardMove]:
        dims, unreduced = state
        for source, axes in enumerate(dims):
            for cut in range(len(axes)):
                shorter = _with(dims, source, axes[:cut])
                for target in range(len(dims)):
                    if target != source:
                        after = (_with(shorter, target, dims[target] + axes[cut:]), unreduced)
                        yield self.move("all_to_all", axes[cut:], source, state, after)

    def _permutes(self, state: State) -> Iterator[ReshardMove]:
        """To every other placement of axes that cuts each dimension into as many parts."""
        dims, unreduced = state
        free = tuple(axis for axis in self.pool if axis not in unreduced)
        wanted = tuple(self._parts(axes) for axes in dims)
        for placed in islice(self._placements(wanted, free), MAX_PLACEMENTS):
            if placed != dims:
                changed = [
                    axis for old, new in zip(dims, placed, strict=True) if old != new for axis in old + new
                ]
                axes = tuple(axis for axis in self.sizes if axis in changed)
                yield self.move("ppermute", axes, None, state, (placed, unreduced))

    def _placements(self, wanted: tuple[int, ...], free: Axes) -> Iterator[tuple[Axes, ...]]:
        if not wanted:
            yield ()
            return
        for axes in self._products(wanted[0], free):
            left = tuple(axis for axis in free if axis not in axes)
            for rest in self._placements(wanted[1:], left):
                yield (axes, *rest)

    def _products(self, parts: int, free: Axes) -> Iterator[Axes]:
        """Every sequence of different axes whose sizes multiply to `parts`."""
        if parts == 1:
            yield ()
            return
        for axis in free:
            if parts % self.sizes[axis] == 0:
                left = tuple(other for other in free if other != axis)
                for rest in self._products(parts // self.sizes[axis], left):
                    yield (axis, *rest)


def _with(dims: tuple[Axes, ...], dim: int, axes: Axes) -> tuple[Axes, ...]:
    return (*dims[:dim], axes, *dims[dim + 1 :])
