"""The pairs of devices of Shardy's permutes, which name only the shardings before and after.

Each of the two assigns to every block of the tensor digits of the device's coordinates: on X=2, Y=4 the
dimension [{"X", "Y"}] is cut first by the digit of X, then by that of Y. Cut fine enough, the digits of both
match one to one, so that a target's digit ``q`` says where its source stands in digit ``p``: from
[{"X", "Y"}] to [{"Y", "X"}] Y is cut into halves, and X ← major half of Y, major half ← minor half, minor
half ← X. Digits that no longer, or not yet, choose a block are closed into cycles, which makes the move a
permutation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from shardviz.hlo.mlir.attributes import TensorSharding
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import AxisSizes, part_digits

Moves = dict[SubAxis, SubAxis]
"""Source digit → the target's digit that it equals."""


def moved_digits(before: TensorSharding, after: TensorSharding) -> Moves | None:
    """Source digit → the target's digit that it equals, for those that differ.

    None when the sizes of the axes do not divide one another, so that there are no common digits.
    """
    if len(before.dims) != len(after.dims):
        return None
    moves: Moves = {}
    cuts: dict[str, set[int]] = {}
    pairs = list(zip(before.dims, after.dims, strict=True))
    for _ in range(64):
        known = {name: set(places) for name, places in cuts.items()}
        moves = {}
        for old, new in pairs:
            matched = _matched(_refined(old, cuts), _refined(new, cuts))
            if matched is None:
                return None
            for p, q in matched:
                for name, above, size in (p, q):
                    cuts.setdefault(name, set()).update((above, above * size))
                moves[p] = q
        if known == cuts:
            return _closed(moves)
    return None


def _refined(digits: Sequence[SubAxis], cuts: dict[str, set[int]]) -> list[SubAxis]:
    """The digits cut at all the places known so far."""
    refined: list[SubAxis] = []
    for name, above, size in digits:
        places = sorted(place for place in cuts.get(name, ()) if above < place < above * size)
        for low, high in pairwise([above, *places, above * size]):
            if high % low:
                return list(digits)
            refined.append(SubAxis(name, low, high // low))
    return refined


def _matched(old: list[SubAxis], new: list[SubAxis]) -> list[tuple[SubAxis, SubAxis]] | None:
    """Two lists of digits cut into pairs of equal size, major first; None when they do not match."""
    old, new, found = old[::-1], new[::-1], []
    while old and new:
        (a, above_a, m), (b, above_b, n) = old.pop(), new.pop()
        size = min(m, n)
        if max(m, n) % size:
            return None
        if m > size:
            old.append(SubAxis(a, above_a * size, m // size))
        if n > size:
            new.append(SubAxis(b, above_b * size, n // size))
        found.append((SubAxis(a, above_a, size), SubAxis(b, above_b, size)))
    return None if old or new else found


def _closed(moves: Moves) -> Moves:
    """The same moves with every open chain of digits joined at its ends, and without those that stay."""
    sources = {q: p for p, q in moves.items()}
    closed = dict(moves)
    for free in moves.values():
        if free not in moves:
            end = free
            while end in sources:
                end = sources[end]
            closed[free] = end
    return {p: q for p, q in closed.items() if p != q}


def move_pairs(moves: Moves, sizes: AxisSizes) -> tuple[tuple[int, ...], ...]:
    """(source, target) of every device of a mesh of those sizes, as positions, by target."""
    digits = [*zip(part_digits(moves, sizes), part_digits(moves.values(), sizes), strict=True)]
    pairs = []
    for target in range(math.prod(sizes.values())):
        source = target
        for (size, stride), (_, stride_in_target) in digits:
            source += (target // stride_in_target % size - target // stride % size) * stride
        pairs.append((source, target))
    return tuple(pairs)
