"""A statement: a named array made from others, and its text: ``H[b,f] = X[b,d] * W1[d,f]``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from shardviz.notation.einsum import Einsum
from shardviz.sharding import ShardedArray

Phase = Literal["forward", "recomputed", "backward", "optimizer"]
"""The part of a train step that a statement belongs to."""


@dataclass(frozen=True)
class Statement:
    """One line of a program: a named array made from others by an einsum, or by another function.

    `einsum` has the dimensions of the operands and of the result; the function (`functions.FUNCTIONS`) is
    applied at every point of all dimensions, and summed over those that the result lacks. A dimension in
    `merged` stands for several others, the major first, and is split as they are; those in `whole` cannot be
    split. An operand that an earlier statement made has that result's name, and its spec is a constraint on
    it, as `jax.lax.with_sharding_constraint`, or None. `result.spec` is None where the compiler may choose.
    A statement may have other names for an array's dimensions than the one that made it: the order counts.
    `number` is what the function takes beside arrays: how many `top_k` keeps, by what `scale` multiplies.
    `source` is the name of the forward result whose statement this one differentiates or computes again, or
    of the array whose gradients it adds up or updates; "" in a forward pass.
    """

    einsum: Einsum
    operands: tuple[ShardedArray, ...]
    result: ShardedArray
    function: str = "multiply"
    merged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    phase: Phase = "forward"
    number: float | None = None
    source: str = ""

    @property
    def summed(self) -> tuple[str, ...]:
        """The dimensions that are summed over: those that the result lacks, also merged or taken apart."""
        has = set(self.result.dims)
        for dim, factors in self.merged:
            if dim in has or has.issuperset(factors):
                has.update((dim, *factors))
        return tuple(dim for dim in self.einsum.dims if dim not in has)


def is_floating(array: ShardedArray) -> bool:
    """Return whether the array can have a gradient: ``bf16``, ``f8e4m3fn``."""
    return array.dtype.removeprefix("b").startswith("f")


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
