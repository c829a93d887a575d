"""The ways in which devices may split the work of one einsum, and the case of the textbook that it is.

An assignment says along which mesh axes the devices split each dimension of the einsum while they
compute. It fixes how every operand must be split before (its own dimensions, the same way) and how the
result is split after; axes assigned to a summed dimension leave the result a pending sum.

An axis is only ever assigned to a dimension that someone asked for: an operand, the wanted result, or the
next einsum of a chain has it there. So the textbook's four cases fall out of the search, and an axis
that no array uses stays idle. The cases are those of "How to Scale Your Model", part 3
(https://jax-ml.github.io/scaling-book/sharding).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product

from shardviz.notation.einsum import Einsum
from shardviz.planner.reshard import Axes, State

MAX_ASSIGNMENTS = 4096
"""Six axes with three candidates each, or none; assignments beyond it are not looked at."""
NO_CASE = "no textbook case"
CASES = {
    "case 1": "no axis splits a summed dimension; textbook: multiply",
    "case 2": "an axis splits a summed dimension in one operand only; textbook: gather it, then multiply",
    "case 3": "an axis splits a summed dimension alike; textbook: multiply, then add the partial sums",
    "case 4": "both operands use an axis for dimensions of their own; textbook: gather one, then multiply",
    NO_CASE: "an axis splits in a way that must be aligned first, such as two orders or a diagonal",
}
"""Each case, and what the textbook does; a plan departs from it where that sends less."""

Assignment = dict[str, Axes]
ResultRequest = tuple[tuple[str, ...], State]
"""Dimensions of an array and the state that someone asked for."""


@dataclass(frozen=True)
class WorkSplit:
    """One assignment with the states it needs and makes."""

    assignment: Assignment
    operands: tuple[State, ...]
    result: State


def work_splits(
    einsum: Einsum,
    starts: tuple[State, ...],
    requests: tuple[ResultRequest, ...],
    size: dict[str, int],
    axis: dict[str, int],
) -> Iterator[WorkSplit]:
    """Every way to share the work. `starts` are the operands' states, `requests` the wanted states of
    the result, `size` the elements of each dimension, `axis` the devices along each mesh axis."""
    asked = (*zip(einsum.operands, starts, strict=True), *requests)
    for assignment in islice(_assignments(einsum, asked, size, axis), MAX_ASSIGNMENTS):
        taken = {name for axes in assignment.values() for name in axes}
        for kept in _kept_pending(starts, taken):
            operands = tuple(
                (tuple(assignment.get(dim, ()) for dim in dims), pending)
                for dims, pending in zip(einsum.operands, kept, strict=True)
            )
            summed = [name for dim in einsum.contracted for name in assignment.get(dim, ())]
            pending = (*summed, *(name for axes in kept for name in axes))
            result = tuple(assignment.get(dim, ()) for dim in einsum.result)
            yield WorkSplit(assignment, operands, (result, tuple(sorted(pending))))


def _assignments(
    einsum: Einsum, asked: tuple[ResultRequest, ...], size: dict[str, int], axis: dict[str, int]
) -> Iterator[Assignment]:
    candidates: dict[str, list[str | None]] = {}
    orders: list[Axes] = []
    for dims, (placed, _) in asked:
        for dim, axes in zip(dims, placed, strict=True):
            orders.append(axes)
            for name in axes:
                places = candidates.setdefault(name, [])
                if dim not in places and not _diagonal(einsum, dim):
                    places.append(dim)
    for choice in product(*((*places, None) for places in candidates.values())):
        members: dict[str, list[str]] = {}
        for name, place in zip(candidates, choice, strict=True):
            if place is not None:
                members.setdefault(place, []).append(name)
        if all(_divides(size[dim], names, axis) for dim, names in members.items()):
            for ordered in product(*(_orders(tuple(names), orders) for names in members.values())):
                yield dict(zip(members, ordered, strict=True))


def _diagonal(einsum: Einsum, dim: str) -> bool:
    """An operand has the dimension twice, so that no axis could split both."""
    return any(dims.count(dim) > 1 for dims in einsum.operands)


def _divides(size: int, names: list[str], axis: dict[str, int]) -> bool:
    parts = 1
    for name in names:
        parts *= axis[name]
    return size % parts == 0


def _orders(names: Axes, asked: list[Axes]) -> list[Axes]:
    """The orders worth trying: those that someone asked for, and for a few axes all."""
    found = [tuple(name for name in axes if name in names) for axes in asked]
    complete = [axes for axes in found if len(axes) == len(names)]
    every = permutations(names) if len(names) <= 3 else ()
    return list(dict.fromkeys((*complete, *every))) or [names]


def _kept_pending(starts: tuple[State, ...], taken: set[str]) -> Iterator[tuple[Axes, ...]]:
    """The operands' sums that may stay pending, by operand: a product is linear in each, so over
    any axis that splits nothing, one operand's sum may; the others' are added before."""
    holders = {
        name: [index for index, (_, pending) in enumerate(starts) if name in pending]
        for name in dict.fromkeys(name for _, pending in starts for name in pending)
        if name not in taken
    }
    for choice in product(*((None, *indices) for indices in holders.values())):
        kept = dict(zip(holders, choice, strict=True))
        yield tuple(
            tuple(name for name, holder in kept.items() if holder == index) for index in range(len(starts))
        )


def case_of(einsum: Einsum, starts: tuple[State, ...], axis_names: tuple[str, ...]) -> str:
    """Such as ``"case 3 over Y"``, ``"case 2 over X, case 4 over Y"``, or ``"case 1"``."""
    found: dict[str, list[str]] = {}
    for axis in axis_names:
        case = _case(einsum, starts, axis)
        if case != "case 1":
            found.setdefault(case, []).append(axis)
    if not found:
        return "case 1"
    return ", ".join(f"{case} over {', '.join(axes)}" for case, axes in sorted(found.items()))


def _case(einsum: Einsum, starts: tuple[State, ...], axis: str) -> str:
    places = [
        (dims, dim, axes)
        for dims, (placed, _) in zip(einsum.operands, starts, strict=True)
        for dim, axes in zip(dims, placed, strict=True)
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
