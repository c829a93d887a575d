"""The ways in which devices may split the work of one einsum, and the case of the textbook that it is ("How
to Scale Your Model", part 3, https://jax-ml.github.io/scaling-book/sharding).

An assignment says along which mesh axes devices split each dimension while they compute, and so how operands
must be split before and the result is after; axes of a summed dimension leave it a pending sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations, product

from shardviz.notation.einsum import Einsum
from shardviz.planner.plan import Step
from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS, has_halo, sent_beside, shared_positions
from shardviz.planner.states.moves import Axes, PathMove, State, move_step, spec_of, wire_bytes_of
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes
from shardviz.sharding.axis_parts import finest_parts, in_parts, joined_parts

NO_CASE = "no textbook case"
CASES = {
    "case 1": "no axis shards the contracted dimension; textbook: multiply",
    "case 2": "only one operand shards the contracted dimension; textbook: gather it, then multiply",
    "case 3": "both operands shard the contracted dimension over the same axis; textbook: multiply, then add "
    "partial sums",
    "case 4": "both shard non-contracted dimensions over the same axis; textbook: gather one, then multiply",
    NO_CASE: "an axis must be aligned first, for example because of two orders or a diagonal",
}
"""Each case, and what the textbook does; a plan departs from it where that sends less."""

MOST_ORDERED = 5
"""Axes up to which every order of them on a dimension is looked at."""
MOST_CHOICES = 256
"""Ways to give more axes than these to dimensions that are looked at."""

Assignment = dict[str, Axes]
Cuts = Mapping[str, int]
"""The parts into which dimensions are cut, but for those that are whole."""
Moves = Sequence[tuple[ShardedArray, Sequence[PathMove]]]


@dataclass(frozen=True)
class WorkSplit:
    """One assignment with the states it needs and makes. Over the axes in `largest` each device has the
    largest of its own part, and a `pmax` follows at once: no other statement could go on with these."""

    assignment: Assignment
    operands: tuple[State, ...]
    result: State
    largest: Axes = ()

    @property
    def states(self) -> tuple[State, ...]:
        """Those of the operands, and last that of the result."""
        return (*self.operands, self.result)

    @property
    def made(self) -> State:
        """The state of the result before that."""
        dims, pending = self.result
        return dims, tuple(sorted((*pending, *self.largest)))


class WorkSplits:
    """The ways to share the work of a statement over mesh axes, or parts of them. `axes` are the devices
    along each, `places` the dimensions that it may split, None for none. Dimensions are cut into equal parts;
    the axes of one stand in the `orders` that are given for them, or else in all."""

    def __init__(
        self,
        part: Statement,
        axes: Mapping[str, int],
        places: Sequence[Sequence[str | None]],
        orders: Callable[[Axes, str], Iterable[Axes]] | None = None,
        most: int = MOST_ORDERED,
    ) -> None:
        self._part, self._axes, self._places = part, axes, places
        self._orders = orders or self._every_order
        self._function = FUNCTIONS[part.function]
        self._sizes, self._summed, self._merged = part.sizes, part.summed, dict(part.merged)
        self._is_wide = len(axes) > most
        self._shards, _ = shared_positions(part) or ("", 0)
        # With halos the keys of attention may be split as its queries are; other functions have one sequence.
        self._follower = part.whole[0] if self._shards and self._shards != part.whole[0] else ""

    def every(self, pending: Sequence[Collection[str]]) -> Iterator[WorkSplit]:
        """Every way; `pending` are for each operand the axes over which its sums may be pending."""
        for split in self.unordered(pending):
            yield from self.ordered(split)

    def unordered(
        self, pending: Sequence[Collection[str]], allows: Callable[[Cuts, int], bool] | None = None
    ) -> Iterator[WorkSplit]:
        """Those of all ways that have the axes of each dimension in the mesh's order. `allows` says whether
        dimensions that are cut so may be cut over so many devices more."""
        for assignment in self._assignments(allows):
            taken = {axis for own in assignment.values() for axis in own}
            for kept in self._kept_pending(pending, taken):
                yield self._work_split(assignment, kept)

    def ordered(self, split: WorkSplit) -> Iterator[WorkSplit]:
        """A way to share the work with the axes of each dimension in every order."""
        follow = {*self._merged, self._follower}
        members = {dim: own for dim, own in split.assignment.items() if dim not in follow}
        kept = tuple(own for _, own in split.operands)
        for ordered in product(*(self._orders(own, dim) for dim, own in members.items())):
            assignment = dict(zip(members, ordered, strict=True))
            if self._follower in split.assignment:
                assignment[self._follower] = assignment[self._shards]
            self._merge(assignment)
            yield self._work_split(assignment, kept)

    def _every_order(self, axes: Axes, dim: str) -> Iterable[Axes]:
        """The orders of axes on a dimension: all of them, or of many those that somebody has."""
        part = self._part
        arrays = [array for array in part.arrays if array.spec is not None]
        if not self._is_wide or len(axes) <= MOST_ORDERED - 2 or not any(array.rank for array in arrays):
            return permutations(axes)
        orders = [
            tuple(axis for axis in own if axis in axes)
            for array in arrays
            for name, own in zip(array.dims, array.decided_spec.dims, strict=True)
            if name == dim
        ]
        return dict.fromkeys((*(own for own in orders if len(own) == len(axes)), axes))

    def _assignments(self, allows: Callable[[Cuts, int], bool] | None) -> Iterator[Assignment]:
        part, places, most = self._part, self._places, None
        if self._is_wide:
            # Of so many only the first are looked at: those in which most axes split something.
            places, most = [own[::-1] for own in places], MOST_CHOICES
        rows = [*zip(self._axes.items(), places, strict=True)]

        def every(number: int, assignment: Assignment, cuts: Cuts) -> Iterator[Assignment]:
            if number == len(rows):
                yield assignment
                return
            (axis, size), dims = rows[number]
            devices = math.prod([size for (_, size), _ in rows[number + 1 :]])
            for dim in dims:
                own, more = assignment, cuts
                if dim is not None:
                    more = {**cuts, dim: cuts.get(dim, 1) * size}
                    own = {**assignment, dim: (*assignment.get(dim, ()), axis)}
                divides = dim is None or self._sizes[dim] % more[dim] == 0
                if dim and dim == self._shards:
                    divides &= bool(self._follower) or has_halo(part, more)
                    more = {**more, self._follower or dim: more[dim]}
                if divides and (allows is None or allows(more, devices)):
                    yield from every(number + 1, own, more)
                    if self._follower in more and number + 1 == len(rows) and has_halo(part, more):
                        yield {**own, self._follower: own[self._shards]}

        yield from filter(self._merge, islice(every(0, {}, {}), most))

    def _merge(self, assignment: Assignment) -> bool:
        """Split the dimensions that stand for others as they are; False where pieces of one lie apart."""
        for merged, factors in self._merged.items():
            own: Axes = ()
            is_single = True
            for dim in factors:
                split = assignment.get(dim, ())
                if split and not is_single:
                    return False
                own += split
                cut = math.prod([self._axes[axis] for axis in split])
                is_single = is_single and cut == self._sizes[dim]
            if own:
                assignment[merged] = own
        return True

    def _kept_pending(
        self, pending: Sequence[Collection[str]], taken: Collection[str]
    ) -> Iterator[tuple[Axes, ...]]:
        """The operands' sums that may stay pending over axes that split nothing, of many with one operand."""
        function = self._function
        if function.linearity == "none" or not any(pending):
            yield ((),) * len(pending)
            return
        free = sorted({axis for own in pending for axis in own}.difference(taken))
        every = tuple(range(len(pending)))
        linear = tuple(index for index in every if function.may_pend(index))
        holders: list[list[tuple[int, ...]]] = [
            [(), linear]
            if function.linearity == "sum"
            else [(), *((index,) for index in linear if axis in pending[index])]
            for axis in free
        ]
        choices: Iterable[tuple[tuple[int, ...], ...]] = product(*holders)
        if self._is_wide:
            alike = [(), *dict.fromkeys(holder for own in holders for holder in own if holder)]
            choices = [tuple(holder if holder in own else () for own in holders) for holder in alike]
        for choice in choices:
            yield tuple(
                tuple(axis for axis, held in zip(free, choice, strict=True) if index in held)
                for index in every
            )

    def _work_split(self, assignment: Assignment, kept: tuple[Axes, ...]) -> WorkSplit:
        """An assignment where these sums of each operand stay pending."""
        einsum = self._part.einsum
        operands = tuple(
            (tuple([assignment.get(dim, ()) for dim in dims]), own)
            for dims, own in zip(einsum.operands, kept, strict=True)
        )
        # Of keys that are split as their queries are no device has a part of a sum.
        own = {self._follower, self._shards} if self._follower in assignment else set()
        summed = [axis for dim in self._summed if dim not in own for axis in assignment.get(dim, ())]
        compared = summed if self._function.takes_largest else ()
        largest = tuple(axis for axis in self._axes if axis in compared) if compared else ()
        left = {*summed, *chain(*kept)}.difference(largest)
        result = tuple([assignment.get(dim, ()) for dim in einsum.result])
        return WorkSplit(assignment, operands, (result, tuple(sorted(left))), largest)


