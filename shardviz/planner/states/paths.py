"""The moves of one array between its states: what is asked of every search for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.planner.states.moves import Axes, Node, State, StateSpace
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import array_bytes

UNREACHABLE: Cost = 1 << 1024
"""More than anything costs."""


class ArrayKind(NamedTuple):
    """An array as the prices of its moves depend on it. `uneven` are the splits of its dimensions that may
    leave parts of different sizes, because somebody gives or wants them: (dimension, axes)."""

    shape: tuple[int, ...]
    dtype: str
    uneven: frozenset[tuple[int, Axes]] = frozenset()


@dataclass(frozen=True)
class PathMove:
    """One operation on one array: see `Step` for `op`, `axes` and `dim`."""

    op: str
    axes: Axes
    dim: int | None
    before: State
    after: State


class ArrayPaths(ABC):
    """The moves of an array from where it is to any state, or from any state to where it may end.

    `sources` are the states in which the array can be to begin with, with what that has cost. With
    `ends_pending` the search runs backward: the sources are states in which the array may end, and the costs
    those of the moves from a state to there, over which axes sums may be pending on the way.
    """

    def __init__(
        self,
        space: StateSpace,
        kind: ArrayKind,
        prices: Prices,
        sources: Mapping[State, Cost],
        ends_pending: Axes | None = None,
    ) -> None:
        self.kind = kind
        self._space, self._prices = space, prices
        self._is_forward = ends_pending is None
        self._bytes: dict[tuple[int, ...], int] = {}
        self._fitting: dict[Node, bool] = {}
        self.sources = tuple(space.node(state) for state in sources)
        self.pending = space.may_mask.union(axis for _, pending in sources for axis in pending)
        # Over which axes sums may be pending before the array is in a state.
        before = self.pending if ends_pending is None else ends_pending
        self._pending_before = tuple(axis for axis in space.sizes if axis in before)

    @abstractmethod
    def cost(self, state: State, limit: Cost | None = None) -> Cost | None:
        """The cost of having the array in a state; None where no moves lead to it, or none for less than
        `limit`."""

    @abstractmethod
    def least(self, state: State) -> Cost:
        """The cost of a state, where it is known; else the state costs no less."""

    @abstractmethod
    def least_in_any_order(self, state: State) -> Cost:
        """No state costs less that has the axes of each dimension in some order."""

    @abstractmethod
    def added(self, state: State) -> Cost:
        """The cost of the moves to a state whose cost has been found, without that of their source."""

    @abstractmethod
    def path(self, state: State) -> tuple[State, tuple[PathMove, ...]]:
        """The source of a path to a state, and the moves from there, or backward to there. Raises `KeyError`
        where there is none."""

    def local_bytes(self, state: State) -> int:
        """The bytes of a device's piece of the array in a state."""
        return self._local_bytes(self._space.node(state))

    def _local_bytes(self, node: Node) -> int:
        found = self._bytes.get(node.parts)
        if found is None:
            shape = [-(-size // parts) for size, parts in zip(self.kind.shape, node.parts, strict=True)]
            found = self._bytes[node.parts] = array_bytes(shape, self.kind.dtype)
        return found

    def _fits(self, node: Node) -> bool:
        """Every dimension is cut into equal parts, or as somebody has it."""
        found = self._fitting[node] = all(
            size % parts == 0 or (dim, node.state[0][dim]) in self.kind.uneven
            for dim, (size, parts) in enumerate(zip(self.kind.shape, node.parts, strict=True))
        )
        return found
