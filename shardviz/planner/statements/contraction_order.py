"""The orders in which one statement can be computed: as a whole, or as several, one after the other.

A dimension that only one operand has, and not the result, can be summed before anything else is done; three
operands and more can be multiplied in pairs, in any order (a binary tree of products).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.sharding import ShardedArray

MOST_OPERANDS = 5
"""Up to so many operands every tree is looked at; more are multiplied in their own order."""
MOST_SUMMED = 64
"""Ways to sum before that are looked at."""

Order = tuple[Statement, ...]


def contraction_orders(part: Statement) -> tuple[Order, ...]:
    """The statement itself, and the sequences of statements that make the same result, its own last."""
    if part.function != "multiply" or part.merged:
        return ((part,),)
    found = [order for summed in _summed_before(part) for order in _multiplied(summed)]
    return tuple(found)


def has_all_orders(part: Statement) -> bool:
    """`contraction_orders` leaves none out: no operand has a dimension twice and others that could be summed
    before, and there are few enough."""
    if part.function != "multiply" or part.merged:
        return True
    own = [_own_dims(part.einsum, place) for place in range(len(part.operands))]
    return (
        len(part.operands) <= MOST_OPERANDS
        and prod(len(_sequences(dims)) for dims in own) <= MOST_SUMMED
        and not any(dims and _is_diagonal(operand) for dims, operand in zip(own, part.operands, strict=True))
    )


def _summed_before(part: Statement) -> Iterator[Order]:
    """The statement, with dimensions summed before that only one operand has: every set of them, at once or
    one after the other, as the operand may move in between."""
    own = [
        () if _is_diagonal(operand) else _own_dims(part.einsum, place)
        for place, operand in enumerate(part.operands)
    ]
    choices = [_sequences(dims) for dims in own]
    if prod(map(len, choices)) > MOST_SUMMED:
        choices = [list(dict.fromkeys([(), (dims,) * bool(dims)])) for dims in own]
    if len(part.operands) == 1:
        # The sum over all that are left is the statement itself.
        choices = [[sums for sums in choices[0] if not own[0] or sum(map(len, sums)) < len(own[0])]]
    for chosen in product(*choices):
        before: list[Statement] = []
        operands = []
        for operand, sums in zip(part.operands, chosen, strict=True):
            summed = operand
            for number, dims in enumerate(sums):
                kept = tuple(dim for dim in summed.dims if dim not in dims)
                name = f"{operand.name}_sum{number + 1 if number else ''}"
                summed, whole = _array(name, kept, part, operand), summed
                before.append(_statement((whole,), summed, part))
            operands.append(summed)
        yield (*before, _statement(tuple(operands), part.result, part) if before else part)


def _sequences(dims: tuple[str, ...]) -> list[tuple[tuple[str, ...], ...]]:
    """Every sequence of sets of the dimensions, none of which is in two; the shortest first."""
    found: list[tuple[tuple[str, ...], ...]] = [()]
    for sums in found:
        left = [dim for dim in dims if not any(dim in taken for taken in sums)]
        found += [(*sums, more) for size in range(1, len(left) + 1) for more in combinations(left, size)]
    return found


def _own_dims(einsum: Einsum, place: int) -> tuple[str, ...]:
    """The dimensions that only this operand has, and not the result."""
    dims = einsum.operands[place]
    others = {dim for other in (*einsum.operands[:place], *einsum.operands[place + 1 :]) for dim in other}
    return tuple(dim for dim in dict.fromkeys(dims) if dim not in others and dim not in einsum.result)


def _is_diagonal(operand: ShardedArray) -> bool:
    """It has a dimension twice, and its sum over others would as well, which no einsum can say."""
    return len(set(operand.dims)) < operand.rank


def _multiplied(order: Order) -> Iterator[Order]:
    """The order, with a last product of several operands done in pairs."""
    *before, last = order
    if len(last.operands) < 3:
        yield order
        return
    yield order
    is_small = len(last.operands) <= MOST_OPERANDS
    for tree in dict.fromkeys(_trees(last, last.operands, ()) if is_small else [_in_turn(last)]):
        yield (*before, *tree)


def _trees(part: Statement, operands: tuple[ShardedArray, ...], made: Order) -> Iterator[Order]:
    """Every way to multiply operands in pairs."""
    if len(operands) == 2:
        yield (*made, _statement(operands, part.result, part))
        return
    for one, other in combinations(range(len(operands)), 2):
        pair = operands[one], operands[other]
        rest = tuple(operand for place, operand in enumerate(operands) if place not in (one, other))
        step = _pair(part, pair, rest, len(made) + 1)
        # The product stands where its first operand stood, which is what plans leave in place.
        yield from _trees(part, (*rest[:one], step.result, *rest[one:]), (*made, step))


def _in_turn(part: Statement) -> Order:
    first, *rest = part.operands
    made: list[Statement] = []
    while len(rest) > 1:
        made.append(_pair(part, (first, rest[0]), tuple(rest[1:]), len(made) + 1))
        first, rest = made[-1].result, rest[1:]
    return (*made, _statement((first, rest[0]), part.result, part))


def _pair(
    part: Statement, pair: tuple[ShardedArray, ShardedArray], rest: Sequence[ShardedArray], number: int
) -> Statement:
    """The product of two operands, summed over the dimensions that nothing else has."""
    needed = {dim for array in (*rest, part.result) for dim in array.dims}
    dims = tuple(dict.fromkeys(dim for array in pair for dim in array.dims if dim in needed))
    return _statement(pair, _array(f"{part.result.name}_{number}", dims, part, part.result), part)


def _array(name: str, dims: tuple[str, ...], part: Statement, like: ShardedArray) -> ShardedArray:
    sizes = {dim: size for array in part.operands for dim, size in zip(array.dims, array.shape, strict=True)}
    return ShardedArray(name, dims, tuple(sizes[dim] for dim in dims), like.dtype, None)


def _statement(operands: tuple[ShardedArray, ...], result: ShardedArray, part: Statement) -> Statement:
    """A product of arrays, as a step towards that of a statement."""
    einsum = Einsum(tuple(operand.dims for operand in operands), result.dims)
    return Statement(einsum, operands, result, whole=part.whole, phase=part.phase)
