"""The orders in which one statement can be computed: as a whole, or as several. A dimension that only one
operand has, and not the result, can be summed before; three operands and more can be multiplied in pairs, in
any order (a binary tree of products)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set as AbstractSet
from itertools import combinations, product
from math import prod

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement, unused_name
from shardviz.sharding import ShardedArray

MOST_OPERANDS = 5
"""Up to so many operands every tree is looked at; more are multiplied in their own order."""
MOST_SUMMED = 64
"""Ways to sum before that are looked at."""

Order = tuple[Statement, ...]


def contraction_orders(part: Statement, taken: AbstractSet[str] = frozenset()) -> tuple[Order, ...]:
    """The statement itself, and the sequences of statements that make the same result, its own last; no other
    array has a name that is `taken`."""
    if part.function != "multiply" or part.merged:
        return ((part,),)
    taken = taken | {array.name for array in part.arrays}
    orders: list[Order] = []
    for summed in _summed_before(part, taken):
        orders.append(summed)
        *before, last = summed
        if len(last.operands) > 2:
            trees = dict.fromkeys(_trees(last, last.operands, (), taken | _made(before)))
            orders += [(*before, *tree) for tree in trees]
    return tuple(orders)


def has_all_orders(part: Statement) -> bool:
    """`contraction_orders` leaves none out: no operand has a dimension twice and others that could be summed
    before, and there are few enough."""
    if part.function != "multiply" or part.merged:
        return True
    own = [_own_dims(part.einsum, index) for index in range(len(part.operands))]
    return (
        len(part.operands) <= MOST_OPERANDS
        and prod(len(_sequences(dims)) for dims in own) <= MOST_SUMMED
        and not any(dims and _is_diagonal(operand) for dims, operand in zip(own, part.operands, strict=True))
    )


def _summed_before(part: Statement, taken: AbstractSet[str]) -> Iterator[Order]:
    """The statement, with every set of dimensions summed before, at once or one after the other."""
    own = [
        () if _is_diagonal(operand) else _own_dims(part.einsum, index)
        for index, operand in enumerate(part.operands)
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
            for dims in sums:
                kept = tuple(dim for dim in summed.dims if dim not in dims)
                name = unused_name(f"{operand.name}_sum", {*taken, *_made(before)})
                summed, whole = _array(name, kept, part, operand), summed
                before.append(_statement((whole,), summed, part))
            operands.append(summed)
        yield (*before, _statement(tuple(operands), part.result, part) if before else part)


def _sequences(dims: tuple[str, ...]) -> list[tuple[tuple[str, ...], ...]]:
    """Every sequence of sets of the dimensions, none of which is in two; the shortest first."""
    sequences: list[tuple[tuple[str, ...], ...]] = [()]
    for sums in sequences:
        left = [dim for dim in dims if not any(dim in taken for taken in sums)]
        sequences += [(*sums, more) for size in range(1, len(left) + 1) for more in combinations(left, size)]
    return sequences


def _own_dims(einsum: Einsum, index: int) -> tuple[str, ...]:
    """The dimensions that only this operand has, and not the result."""
    dims = einsum.operands[index]
    others = {dim for other in (*einsum.operands[:index], *einsum.operands[index + 1 :]) for dim in other}
    return tuple(dim for dim in dict.fromkeys(dims) if dim not in others and dim not in einsum.result)


def _is_diagonal(operand: ShardedArray) -> bool:
    """It has a dimension twice, and its sum over others would as well, which no einsum can say."""
    return len(set(operand.dims)) < operand.rank


def _trees(
    part: Statement, operands: tuple[ShardedArray, ...], made: Order, taken: AbstractSet[str]
) -> Iterator[Order]:
    """Every way to multiply operands in pairs; of many the one that takes the first two each time."""
    if len(operands) == 2:
        yield (*made, _statement(operands, part.result, part))
        return
    is_small = len(part.operands) <= MOST_OPERANDS
    for one, other in combinations(range(len(operands)), 2) if is_small else [(0, 1)]:
        pair = operands[one], operands[other]
        rest = tuple(operand for index, operand in enumerate(operands) if index not in (one, other))
        # Summed over the dimensions that nothing else has.
        needed = {dim for array in (*rest, part.result) for dim in array.dims}
        dims = tuple(dict.fromkeys(dim for array in pair for dim in array.dims if dim in needed))
        name = unused_name(part.result.name, {*taken, *_made(made)}, 1)
        step = _statement(pair, _array(name, dims, part, part.result), part)
        # The product stands where its first operand stood, which is what plans leave in place.
        yield from _trees(part, (*rest[:one], step.result, *rest[one:]), (*made, step), taken)


def _made(steps: Iterable[Statement]) -> set[str]:
    return {step.result.name for step in steps}


def _array(name: str, dims: tuple[str, ...], part: Statement, like: ShardedArray) -> ShardedArray:
    return ShardedArray(name, dims, tuple(part.sizes[dim] for dim in dims), like.dtype, None)


def _statement(operands: tuple[ShardedArray, ...], result: ShardedArray, part: Statement) -> Statement:
    """A product of arrays, as a step towards that of a statement."""
    einsum = Einsum(tuple(operand.dims for operand in operands), result.dims)
    return Statement(einsum, operands, result, whole=part.whole, phase=part.phase)
