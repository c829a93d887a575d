"""A cost below which no plan of a program can go.

A plan may move an array once and use the copy several times. Here every array is charged the moves to one of
its uses, the next; for its other uses it is there as they need it, also with pending sums. What is left is a
forest of statements each of whose arrays is used once, so its best plan is found as that of a tree is. In
H = A·W; G = A·V; Y = H + G the moves of A are charged to H alone, and the least costs of H and of G lead to
that of Y.

Of a state either all is known (`lower_bound`), or, where there are too many of them, only into how many
pieces each dimension is cut and over how many devices sums are pending (`piece_bound`): numbers that multiply
to a divisor of the number of devices. A move then takes what its devices must receive, at the rate at which
the fastest collective receives:

of what they need those bytes that no alignment of the pieces leaves them with
of pending sums all that they need; and all devices together what it takes to add n arrays of B bytes,
(n - 1) B, and to bring the total to all that need it (Chan et al. 2007)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import floor, inf
from typing import NamedTuple

from shardviz.hardware.measured import corners
from shardviz.planner.problem.functions import FUNCTIONS, local_work
from shardviz.planner.statements.program_planner import ArrayUses, StatementForm
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import splittable_dims
from shardviz.planner.states.moves import State, StateSpace
from shardviz.planner.states.paths import ArrayKind, CheapestPaths, FreePaths
from shardviz.planner.states.prices import LARGE, UNREACHABLE, Cost, Prices
from shardviz.sharding import array_bytes

MOST_FOLLOWED = 64
"""Devices up to which intermediates are followed from one number of pieces to another: with more they are
where they are needed, for nothing."""
SAFETY = 1 - 1e-6
"""By how much less a bound is than it is calculated to be, as numbers are rounded."""


def lower_bound(uses: ArrayUses) -> Cost:
    """The cost of the best plan of the forest, by the states of its arrays."""
    ways, total = uses.choices, 0
    waiting: dict[str, CheapestPaths] = {}
    for part, form, names, first in uses.statements:
        operands: list[CheapestPaths] = []
        for index, (kind, name) in enumerate(zip(form.kinds[:-1], names, strict=True)):
            given, through = first[index], form.through[index]
            operand: CheapestPaths = FreePaths(ways.space, kind, ways.prices)
            if form.same[index] == index:
                operand = waiting.pop(name, operand)
                if given is not None:
                    operand = ways.to(kind, dict.fromkeys(given.states, 0))
                if through is not None:
                    operand = _passed(ways, operand, through)
            operands.append(operand)
        kind = form.kinds[-1]
        if part.result.name in uses.used:
            made = ways.ways([(part, operands)])
            waiting[part.result.name] = ways.of_made(kind, made.least, made.cost)
            if form.wanted is not None:
                waiting[part.result.name] = _passed(ways, waiting[part.result.name], form.wanted)
        else:
            goals = uses.open[part.result.name] if form.wanted is None else (form.wanted,)
            way = ways.best([(part, operands)], ways.onward(kind, goals), UNREACHABLE)
            total += 0 if way is None else way.cost
    return total


def _passed(ways: StatementWays, paths: CheapestPaths, state: State) -> CheapestPaths:
    """The moves of an array from a state that it must pass."""
    return ways.to(paths.kind, {state: paths.cost(state) or 0})


class Pieces(NamedTuple):
    """The pieces of each dimension, and the devices over which sums are pending."""

    cuts: tuple[int, ...]
    pending: int


Charge = Callable[[Pieces], Cost]
"""The least cost of having an array in such pieces."""


def piece_bound(uses: ArrayUses) -> Cost:
    """A cost below that of the best plan of the forest, by the numbers of pieces of its arrays."""
    return _ByPieces(uses).least()


class _ByPieces:
    """A program of whose arrays' states only the numbers of pieces are known."""

    def __init__(self, uses: ArrayUses) -> None:
        self._uses, self._choices = uses, uses.choices
        self._devices = math.prod(self._choices.pool.sizes.values())
        self._rate, self._latency = _fastest_collective(self._choices.space, self._choices.prices)
        self._receiving = cache(self._received)
        self._ways = cache(lambda form, pending: tuple(self._ways_to_divide(form, pending)))

    def least(self) -> Cost:
        uses, total = self._uses, 0
        may_pend = _may_pend(uses)
        waiting: dict[str, Mapping[Pieces, Cost]] = {}
        for part, form, names, first in uses.statements:
            places = [index for index in range(len(names)) if form.same[index] == index]
            charges: list[Charge] = []
            for index in places:
                sources = waiting.pop(names[index], None)
                if (given := first[index]) is not None:
                    sources = dict.fromkeys(map(self._pieces, given.states), 0)
                charges.append(self._charge(form, index, sources))
            made: dict[Pieces, Cost] = {}
            for cost, needs, left in self._ways(form, tuple(name in may_pend for name in names)):
                for index, charge in zip(places, charges, strict=True):
                    cost += charge(needs[index])
                made[left] = min(cost, made.get(left, cost))
            is_used = part.result.name in uses.used
            if is_used and self._devices <= MOST_FOLLOWED:
                waiting[part.result.name] = made
            elif is_used or form.wanted is not None:
                total += min(made.values())
            else:
                whole = array_bytes(form.kinds[-1].shape, form.kinds[-1].dtype)
                total += min(
                    cost
                    + (self._receiving((left.pending - 1) * whole / self._devices) if left.pending > 1 else 0)
                    for left, cost in made.items()
                )
        return total

    def _charge(self, form: StatementForm, index: int, sources: Mapping[Pieces, Cost] | None) -> Charge:
        """The charge for an operand by what is needed of it: nothing where another use is charged."""
        kind, through = form.kinds[index], form.through[index]
        reached = (lambda _: 0) if sources is None else self._reached(kind, sources)
        if through is None:
            return reached
        passed = self._pieces(through)
        return self._reached(kind, {passed: reached(passed)})

    def _reached(self, kind: ArrayKind, sources: Mapping[Pieces, Cost]) -> Charge:
        """The charge for an array with what its sources have cost."""
        ordered = sorted((cost, pieces) for pieces, cost in sources.items())

        @cache
        def charge(needed: Pieces) -> Cost:
            best = ordered[0][0] + self._move(kind, ordered[0][1], needed)
            for cost, pieces in ordered[1:]:
                if cost >= best:
                    break
                best = min(best, cost + self._move(kind, pieces, needed))
            return best

        return charge

    def _pieces(self, state: State) -> Pieces:
        dims, pending = state
        group_size = self._choices.space.group_size
        return Pieces(tuple(map(group_size, dims)), group_size(pending))

    def _ways_to_divide(
        self, form: StatementForm, may_pend: Sequence[bool]
    ) -> Iterator[tuple[Cost, tuple[Pieces, ...], Pieces]]:
        """The ways to divide a statement's work: cost, what it needs of the operands, what it makes."""
        part, function = form.part, FUNCTIONS[form.part.function]
        merged, sizes = dict(part.merged), part.sizes
        dims = splittable_dims(part)
        linear = [index for index in range(len(part.operands)) if function.may_pend(index)]
        together = [[index] for index in linear if may_pend[index]]
        if function.linearity == "sum" and together:
            together = [linear]
        limits = [*(sizes[dim] for dim in dims), *(self._devices for _ in together)]
        for cuts in _cuts(limits, self._devices):
            cut = dict.fromkeys(sizes, 1) | dict(zip(dims, cuts, strict=False))
            for dim, factors in merged.items():
                cut[dim] = math.prod(cut[factor] for factor in factors)
            pending = [1] * len(part.operands)
            for places, count in zip(together, cuts[len(dims) :], strict=True):
                for index in places:
                    pending[index] = count
            arrays = [tuple(cut[dim] for dim in each) for each in (*part.einsum.operands, part.einsum.result)]
            shapes = [
                tuple(size // pieces for size, pieces in zip(array.shape, own, strict=True))
                for array, own in zip(part.arrays, arrays, strict=True)
            ]
            work = self._choices.prices.work(*local_work(part, shapes[:-1], shapes[-1]))
            summed = math.prod(cut[dim] for dim in part.summed)
            left = Pieces(arrays[-1], summed * math.prod(cuts[len(dims) :]))
            if function.takes_largest:
                largest, left = left, Pieces(arrays[-1], 1)
                work += self._move(form.kinds[-1], largest, left)
            if form.wanted is not None:
                wanted = self._pieces(form.wanted)
                work, left = work + self._move(form.kinds[-1], left, wanted), wanted
            yield work, tuple(map(Pieces, arrays[:-1], pending)), left

    def _move(self, kind: ArrayKind, start: Pieces, goal: Pieces) -> Cost:
        """The least cost of a move."""
        whole = array_bytes(kind.shape, kind.dtype)
        needed = whole / math.prod(goal.cuts)
        if goal.pending < start.pending:
            added = (start.pending - goal.pending) * whole
            brought = max(0, self._devices * needed - goal.pending * whole)
            return self._receiving(max(needed, (added + brought) / self._devices))
        kept = whole / math.prod(map(max, start.cuts, goal.cuts))
        return self._receiving(needed - kept) if needed > kept else 0

    def _received(self, size: float) -> Cost:
        """The cost of receiving so many bytes."""
        seconds = max(size / self._rate, self._latency)
        return self._choices.prices.packed(seconds * SAFETY, floor(size * SAFETY), 1)


def _fastest_collective(space: StateSpace, prices: Prices) -> tuple[float, float]:
    """Bytes a second that a device receives at most, and seconds of the quickest collective."""
    names = tuple(space.sizes)
    rate, latency = 0.0, inf
    # A line has its best rate at its end.
    sizes = {LARGE, *corners(prices.placed.machine.measured)}
    for axes in (axes for count in range(1, len(names) + 1) for axes in combinations(names, count)):
        whole, n = space.whole(axes), space.group_size(axes)
        for op in ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute"):
            latency = min(latency, prices.collective_seconds(op, whole, 1))
            times_received = 1.0 if op == "ppermute" else (n - 1) / n * (2 if op == "psum" else 1)
            for size in sizes:
                seconds = prices.collective_seconds(op, whole, size)
                rate = max(rate, times_received * size / seconds if seconds else inf)
    return rate, latency


def _may_pend(uses: ArrayUses) -> frozenset[str]:
    """The arrays whose sums may be pending where they are made or given."""
    found = {name for name, copies in uses.starts.items() if any(pending for _, pending in copies.states)}
    for part in uses.problem.parts:
        function = FUNCTIONS[part.function]
        passes = any(operand.name in found for n, operand in enumerate(part.operands) if function.may_pend(n))
        if passes or (part.summed and not function.takes_largest):
            found.add(part.result.name)
    return frozenset(found)


def _cuts(limits: Sequence[int], devices: int) -> Iterator[tuple[int, ...]]:
    """Every way to cut dimensions of these sizes into equal pieces over some of so many devices."""
    if not limits:
        yield ()
        return
    for pieces in range(1, devices + 1):
        if devices % pieces == 0 and limits[0] % pieces == 0:
            for rest in _cuts(limits[1:], devices // pieces):
                yield (pieces, *rest)
