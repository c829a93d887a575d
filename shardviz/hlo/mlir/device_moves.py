"""Which device sends to which when a tensor's sharding is permuted.

A Shardy permute names only the shardings before and after. Each of the two assigns to every block of the
tensor digits of the device's coordinates. Cut fine enough, the digits match one to one, so that a target's
digit ``q`` says where its source stands in digit ``p``. Digits that no longer, or not yet, choose a block
are closed into cycles, which makes the move a permutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from shardviz.hlo.mlir.tensor_sharding import AxisRef, AxisSizes, TensorSharding

Digit = tuple[str, int, int]
"""Part of a coordinate: axis, how many parts lie above, size."""


def moved_digits(before: TensorSharding, after: TensorSharding) -> dict[Digit, Digit] | None:
    """Source digit → the target's digit that it equals, for those that differ.

    None when the sizes of the axes do not divide one another, so that there are no common digits.
    """
    if len(before.dims) != len(after.dims):
        return None
    moves: dict[Digit, Digit] = {}
    cuts: dict[str, set[int]] = {}
    dims = zip(before.dims, after.dims, strict=True)
    pairs = [(list(map(_digit, old)), list(map(_digit, new))) for old, new in dims]
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


def _digit(axis: AxisRef) -> Digit:
    return axis.name, axis.above, axis.size


def _refined(digits: Sequence[Digit], cuts: dict[str, set[int]]) -> list[Digit]:
    """The digits cut at all the places known so far."""
    found: list[Digit] = []
    for name, above, size in digits:
        places = sorted(p for p in cuts.get(name, ()) if above < p < above * size)
        for low, high in zip([above, *places], [*places, above * size], strict=True):
            if high % low:
                return list(digits)
            found.append((name, low, high // low))
    return found


def _matched(old: list[Digit], new: list[Digit]) -> list[tuple[Digit, Digit]] | None:
    """Two lists of digits cut into pairs of equal size, major first; None when they do not match."""
    old, new, found = old[::-1], new[::-1], []
    while old and new:
        (a, above_a, m), (b, above_b, n) = old.pop(), new.pop()
        size = min(m, n)
        if max(m, n) % size:
            return None
        if m > size:
            old.append((a, above_a * size, m // size))
        if n > size:
            new.append((b, above_b * size, n // size))
        found.append(((a, above_a, size), (b, above_b, size)))
    return None if old or new else found


def _closed(moves: dict[Digit, Digit]) -> dict[Digit, Digit]:
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


def source_of(target: dict[str, int], moves: dict[Digit, Digit], sizes: AxisSizes) -> dict[str, int]:
    """The coordinates of the device that sends to the one at `target`."""
    source = dict(target)
    for p, q in moves.items():
        value = target[q[0]] // (sizes[q[0]] // (q[1] * q[2])) % q[2]
        below = sizes[p[0]] // (p[1] * p[2])
        source[p[0]] += (value - target[p[0]] // below % p[2]) * below
    return source


def move_pairs(moves: dict[Digit, Digit], sizes: AxisSizes) -> tuple[tuple[int, ...], ...]:
    """(source, target) of every device of a mesh of those sizes, as positions, by target."""
    pairs = []
    for target, coordinates in enumerate(product(*map(range, sizes.values()))):
        source = 0
        place = source_of(dict(zip(sizes, coordinates, strict=True)), moves, sizes)
        for name, size in sizes.items():
            source = source * size + place[name]
        pairs.append((source, target))
    return tuple(pairs)