def splittable_dims(part: Statement) -> list[str]:
    """The dimensions of a statement that devices may split, but for those that follow from others, and those
    that an array has twice, of which no axis could split both."""
    shards, _ = shared_positions(part) or ("", 0)
    shared = part.whole[:1] if FUNCTIONS[part.function].shares_rows else (shards,)
    fixed = {*part.whole, *dict(part.merged)}.difference(shared)
    named = (*part.einsum.operands, part.einsum.result)
    twice = {dim for dims in named for dim in dims if dims.count(dim) > 1}
    return [dim for dim in part.sizes if dim not in fixed and dim not in twice]


# A statement as planned: how its work is divided, and the moves around it.


@dataclass(frozen=True)
class PlannedStatement:
    """A statement as planned: `starts` are the operands' states before any step, `before` the moves of its
    operands, `behind` those that follow it, as steps without their reasons."""

    mesh: Mesh
    part: Statement
    work_split: WorkSplit
    starts: tuple[State, ...]
    before: Sequence[tuple[ShardedArray, tuple[Step, ...]]]
    behind: Sequence[tuple[ShardedArray, tuple[Step, ...]]]

    def dim_of(self, axis: str) -> str | None:
        """The dimension of the einsum that `axis` splits while the devices compute."""
        return next((dim for dim, axes in self.work_split.assignment.items() if axis in axes), None)

    def start(self, array: ShardedArray) -> State:
        """The state of an operand before any step."""
        return next(state for operand, state in self._pairs if operand is array)

    def others(self, array: ShardedArray) -> list[tuple[ShardedArray, State]]:
        """The operands besides `array`, with their states before any step."""
        return [(operand, state) for operand, state in self._pairs if operand is not array]

    @property
    def _pairs(self) -> Iterator[tuple[ShardedArray, State]]:
        return zip(self.part.operands, self.starts, strict=True)


