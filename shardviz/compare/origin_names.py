"""Which arrays of a problem are meant by the arguments that a collective's operand comes from.

Every einsum of a chain takes an argument that none before it took, or only works on what stands there: so the
arguments that went into a value tell which part of the chain made it.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardviz.compare.summed_operands import summed_operands
from shardviz.hlo import Origin
from shardviz.planner import Contraction, Problem
from shardviz.sharding import ShardedArray


def names_of(origin: Origin, problem: Problem) -> tuple[str, ...]:
    """The arrays that it may be; "a value computed from A" for one that the problem has no name for.

    () when the origin is no part of the problem.
    """
    arguments = problem.arguments
    if not origin.arguments or origin.arguments[-1] >= len(arguments):
        return ()
    made_from = frozenset(origin.arguments)
    names = [] if origin.computed else [arguments[number].name for number in origin.arguments]
    names += [
        result.name
        for result, needed, computed in _results(problem)
        if needed == made_from and origin.computed in computed
    ]
    if origin.computed:
        names += [array.name for array, needed in _sums(problem) if needed == made_from]
    if names:
        return tuple(names)
    return (f"a value computed from {' and '.join(arguments[number].name for number in origin.arguments)}",)


def _results(problem: Problem) -> Iterator[tuple[ShardedArray, frozenset[int], frozenset[bool]]]:
    """Each result, the arguments that it is made of, and whether making it may, or may not, compute."""
    first, *_ = problem.parts
    count = 0
    computed = frozenset({False})
    for part in problem.parts:
        count += len(part.operands) - (part is not first)
        computed = _computes(part, computed)
        yield part.result, frozenset(range(count)), computed


def _sums(problem: Problem) -> Iterator[tuple[ShardedArray, frozenset[int]]]:
    """The sums that an einsum may make of an operand, and the arguments that they are made of."""
    numbers = {array.name: frozenset({number}) for number, array in enumerate(problem.arguments)}
    made_of = numbers | {result.name: needed for result, needed, _ in _results(problem)}
    for part in problem.parts:
        for name, array in summed_operands(part).items():
            yield array, made_of[name]


def _computes(part: Contraction, before: frozenset[bool]) -> frozenset[bool]:
    (operand, *others), result = part.operands, part.result
    if others or operand.elements != result.elements:
        return frozenset({True})
    # A transpose only moves. Where dimensions of one element are added up, a compiler may see that or not.
    return before if sorted(operand.dims) == sorted(result.dims) else before | {True}
