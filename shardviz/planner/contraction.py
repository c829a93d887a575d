"""How the devices may share the work of one einsum.

An assignment says along which mesh axes the devices split each dimension of the einsum while they
compute. It fixes how every operand must be split before (its own dimensions, the same way) and how the
result is split after; axes assigned to a summed dimension leave the result a pending sum.

An axis is only ever assigned to a dimension that someone asked for: an operand, the wanted result, or the
next einsum of a chain has it there. So the textbook's four cases fall out of the search, and an axis
that no array uses stays idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product

from shardviz.notation.einsum import Einsum
from shardviz.planner.moves import Axes, State

MAX_ASSIGNMENTS = 4096
"""Six axes with three candidates each, or none; assignments beyond it are not looked at."""

Assignment = dict[str, Axes]
Wish = tuple[tuple[str, ...], State]
"""Dimensions of an array and the state that someone asked for."""


@dataclass(frozen=True)
class Sharing:
    """One assignment with the states it needs and makes."""

    assignment: Assignment
    operands: tuple[State, ...]
    result: State


def sharings(
    einsum: Einsum,
    starts: tuple[State, ...],
    wishes: tuple[Wish, ...],
    size: dict[str, int],
    axis: dict[str, int],
) -> Iterator[Sharing]:
    """Every way to share the work. `starts` are the operands' states, `wishes` what the result is wanted
    as, `size` the elements of each dimension, `axis` the devices along each mesh axis."""
    asked = (*zip(einsum.operands, starts, strict=True), *wishes)
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
            yield Sharing(assignment, operands, (result, tuple(sorted(pending))))


def _assignments(
    einsum: Einsum, asked: tuple[Wish, ...], size: dict[str, int], axis: dict[str, int]
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
    """Whether an operand has the dimension twice, so that no axis could split both."""
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
    """Which pending sums of the operands may stay pending, by operand: a product is linear in each, so over
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
