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


def _summed_before(part: Statement) -> Iterator[Order]:
    """The statement, with every set of dimensions summed before that only one operand has."""
    own = [_own_dims(part.einsum, place) for place in range(len(part.operands))]
    choices = [_subsets(dims) for dims in own]
    if len(part.operands) == 1:
        # The sum over all of them is the statement itself.
        choices = [[dims for dims in choices[0] if len(dims) < len(own[0])] or [()]]
    if prod(map(len, choices)) > MOST_SUMMED:
        choices = [list(dict.fromkeys([(), dims])) for dims in own]
    for gone in product(*choices):
        sums, operands = [], []
        for operand, dims in zip(part.operands, gone, strict=True):
            operands.append(operand)
            if dims:
                kept = tuple(dim for dim in operand.dims if dim not in dims)
                operands[-1] = _array(f"{operand.name}_sum", kept, part, operand)
                sums.append(_statement((operand,), operands[-1], part))
        yield (*sums, _statement(tuple(operands), part.result, part) if sums else part)


def _subsets(dims: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [chosen for size in range(len(dims) + 1) for chosen in combinations(dims, size)]


def _own_dims(einsum: Einsum, place: int) -> tuple[str, ...]:
    """The dimensions that only this operand has, and not the result."""
    dims = einsum.operands[place]
    if len(set(dims)) < len(dims):
        return ()  # the sum would have a dimension twice as well
    others = {dim for other in (*einsum.operands[:place], *einsum.operands[place + 1 :]) for dim in other}
    return tuple(dim for dim in dims if dim not in others and dim not in einsum.result)


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
