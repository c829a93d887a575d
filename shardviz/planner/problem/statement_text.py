"""A statement as a program's text has it: ``H[b,f] = X[b,d] * W1[d,f]``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.planner.problem.problem import Statement

_SIGNS = {"add": " + ", "subtract": " - ", "divide": " / "}


def value_pieces(part: Statement) -> Iterator[str | int]:
    """The value of a statement in pieces of text, with the number of an operand where that stands."""
    count = len(part.operands)
    function, einsum = part.function, part.einsum
    if count == 1 and function in ("multiply", "sum"):
        # An einsum of one array sums what its result lacks; a sum over nothing passes the array on.
        function = "sum" if einsum.contracted else "multiply"
    if function == "multiply" and count > 2:
        yield from _between(range(count), ", ")
        yield f" -> {''.join(einsum.result)}"
    elif function == "multiply" or function in _SIGNS:
        yield from _between(range(count), _SIGNS.get(function, " * "))
    elif function == "negative":
        yield from ("-", 0)
    elif function == "scale":
        yield from (f"{part.number:g} * ", 0)
    else:
        yield f"{function}("
        yield from _between(range(count), ", ")
        yield from (f", {each}" for each in _arguments(part, function))
        yield ")"


def statement_text(part: Statement) -> str:
    """A statement with the dimensions of all arrays, which a program's text may have."""
    arrays = [f"{array.name}[{','.join(array.dims)}]" for array in (*part.operands, part.result)]
    value = "".join(each if isinstance(each, str) else arrays[each] for each in value_pieces(part))
    return f"{arrays[-1]} = {value}"


def named_statement(part: Statement) -> str:
    """A statement by the names of its arrays: ``H = X * W1``."""
    arrays = [array.name for array in part.operands]
    value = "".join(each if isinstance(each, str) else arrays[each] for each in value_pieces(part))
    return f"{part.result.name} = {value}"


def _between(numbers: Iterable[int], sign: str) -> Iterator[str | int]:
    for number in numbers:
        if number:
            yield sign
        yield number


def _arguments(part: Statement, function: str) -> Iterator[str]:
    """The words that a function takes beside its arrays."""
    if function in ("sum", "mean", "mean_square", "max", "sum_exp", "pick"):
        yield from part.einsum.contracted
    elif function == "reshape":
        for whole, factors in part.merged:
            yield f"{whole} = {' * '.join(factors)}"
    elif function in ("top_k", "slots"):
        yield from part.whole
        if function == "slots":
            yield from (dim for dim in part.einsum.result if dim not in part.einsum.operands[0])
        if part.number is not None:
            yield f"{part.number:g}"
