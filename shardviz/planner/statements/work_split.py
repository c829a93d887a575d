"""The ways in which devices may split the work of one einsum, and the case of the textbook that it is.

An assignment says along which mesh axes the devices split each dimension of the einsum while they
compute. It fixes how every operand must be split before (its own dimensions, the same way) and how the
result is split after; axes assigned to a summed dimension leave the result a pending sum.

An axis is only ever assigned to a dimension that some array of the problem splits over it. So the textbook's
four cases fall out of the search, and an axis that no array uses stays idle. With `splits` left out, every
axis may split any dimension. The cases are those of "How to Scale Your Model", part 3
(https://jax-ml.github.io/scaling-book/sharding).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS, LocalFunction
from shardviz.planner.states.moves import Axes, State
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import finest_parts, joined_parts, parts_within

NO_CASE = "no textbook case"
CASES = {
    "case 1": "no axis shards the contracted dimension; textbook: multiply",
    "case 2": "only one operand shards the contracted dimension; textbook: gather it, then multiply",
    "case 3": "both operands shard the contracted dimension over the same axis; textbook: multiply, then add "
    "partial sums",
    "case 4": "both shard non-contracted dimensions over the same axis; textbook: gather one, then multiply",
    NO_CASE: "an axis splits in a way that must be aligned first, such as two orders or a diagonal",
}
"""Each case, and what the textbook does; a plan departs from it where that sends less."""

MOST_ORDERED = 5
"""Axes up to which every order of them on a dimension is looked at."""
MOST_CHOICES = 256
"""Ways to give more axes than these to dimensions that are looked at."""

Assignment = dict[str, Axes]


@dataclass(frozen=True)
class WorkSplit:
    """One assignment with the states it needs and makes.

    Over the axes in `largest` each device has the largest of its own part, and a `pmax` follows at once: no
    other statement could go on with these, and no operation of JAX leaves a device less of the result.
    """

    assignment: Assignment
    operands: tuple[State, ...]
    result: State
    largest: Axes = ()

    @property
    def made(self) -> State:
        """The state of the result before that."""
        dims, pending = self.result
        return dims, tuple(sorted((*pending, *self.largest)))


def work_splits(
    part: Statement,
    pending: Sequence[Collection[str]],
    axes: Mapping[str, int],
    uneven: Collection[tuple[str, Axes]] = (),
    splits: Collection[tuple[str, str]] | None = None,
) -> Iterator[WorkSplit]:
    """Every way to share the work of a statement over mesh axes, or parts of them.

    `pending` are for each operand the axes over which its sums may be pending, `axes` the devices along each
    axis. Dimensions are cut into equal parts, or as `uneven` has them; over an axis only those are cut that
    `splits` has with it, where it is given.
    """
    for split in unordered_splits(part, pending, axes, uneven, splits):
        yield from ordered_splits(part, split, axes, uneven)


def unordered_splits(
    part: Statement,
    pending: Sequence[Collection[str]],
    axes: Mapping[str, int],
    uneven: Collection[tuple[str, Axes]] = (),
    splits: Collection[tuple[str, str]] | None = None,
) -> Iterator[WorkSplit]:
    """Those of the `work_splits` that have the axes of each dimension in the mesh's order, and those that
    stand for others, which alone cut it as `uneven` has it."""
    function = FUNCTIONS[part.function]
    for assignment in _assignments(part, axes, uneven, splits):
        taken = {axis for own in assignment.values() for axis in own}
        for kept in _kept_pending(pending, taken, function, is_wide=len(axes) > MOST_ORDERED):
            yield _work_split(part, assignment, kept, axes)


def ordered_splits(
    part: Statement,
    split: WorkSplit,
    axes: Mapping[str, int],
    uneven: Collection[tuple[str, Axes]] = (),
) -> Iterator[WorkSplit]:
    """A way to share the work with the axes of each dimension in every order."""
    sizes, merged = dim_sizes(part), dict(part.merged)
    members = {dim: own for dim, own in split.assignment.items() if dim not in merged}
    kept = tuple(own for _, own in split.operands)
    given = [
        (dim, own)
        for array in (*part.operands, part.result)
        if len(axes) > MOST_ORDERED and array.spec is not None
        for dim, own in zip(array.dims, array.spec.dims, strict=True)
    ]
    for ordered in product(*(_orders(own, dim, given) for dim, own in members.items())):
        assignment = dict(zip(members, ordered, strict=True))
        if all(_divides(dim, own, sizes, axes, uneven) for dim, own in assignment.items()):
            for dim, factors in merged.items():
                _merge(assignment, dim, factors, sizes, axes)
            yield _work_split(part, assignment, kept, axes)


def _work_split(
    part: Statement, assignment: Assignment, kept: tuple[Axes, ...], axes: Iterable[str]
) -> WorkSplit:
    """An assignment where these sums of each operand stay pending."""
    einsum = part.einsum
    operands = tuple(
        (tuple([assignment.get(dim, ()) for dim in dims]), own)
        for dims, own in zip(einsum.operands, kept, strict=True)
    )
    summed = [axis for dim in part.summed for axis in assignment.get(dim, ())]
    takes_largest = FUNCTIONS[part.function].takes_largest
    largest = tuple(axis for axis in axes if axis in summed) if takes_largest else ()
    left = {*summed, *(axis for own in kept for axis in own)}.difference(largest)
    result = tuple([assignment.get(dim, ()) for dim in einsum.result])
    return WorkSplit(assignment, operands, (result, tuple(sorted(left))), largest)


def dim_sizes(part: Statement) -> dict[str, int]:
    """Elements along each dimension of a statement."""
    arrays = (*part.operands, part.result)
    return {dim: size for array in arrays for dim, size in zip(array.dims, array.shape, strict=True)}


def splittable_dims(part: Statement) -> list[str]:
    """The dimensions of a statement that devices may split, but for those that follow from others."""
    fixed = {*part.whole, *dict(part.merged)}
    return [dim for dim in dim_sizes(part) if dim not in fixed and not _is_diagonal(part.einsum, dim)]


def _assignments(
    part: Statement,
    axes: Mapping[str, int],
    uneven: Collection[tuple[str, Axes]],
    splits: Collection[tuple[str, str]] | None,
) -> Iterator[Assignment]:
    sizes, merged = dim_sizes(part), dict(part.merged)
    dims = splittable_dims(part)
    places = [(None, *(dim for dim in dims if splits is None or (dim, axis) in splits)) for axis in axes]
    most = None
    if len(axes) > MOST_ORDERED:
        # Of so many only the first are looked at: those in which most axes split something.
        places, most = [own[::-1] for own in places], MOST_CHOICES
    cut_unevenly = {(dim, frozenset(own)) for dim, own in uneven}
    for choice in islice(product(*places), most):
        members: dict[str, list[str]] = {}
        for axis, dim in zip(axes, choice, strict=True):
            if dim is not None:
                members.setdefault(dim, []).append(axis)
        if all(
            sizes[dim] % math.prod([axes[axis] for axis in own]) == 0 or (dim, frozenset(own)) in cut_unevenly
            for dim, own in members.items()
        ):
            assignment = {dim: tuple(own) for dim, own in members.items()}
            if all(_merge(assignment, dim, factors, sizes, axes) for dim, factors in merged.items()):
                yield assignment


def _divides(
    dim: str,
    own: Axes,
    sizes: Mapping[str, int],
    axes: Mapping[str, int],
    uneven: Collection[tuple[str, Axes]],
) -> bool:
    return sizes[dim] % math.prod([axes[axis] for axis in own]) == 0 or (dim, own) in uneven


def _orders(axes: Axes, dim: str, given: Sequence[tuple[str, Axes]]) -> Iterable[Axes]:
    """The orders of axes on a dimension: all of them, or of many those that somebody has."""
    if len(axes) <= MOST_ORDERED - 2 or not given:
        return permutations(axes)
    found = [tuple(axis for axis in own if axis in axes) for name, own in given if name == dim]
    return dict.fromkeys((*(own for own in found if len(own) == len(axes)), axes))


def _merge(
    assignment: Assignment,
    merged: str,
    factors: Sequence[str],
    sizes: Mapping[str, int],
    axes: Mapping[str, int],
) -> bool:
    """Split a dimension that stands for others as they are; False where its pieces are not in one place: a
    minor one is split, but a major one is not down to single elements."""
    own: Axes = ()
    is_single = True
    for dim in factors:
        split = assignment.get(dim, ())
        if split and not is_single:
            return False
        own += split
        is_single = is_single and math.prod([axes[axis] for axis in split]) == sizes[dim]
    if own:
        assignment[merged] = own
    return True


def _is_diagonal(einsum: Einsum, dim: str) -> bool:
    """An operand has the dimension twice, so that no axis could split both."""
    return any(dims.count(dim) > 1 for dims in einsum.operands)


def _kept_pending(
    pending: Sequence[Collection[str]], taken: Collection[str], function: LocalFunction, *, is_wide: bool
) -> Iterator[tuple[Axes, ...]]:
    """The operands' sums that may stay pending, by operand, over axes that split nothing: a product is
    linear in each, so one operand's may, and the others' are added before; a sum takes all of them so. Where
    axes are many, those over all of them stay with one operand."""
    if function.linearity == "none" or not any(pending):
        yield ((),) * len(pending)
        return
    free = sorted({axis for own in pending for axis in own}.difference(taken))
    every = tuple(range(len(pending)))
    linear = tuple(place for place in every if function.may_pend(place))
    holders: list[list[tuple[int, ...]]] = [
        [(), linear]
        if function.linearity == "sum"
        else [(), *((place,) for place in linear if axis in pending[place])]
        for axis in free
    ]
    choices: Iterable[tuple[tuple[int, ...], ...]] = product(*holders)
    if is_wide:
        alike = [(), *dict.fromkeys(each for own in holders for each in own if each)]
        choices = [tuple(each if each in own else () for own in holders) for each in alike]
    for choice in choices:
        yield tuple(
            tuple(axis for axis, held in zip(free, choice, strict=True) if place in held) for place in every
        )


def case_of(einsum: Einsum, starts: tuple[State, ...], mesh: Mesh) -> str:
    """Such as ``"case 3 over Y"``, ``"case 2 over X, case 4 over Y"``, or ``"case 1"``."""
    finest = finest_parts(mesh.shape, [axis for dims, _ in starts for axes in dims for axis in axes])
    parts = [part for own in finest.values() for part in own]
    placed = [
        [tuple(part for axis in axes for part in parts_within(axis, parts)) for axes in dims]
        for dims, _ in starts
    ]
    found: dict[str, list[str]] = {}
    for axis in parts:
        case = _case(einsum, placed, axis)
        if case != "case 1":
            found.setdefault(case, []).append(axis)
    if not found:
        return "case 1"
    return ", ".join(
        f"{case} over {', '.join(joined_parts(axes, mesh.shape))}" for case, axes in sorted(found.items())
    )


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
