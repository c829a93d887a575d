"""The parts of a program that its writer may not have meant: it runs, but perhaps for a mistyped letter."""

from __future__ import annotations

from collections.abc import Iterator

from shardviz.planner.problem.problem import Problem
from shardviz.sharding import ShardedArray


def notices(problem: Problem) -> tuple[str, ...]:
    """One sentence for each; none for an einsum or a chain of them."""
    return () if problem.is_chain else (*_unused(problem), *dict.fromkeys(_renamed(problem)))


def _unused(problem: Problem) -> Iterator[str]:
    """Results that no statement takes, but for the last."""
    *before, last = problem.forward
    used = {operand.name for part in problem.forward for operand in part.operands}
    unused = [part.result.name for part in before if part.result.name not in used]
    if unused:
        verb, returned = ("is", "it is") if len(unused) == 1 else ("are", "they are")
        *first, final = unused
        names = f"{', '.join(first)} and {final}" if first else final
        yield f"{names} {verb} used by no statement: {returned} returned beside {last.result.name}"


def _renamed(problem: Problem) -> Iterator[str]:
    """Arrays with other letters in a second place, where no statement needs two letters for one size.

    The scores of attention have the sequence twice, so that the keys need another name for theirs.
    """
    together = [
        {*part.result.dims} if part.function == "multiply" else {*part.einsum.dims}
        for part in problem.forward
    ]
    first: dict[str, ShardedArray] = {}
    for part in problem.forward:
        for array in part.operands:
            known = first.setdefault(array.name, array)
            pairs = zip(known.dims, array.dims, strict=True)
            changed = [(old, new) for old, new in pairs if old != new]
            if changed and not any({old, new} <= dims for old, new in changed for dims in together):
                sizes = dict(zip(array.dims, array.shape, strict=True))
                same = " and ".join([f"{new} is {old}, {sizes[new]:,}" for old, new in changed])
                yield f"{_written(known)} is also taken as {_written(array)}: {same}"
        first.setdefault(part.result.name, part.result)


def _written(array: ShardedArray) -> str:
    return f"{array.name}[{', '.join(array.dims)}]"
