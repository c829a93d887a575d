"""A cost below which no plan of a program can go, where `lower_bound` would take long: by numbers of pieces.

It is the same bound with less known of a state: into how many pieces each dimension is cut, and over how many
devices sums are pending, not over which axes. For all parts of axes that a plan may take, these numbers
multiply to a divisor of the number of devices. A move takes what its devices must receive, at the rate at
which the fastest collective receives:

    of what they need those bytes that no alignment of the pieces leaves them with
    of pending sums all that they need; and all devices together what it takes to add n arrays of B bytes,
    (n - 1) B, and to bring the total to all that need it (Chan et al. 2007)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import floor
from typing import NamedTuple

from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.planner.programs.array_uses import ArrayUses
from shardviz.planner.programs.statement_choices import StatementForm
from shardviz.planner.statements.work_split import dim_sizes, splittable_dims
from shardviz.planner.states.bounds import SAFETY
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import ArrayKind
from shardviz.planner.states.prices import Cost
from shardviz.sharding import array_bytes

MOST_FOLLOWED = 64
"""Devices up to which intermediates are followed from state to state: with more they are where they are
needed, for nothing."""


class Pieces(NamedTuple):
    """The pieces of each dimension, and the devices over which sums are pending."""

    cuts: tuple[int, ...]
    pending: int


class _Split(NamedTuple):
    """A way to share the work of a statement, with what that costs."""

    work: Cost
    operands: tuple[Pieces, ...]
    result: Pieces


def piece_bound(uses: ArrayUses) -> Cost:
    """The cost of the best plan of the forest of statements, each of whose arrays is charged at its next
    use."""
    return _Bound(uses).found()


class _Bound:
    def __init__(self, uses: ArrayUses) -> None:
        self._uses, self._choices = uses, uses.choices
        self._sizes = self._choices.pool.sizes
        self._devices = math.prod(self._sizes.values())
        self._rate, self._latency = self._choices.fastest_collective
        self._receiving = cache(self._received)
        self._may_pend = _may_pend(uses)
        self._splits: dict[tuple[int, tuple[bool, ...]], tuple[_Split, ...]] = {}

    def found(self) -> Cost:
        total: Cost = 0
        waiting: dict[str, dict[Pieces, Cost]] = {}
        for part, form, first in zip(
            self._uses.problem.parts, self._uses.forms, self._uses.first, strict=True
        ):
            names = [operand.name for operand in part.operands]
            given = {name: copies for name, copies in zip(names, first, strict=True) if copies is not None}
            held = {name: waiting.pop(name) for name in dict.fromkeys(names) if name in waiting}
            held |= {
                name: dict.fromkeys(map(self._pieces, copies.states), 0) for name, copies in given.items()
            }
            pending = tuple(name in self._may_pend for name in names)
            made = self._made(form, pending, [held.get(name) for name in names])
            is_used = part.result.name in self._uses.used
            if is_used and self._devices <= MOST_FOLLOWED:
                waiting[part.result.name] = made
            else:
                total += min(
                    cost if is_used else cost + self._end(form, pieces) for pieces, cost in made.items()
                )
        return total

    def _made(
        self,
        form: StatementForm,
        pending: tuple[bool, ...],
        held: Sequence[Mapping[Pieces, Cost] | None],
    ) -> dict[Pieces, Cost]:
        """The least costs of each state of a statement's result; `pending` says which operands' sums may
        be."""
        reached = [
            self._reached(form, place, sources) if form.same[place] == place else None
            for place, sources in enumerate(held)
        ]
        found: dict[Pieces, Cost] = {}
        for split in self._ways(form, pending):
            cost = split.work
            for way, needed in zip(reached, split.operands, strict=True):
                if way is not None:
                    cost += way(needed)
            result = split.result
            if form.wanted is not None:
                wanted = self._pieces(form.wanted)
                cost, result = cost + self._move(form.kinds[-1], result, wanted), wanted
            if result not in found or cost < found[result]:
                found[result] = cost
        return found

    def _reached(
        self, form: StatementForm, place: int, sources: Mapping[Pieces, Cost] | None
    ) -> Callable[[Pieces], Cost]:
        """A function of what is needed of an operand: what having it so costs at least."""
        kind, through = form.kinds[place], form.through[place]
        ordered = sorted((cost, pieces) for pieces, cost in (sources or {}).items())

        @cache
        def cost_of(needed: Pieces) -> Cost:
            if not ordered:
                return 0
            best = ordered[0][0] + self._move(kind, ordered[0][1], needed)
            for cost, pieces in ordered[1:]:
                if cost >= best:
                    break
                best = min(best, cost + self._move(kind, pieces, needed))
            return best

        if through is None:
            return cost_of
        passed = self._pieces(through)
        return lambda needed: cost_of(passed) + self._move(kind, passed, needed)

    def _ways(self, form: StatementForm, pending: tuple[bool, ...]) -> tuple[_Split, ...]:
        found = self._splits.get((form.number, pending))
        if found is None:
            found = self._splits[form.number, pending] = tuple(self._split_work(form, pending))
        return found

    def _split_work(self, form: StatementForm, may_pend: Sequence[bool]) -> Iterator[_Split]:
        part, function = form.part, FUNCTIONS[form.part.function]
        merged, sizes = dict(part.merged), dim_sizes(form.part)
        dims = splittable_dims(part)
        linear = [place for place in range(len(part.operands)) if function.may_pend(place)]
        together = [[place] for place in linear if may_pend[place]]
        if function.linearity == "sum" and together:
            together = [linear]
        limits = [*(sizes[dim] for dim in dims), *(self._devices for _ in together)]
        for cuts in _cuts(limits, self._devices):
            cut = dict.fromkeys(sizes, 1) | dict(zip(dims, cuts, strict=False))
            for dim, factors in merged.items():
                cut[dim] = math.prod(cut[each] for each in factors)
            pending = [1] * len(part.operands)
            for places, count in zip(together, cuts[len(dims) :], strict=True):
                for place in places:
                    pending[place] = count
            arrays = [tuple(cut[dim] for dim in each) for each in (*part.einsum.operands, part.einsum.result)]
            shapes = [
                tuple(size // pieces for size, pieces in zip(array.shape, own, strict=True))
                for array, own in zip((*part.operands, part.result), arrays, strict=True)
            ]
            work = self._choices.local_work(part, shapes[:-1], shapes[-1])
            summed = math.prod(cut[dim] for dim in part.summed)
            left = Pieces(arrays[-1], summed * math.prod(cuts[len(dims) :]))
            if function.takes_largest:
                largest, left = left, Pieces(arrays[-1], 1)
                work += self._move(form.kinds[-1], largest, left)
            yield _Split(work, tuple(map(Pieces, arrays[:-1], pending)), left)

    def _pieces(self, state: State) -> Pieces:
        dims, pending = state
        return Pieces(tuple(map(self._group_size, dims)), self._group_size(pending))

    def _group_size(self, axes: Sequence[str]) -> int:
        return math.prod([self._sizes[axis] for axis in axes])

    def _end(self, form: StatementForm, pieces: Pieces) -> Cost:
        """The least cost of leaving a result without pending sums, where it is not wanted in some state."""
        if pieces.pending == 1 or form.wanted is not None:
            return 0
        whole = array_bytes(form.kinds[-1].shape, form.kinds[-1].dtype)
        return self._receiving((pieces.pending - 1) * whole / self._devices)

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


def _may_pend(uses: ArrayUses) -> frozenset[str]:
    """The arrays whose sums may be pending where they are made or given. To make a pending sum of a whole
    array costs nothing here, so that it can wait until another operand of a sum is one."""
    found = {name for name, copies in uses.starts.items() if any(pending for _, pending in copies.states)}
    for part in uses.problem.parts:
        function = FUNCTIONS[part.function]
        passes = any(each.name in found for n, each in enumerate(part.operands) if function.may_pend(n))
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
