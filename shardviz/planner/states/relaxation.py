"""The least cost of bringing an array to a state, of which only is known what became of each axis.

An axis is at home, where it stands in some state that the search is given, or away, elsewhere; or it is idle,
or sums over it are pending. Every move of `moves` changes these as it does, at its own price, but an axis may
go anywhere, and a slice is free. So a shortest path through the few vectors of such words costs no more than
any path through states, and nearly as much. It is less where axes are in each other's way: to bring A[X, Y]
to A[Y, X] the vector (away, away) becomes (home, home) by one all-to-all, which the array itself cannot do.
Of 3 axes there are 64 vectors, where a matrix has some hundred states (relaxed problems as bounds: Pearl,
"Heuristics", 1984).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from shardviz.planner.states.moves import Axes, Node, StateSpace
from shardviz.planner.states.paths import UNREACHABLE
from shardviz.planner.states.prices import Cost, Prices

HOME, AWAY, IDLE, PENDING = range(4)
"""What became of an axis; a vector of these is a number to base 4."""


class Relaxation:
    """Bounds on the costs between `sources`, with what these have cost, and all other states.

    They are of moves from there, or with `forward` false of moves to there. Sums may be pending over the axes
    of `may_pend`. `whole_bytes` are those of the array on one device.
    """

    def __init__(
        self,
        space: StateSpace,
        prices: Prices,
        whole_bytes: int,
        sources: Iterable[tuple[Node, Cost]],
        may_pend: Iterable[str],
        *,
        forward: bool,
    ) -> None:
        self._space, self._prices, self._whole_bytes, self._forward = space, prices, whole_bytes, forward
        self._axes = tuple(space.sizes)
        self._place = {axis: place for place, axis in enumerate(self._axes)}
        self._sizes = tuple(space.sizes.values())
        sources = list(sources)
        self._homes = frozenset().union(*(node.places for node, _ in sources))
        self._home_dims = {(axis, dim) for axis, dim, _ in self._homes}
        self._by_permute: dict[int, Cost] = {}
        self._in_any_order: dict[tuple[int, int], Cost] = {}
        self._with_home = self._mask(axis for axis, _, _ in self._homes)
        self._may_pend, self._may_mask = self._mask(may_pend), self._mask(space.may_mask)
        self._groups: dict[int, tuple[Axes, int]] = {}
        self._found: dict[int, Cost] = {}
        self._prices_of: dict[tuple[str, int], dict[int, Cost]] = {}
        self._moves_again: dict[tuple[str, int], list[Cost]] = {}
        self._codes: dict[Node, int] = {}
        best: dict[int, Cost] = {}
        for node, cost in sources:
            code = self._code(node)
            best[code] = min(cost, best.get(code, cost))
        self._best = best
        self._heap = [(cost, code) for code, cost in best.items()]
        heapq.heapify(self._heap)

    def least(self, node: Node) -> Cost:
        """No way between the sources and a state costs less."""
        return self._least(self._code_of(node))

    def least_in_any_order(self, node: Node) -> Cost:
        """No way costs less between the sources and a state with the axes of each dimension in some order."""
        code, maybe = self._code_of(node), 0
        for axis, dim, _ in node.places:
            place = self._place[axis]
            if (axis, dim) in self._home_dims:
                code += (AWAY - (code >> 2 * place & 3)) << 2 * place
                maybe |= 1 << place
        return self._least_of(code, maybe)

    def least_after_exchange(self, node: Node, axes: Axes) -> Cost:
        """No way costs less between the sources and the states that an all-to-all of axes makes of one."""
        code, maybe = self._code_of(node), 0
        for axis in axes:
            place = self._place[axis]
            code += (AWAY - (code >> 2 * place & 3)) << 2 * place
            maybe |= 1 << place
        return self._least_of(code, maybe & self._with_home)

    def least_by_permute(self, node: Node) -> Cost:
        """No way costs less between the sources and a state that has a permute next to this."""
        code = self._code_of(node)
        found = self._by_permute.get(code)
        if found is None:
            home, away, idle, _, parts = self._words(code)
            costs = self._costs_again("ppermute", parts)
            found = min(costs[1:], default=UNREACHABLE) + self._least(code)
            for group, change in self._permuted(home, away, idle):
                found = min(found, costs[group] + self._least(code + change))
            self._by_permute[code] = found
        return found

    def _least_of(self, code: int, maybe: int) -> Cost:
        """The least for a vector where some axes that are away in it may be at home."""
        found = self._in_any_order.get((code, maybe))
        if found is None:
            found = min(self._least(code - _spread(home)) for home in (0, *_subsets(maybe)))
            self._in_any_order[code, maybe] = found
        return found

    def _least(self, code: int) -> Cost:
        found = self._found
        while code not in found:
            if not self._heap:
                return UNREACHABLE
            self._settle()
        return found[code]

    def _mask(self, axes: Iterable[str]) -> int:
        return sum(1 << self._place[axis] for axis in set(axes))

    def _code_of(self, node: Node) -> int:
        code = self._codes.get(node)
        if code is None:
            code = self._codes[node] = self._code(node)
        return code

    def _code(self, node: Node) -> int:
        words = [IDLE] * len(self._axes)
        for where in node.places:
            words[self._place[where[0]]] = HOME if where in self._homes else AWAY
        for axis in node.state[1]:
            words[self._place[axis]] = PENDING
        return sum(word << 2 * place for place, word in enumerate(words))

    def _settle(self) -> None:
        cost, code = heapq.heappop(self._heap)
        if code in self._found:
            return
        self._found[code] = cost
        best, found = self._best, self._found
        for added, change in self._changes(code):
            after = code + change
            if after not in found:
                reached = cost + added
                known = best.get(after)
                if known is None or reached < known:
                    best[after] = reached
                    heapq.heappush(self._heap, (reached, after))

    def _changes(self, code: int) -> Iterator[tuple[Cost, int]]:
        """The costs of moves, and by how much they change a vector."""
        home, away, idle, pending, parts = self._words(code)
        split = home | away
        if self._forward:
            yield from ((0, change) for bit in _bits(idle) for change in self._landed(bit, IDLE))
            for group in _subsets(idle & self._may_mask):
                yield self._price("mask", group, parts, parts), _spread(group)
            for group in _subsets(split):
                after = parts // self._group(group)[1]
                yield self._price("all_gather", group, parts, after), self._to_idle(group, home)
            for group in _subsets(pending):
                yield self._price("psum", group, parts, parts), -_spread(group)
                cost = self._price("psum_scatter", group, parts, parts * self._group(group)[1])
                for change in self._landed(group, PENDING):
                    yield cost, change
        else:
            yield from ((0, self._to_idle(bit, home)) for bit in _bits(split))
            for group in _subsets(pending & self._may_mask):
                yield self._price("mask", group, parts, parts), -_spread(group)
            for group in _subsets(idle):
                cost = self._price("all_gather", group, parts * self._group(group)[1], parts)
                for change in self._landed(group, IDLE):
                    yield cost, change
            for group in _subsets(idle & self._may_pend):
                yield self._price("psum", group, parts, parts), _spread(group)
            for group in _subsets(split & self._may_pend):
                before = parts // self._group(group)[1]
                cost = self._price("psum_scatter", group, before, parts)
                yield cost, self._to_idle(group, home) + _spread(group)
        costs = self._costs_again("all_to_all", parts)
        for group in _subsets(home | away & self._with_home):
            yield costs[group], _spread(group & home) - _spread(group & away)
        costs = self._costs_again("ppermute", parts)
        for group, change in self._permuted(home, away, idle):
            yield costs[group], change

    def _words(self, code: int) -> tuple[int, int, int, int, int]:
        """The axes at home, away, idle and pending, and the parts into which they cut the array."""
        home = away = idle = pending = 0
        parts = 1
        for place, size in enumerate(self._sizes):
            word = code >> 2 * place & 3
            bit = 1 << place
            if word == IDLE:
                idle |= bit
            elif word == PENDING:
                pending |= bit
            else:
                parts *= size
                if word == HOME:
                    home |= bit
                else:
                    away |= bit
        return home, away, idle, pending, parts

    def _to_idle(self, group: int, home: int) -> int:
        """The changes of a vector where axes become idle that split the array."""
        return 2 * _spread(group & home) + _spread(group & ~home)

    def _landed(self, group: int, word: int) -> Iterator[int]:
        """The changes of a vector where axes with a word come to split the array, each at home or away."""
        yield -(word - AWAY) * _spread(group)
        for home in _subsets(group & self._with_home):
            yield -(word - AWAY) * _spread(group) - _spread(home)

    def _permuted(self, home: int, away: int, idle: int) -> Iterator[tuple[int, int]]:
        """The axes that change, and how a vector does, where an array is cut into as many parts as before."""
        ways = [(0, 0, 1, 1)]
        for place, size in enumerate(self._sizes):
            bit, unit = 1 << place, 1 << 2 * place
            if bit & idle:
                changes = [(-unit, size, 1)]
                if bit & self._with_home:
                    changes.append((-2 * unit, size, 1))
            elif bit & home:
                changes = [(unit, 1, 1), (2 * unit, 1, size)]
            elif bit & away:
                changes = [(unit, 1, size)]
                if bit & self._with_home:
                    changes.append((-unit, 1, 1))
            else:
                continue
            ways += [
                (group | bit, change + more, gained * gains, lost * loses)
                for group, change, gained, lost in ways
                for more, gains, loses in changes
            ]
        for group, change, gained, lost in ways[1:]:
            if gained == lost:
                yield group, change

    def _group(self, group: int) -> tuple[Axes, int]:
        found = self._groups.get(group)
        if found is None:
            axes = tuple(axis for place, axis in enumerate(self._axes) if group >> place & 1)
            found = self._groups[group] = self._space.whole(axes), self._space.group_size(axes)
        return found

    def _price(self, op: str, group: int, before: int, after: int) -> Cost:
        """The price of a move of an array in so many parts before and after."""
        known = self._prices_of.setdefault((op, before), {})
        found = known.get(group)
        if found is None:
            whole = self._whole_bytes
            found = known[group] = self._prices.move_in_any_order(
                op, self._group(group)[0], whole // before, whole // after
            )
        return found

    def _costs_again(self, op: str, parts: int) -> list[Cost]:
        """For each group the least price of a move over these axes, and others which it takes from where they
        are to where they are."""
        found = self._moves_again.get((op, parts))
        if found is None:
            count = len(self._axes)
            found = [0] * (1 << count)
            for group in range((1 << count) - 1, 0, -1):
                found[group] = min(
                    self._price(op, group, parts, parts),
                    *(found[group | 1 << place] for place in range(count) if not group >> place & 1),
                    UNREACHABLE,
                )
            self._moves_again[op, parts] = found
        return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask -= bit


def _subsets(mask: int) -> Iterator[int]:
    """Every subset but the empty one."""
    group = mask
    while group:
        yield group
        group = (group - 1) & mask


_SPREAD: dict[int, int] = {}


def _spread(mask: int) -> int:
    """A number to base 4 with a 1 at each place of a mask."""
    found = _SPREAD.get(mask)
    if found is None:
        found = _SPREAD[mask] = sum(bit * bit for bit in _bits(mask))
    return found
