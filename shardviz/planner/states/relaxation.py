"""The least cost of bringing an array to a state, of which only is known what became of each axis.

An axis is at home, where it stands in some state that the search is given, or away, elsewhere; or it is idle,
or sums over it are pending. Every move of `moves` changes these as it does, at its own price, but an axis may
go anywhere, and a slice is free. So a shortest path through the few vectors of such words costs no more than
any path through states: to bring A[X, Y] to A[Y, X] the vector (away, away) becomes (home, home) by one
all-to-all, which the array itself cannot do (relaxed problems as bounds: Pearl, "Heuristics", 1984)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from shardviz.planner.states.moves import STAGES, Node, StateSpace, remembered
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices

HOME, AWAY, IDLE, PENDING = range(4)
"""What became of an axis; a vector of these is a number to base 4."""
_CHANGES = {
    "mask": ((IDLE, PENDING),),
    "pad": ((HOME, PENDING), (AWAY, PENDING)),
    "all_gather": ((HOME, IDLE), (AWAY, IDLE)),
    "psum": ((PENDING, IDLE),),
    "psum_scatter": ((PENDING, HOME), (PENDING, AWAY)),
    "all_to_all": ((HOME, AWAY), (AWAY, HOME)),
    "ppermute": ((HOME, AWAY), (AWAY, HOME), (HOME, IDLE), (AWAY, IDLE), (IDLE, HOME), (IDLE, AWAY)),
    "slice": ((IDLE, HOME), (IDLE, AWAY)),
}
"""What each operation makes of the word of an axis over which it is, before and after it."""
_EXCHANGES = ("all_to_all", "ppermute")
"""The operations that may leave what is away away."""


class Relaxation:
    """Bounds on the costs between `sources`, with what these have cost, and all other states: of moves from
    there, or without `forward` to there. Sums may pend over `may_pend`. `whole_bytes` are the array's."""

    def __init__(
        self,
        space: StateSpace,
        prices: Prices,
        whole_bytes: int,
        sources: Mapping[Node, Cost],
        may_pend: Iterable[str],
        *,
        forward: bool,
    ) -> None:
        self._space, self._prices, self._whole_bytes = space, prices, whole_bytes
        self._units = {axis: 4**index for index, axis in enumerate(space.sizes)}
        self._homes = frozenset().union(*(node.places for node in sources))
        self._home_dims = {(axis, dim) for axis, dim, _ in self._homes}
        self._with_home = frozenset(axis for axis, _ in self._home_dims)
        # From the sources on, and back to them.
        self._moves, self._moves_back = (
            _relaxed_moves(space, self._with_home, frozenset(may_pend), way) for way in (forward, not forward)
        )
        # By group of axes, of arrays of this size: relaxations from other sources have the same.
        costs = prices.bounds.setdefault((space, whole_bytes), {})
        self._costs: dict[tuple[bool, str, int], _GroupCosts] = costs
        # What it takes to settle a vector, whose moves are lists of vectors.
        self._looks = 1 + 3 ** len(space.sizes) // 128
        self._found: dict[int, Cost] = {}
        # The least by a stage next to a vector, and the limit up to which it was sought.
        self._by_stage: dict[tuple[int, int], tuple[Cost, Cost]] = {}
        self._best: dict[int, Cost] = {}
        for node, cost in sources.items():
            code = self._code(node)
            self._best[code] = min(cost, self._best.get(code, cost))
        self._heap = [(cost, code) for code, cost in self._best.items()]
        heapq.heapify(self._heap)

    def least(self, node: Node, limit: Cost = UNREACHABLE) -> Cost:
        """No way between the sources and a state costs less; from a limit on there may be more to it."""
        return self._least(self._code(node), limit)

    def least_in_any_order(self, node: Node, limit: Cost = UNREACHABLE) -> Cost:
        """No way costs less between the sources and a state with the axes of each dimension in some order."""
        at_home = [axis for axis, dim, _ in node.places if (axis, dim) in self._home_dims]
        return self.least_after_exchange(node, at_home, limit)

    def least_by(self, node: Node, stage: int, limit: Cost = UNREACHABLE) -> Cost:
        """No way between the sources and a state costs less that has a move of a stage next to this."""
        code = self._code(node)
        least, sought = self._by_stage.get((code, stage), (0, 0))
        if sought <= least < limit:
            least = limit
            for op in STAGES[stage]:
                costs = self._costs_of(self._moves_back, op, code)
                for group, after in self._moves_back.of(op, code):
                    if (cost := costs[group]) < least:
                        least = min(least, cost + self._least(after, least - cost))
            self._by_stage[code, stage] = least, limit
        return least

    def least_after_exchange(self, node: Node, axes: Iterable[str], limit: Cost = UNREACHABLE) -> Cost:
        """No way costs less between the sources and the states that an all-to-all of axes makes of one: the
        least for its vector, but with these axes at home, which costs no more than away, where they have
        one."""
        code = self._code(node)
        for axis in axes:
            unit = self._units[axis]
            code += ((HOME if axis in self._with_home else AWAY) - code // unit % 4) * unit
        return self._least(code, limit)

    @remembered
    def _code(self, node: Node) -> int:
        words = dict.fromkeys(self._units, IDLE)
        for axis, dim, cut in node.places:
            words[axis] = HOME if (axis, dim, cut) in self._homes else AWAY
        words |= dict.fromkeys(node.state[1], PENDING)
        return sum(words[axis] * unit for axis, unit in self._units.items())

    def _least(self, code: int, limit: Cost) -> Cost:
        """Settle vectors until this one is, or all that are left cost as much as a limit (Dijkstra)."""
        best, distances, heap = self._best, self._found, self._heap
        while code not in distances:
            if not heap:
                return UNREACHABLE
            if heap[0][0] >= limit:
                return heap[0][0]
            self._prices.look(self._looks)
            cost, settled = heapq.heappop(heap)
            if settled in distances:
                continue
            distances[settled] = cost
            for op in _CHANGES:
                costs = self._costs_of(self._moves, op, settled)
                for group, after in self._moves.of(op, settled):
                    reached = cost + costs[group]
                    earlier = best.get(after)
                    if earlier is None or reached < earlier:
                        best[after] = reached
                        heapq.heappush(heap, (reached, after))
        return distances[code]

    def _costs_of(self, moves: _RelaxedMoves, op: str, code: int) -> Mapping[int, Cost]:
        """By group of axes the least cost of an operation over it of an array with a vector, or to it."""
        key = moves.forward, op, moves.parts(code)
        costs = self._costs.get(key)
        if costs is None:
            costs = self._costs[key] = _GroupCosts(self._space, self._prices, self._whole_bytes, *key)
        return costs


class _RelaxedMoves:
    """The moves between vectors, or backward, of arrays of any size."""

    def __init__(
        self, space: StateSpace, with_home: frozenset[str], may_pend: frozenset[str], forward: bool
    ) -> None:
        self.forward = forward
        self._sizes = tuple(space.sizes.values())
        # By operation, axis and word before: the changes of the vector.
        self._changes: dict[str, list[tuple[list[int], ...]]] = {}
        for op, changes in _CHANGES.items():
            self._changes[op] = []
            for index, axis in enumerate(space.sizes):
                own: tuple[list[int], ...] = ([], [], [], [])
                may_change = op not in space.made_pending or axis in space.made_pending[op]
                if not forward and op in ("psum", "psum_scatter"):
                    may_change = axis in may_pend
                for before, after in changes if may_change else ():
                    old, new = (before, after) if forward else (after, before)
                    if new != HOME or axis in with_home:
                        own[old].append((new - old) << 2 * index)
                self._changes[op].append(own)

    @remembered
    def of(self, op: str, code: int) -> list[tuple[int, int]]:
        """The groups of axes over which an operation may be, each with the vector at its other end."""
        moves = [(0, code)]
        for index, changes in enumerate(self._changes[op]):
            if own := changes[code >> 2 * index & 3]:
                # Of slices, which are free, each axis alone.
                others = moves[:1] if op == "slice" else moves
                moves = moves + [
                    (group | 1 << index, after + change) for change in own for group, after in others
                ]
        if op not in _EXCHANGES:
            del moves[0]
        elif op == "ppermute":
            parts = self.parts(code)
            moves = [move for move in moves if self.parts(move[1]) == parts]
        return moves

    @remembered
    def parts(self, code: int) -> int:
        """The parts into which axes with these words cut an array."""
        return math.prod([size for index, size in enumerate(self._sizes) if code >> 2 * index & 3 <= AWAY])


_relaxed_moves = lru_cache(maxsize=64)(_RelaxedMoves)
"""The moves between vectors, the same object each time."""


class _GroupCosts(dict[int, Cost]):
    """By group of axes the least cost of an operation over it, of an array that is cut into so many parts
    before it, or behind it where it is not `forward`; all-to-alls and permutes may be over more axes."""

    def __init__(
        self, space: StateSpace, prices: Prices, whole_bytes: int, forward: bool, op: str, parts: int
    ) -> None:
        self._space, self._prices, self._whole_bytes = space, prices, whole_bytes
        self._forward, self._op, self._parts = forward, op, parts

    def __missing__(self, group: int) -> Cost:
        cost = self._cost(group) if group else UNREACHABLE
        if self._op in _EXCHANGES:
            bits = (1 << index for index in range(len(self._space.sizes)))
            cost = min(cost, *(self[group | bit] for bit in bits if not group & bit), UNREACHABLE)
        self[group] = cost
        return cost

    def _cost(self, group: int) -> Cost:
        op, parts, space = self._op, self._parts, self._space
        axes = tuple([axis for index, axis in enumerate(space.sizes) if group >> index & 1])
        devices, others = space.group_size(axes), parts
        if op == "slice":
            return 0
        if op in ("all_gather", "pad", "psum_scatter"):
            others = parts * devices if (op == "psum_scatter") == self._forward else parts // devices
        ends = self._whole_bytes // parts, self._whole_bytes // others
        return self._prices.move_in_any_order(op, space.whole(axes), *(ends if self._forward else ends[::-1]))