def planned_statement(
    mesh: Mesh, part: Statement, split: WorkSplit, starts: Sequence[State], before: Moves, behind: Moves
) -> PlannedStatement:
    """A statement planned over parts of axes, of which adjacent ones are joined."""

    def joined(state: State) -> State:
        spec = spec_of(state, mesh)
        return spec.dims, spec.unreduced

    def steps(moves: Moves) -> list[tuple[ShardedArray, tuple[Step, ...]]]:
        return [(array, tuple(move_step(array, mesh, move) for move in own)) for array, own in moves]

    assignment = {dim: joined_parts(axes, mesh.shape) for dim, axes in split.assignment.items()}
    states = *map(joined, split.operands), joined(split.result)
    work_split = WorkSplit(assignment, states[:-1], states[-1], joined_parts(split.largest, mesh.shape))
    return PlannedStatement(mesh, part, work_split, tuple(map(joined, starts)), steps(before), steps(behind))


def steps_beside(mesh: Mesh, part: Statement, specs: Sequence[PartitionSpec]) -> Iterator[Step]:
    """The steps that send what a statement needs beside its operands, where its arrays, the result last, are
    sharded so; without reasons."""
    dims = {
        dim: axes
        for array, own in zip(part.arrays, specs, strict=True)
        for dim, axes in zip(array.dims, own.dims, strict=True)
    }
    for sent in sent_beside(part, {dim: mesh.group_size(axes) for dim, axes in dims.items()}):
        axes, spec = dims[part.whole[0]], specs[sent.number]
        size = array_bytes(sent.shape, sent.dtype)
        wire_bytes = wire_bytes_of(sent.op, size, mesh.group_size(axes))
        name = part.arrays[sent.number].name
        yield Step(sent.op, name, axes, None, spec, spec, sent.shape, sent.dtype, size, wire_bytes)


def case_of(one: PlannedStatement) -> str:
    """Such as ``"case 2 over X, case 4 over Y"`` or ``"case 1"``; of another function its name."""
    if one.part.function != "multiply":
        return one.part.function
    shape = one.mesh.shape
    parts = finest_parts(shape, [axis for dims, _ in one.starts for axes in dims for axis in axes])
    placed = [[in_parts(axes, parts) for axes in dims] for dims, _ in one.starts]
    by_case: dict[str, list[str]] = {}
    for axis in parts:
        by_case.setdefault(_case(one.part.einsum, placed, axis), []).append(axis)
    by_case.pop("case 1", None)
    cases = (f"{case} over {', '.join(joined_parts(axes, shape))}" for case, axes in sorted(by_case.items()))
    return ", ".join(cases) or "case 1"


def _case(einsum: Einsum, placed: Sequence[Sequence[Axes]], axis: str) -> str:
    places = [
        (dims, dim, axes)
        for dims, own in zip(einsum.operands, placed, strict=True)
        for dim, axes in zip(dims, own, strict=True)
        if axis in axes
    ]
    if any(dims.count(dim) > 1 for dims, dim, _ in places):
        return NO_CASE
    summed = [dim in einsum.contracted for _, dim, _ in places]
    if len(places) == 2 and places[0][1] == places[1][1]:
        if places[0][2] != places[1][2]:
            return NO_CASE
        return "case 3" if summed[0] else "case 1"
    if not any(summed):
        return "case 4" if len(places) == 2 else "case 1"
    alone = all(sum(dim in dims for dims in einsum.operands) == 1 for _, dim, _ in places)
    return "case 3" if alone else "case 2"
