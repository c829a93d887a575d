"""The functions of a program's statements as JAX expressions, beside the einsum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shardviz.planner.functions import FUNCTIONS, LocalFunction

if TYPE_CHECKING:
    from shardviz.planner.problem import Statement

Dims = tuple[str, ...]


def function_code(statement: Statement, operands: Sequence[str]) -> str:
    """The expression of a statement's result from the expressions of its operands, which are read more than
    once; `jax` and `jnp` are what they usually are."""
    dims = statement.einsum.operands
    function = FUNCTIONS[statement.function]
    if function.code:
        return _pointwise(statement, function, operands)
    code, made = _STRUCTURED[statement.function](statement, dims, operands)
    return _aligned(code, made, statement.einsum.result)


def _pointwise(statement: Statement, function: LocalFunction, operands: Sequence[str]) -> str:
    """The function of the operands, broadcast to the result's dimensions and then those that it lacks."""
    result, summed = statement.einsum.result, statement.einsum.contracted
    full = (*result, *summed)
    placed = [_aligned(*each, full) for each in zip(operands, statement.einsum.operands, strict=True)]
    number = "" if statement.number is None else repr(statement.number)
    code = function.code.format(*placed, number=number)
    if not summed:
        return code
    axes = tuple(range(len(result), len(full)))
    return f"jnp.{'mean' if function.averages else 'sum'}({code}, axis={axes})"


def _aligned(code: str, dims: Dims, full: Dims) -> str:
    """An array with its dimensions in the order of `full`, and an axis of size 1 for each that it lacks.

    Those in front need none.
    """
    order = [dim for dim in full if dim in dims]
    if tuple(order) != dims:
        code = f"jnp.transpose({code}, {tuple(dims.index(dim) for dim in order)})"
    behind = full[full.index(order[0]) :] if order else ()
    lacking = tuple(number for number, dim in enumerate(behind) if dim not in dims)
    return f"jnp.expand_dims({code}, {lacking})" if lacking else code


def _max(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    axes = tuple(dims[0].index(dim) for dim in statement.whole)
    kept = tuple(dim for dim in dims[0] if dim not in statement.whole)
    return f"jnp.max({operands[0]}, axis={axes})", kept


def _softmax(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    return f"jax.nn.softmax({operands[0]}, axis={dims[0].index(statement.whole[0])})", dims[0]


def _reshape(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    del dims
    return f"jnp.reshape({operands[0]}, {statement.result.shape})", statement.einsum.result


def _take(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    del statement
    table, places = dims
    return f"jnp.take({operands[0]}, {operands[1]}, axis=0)", (*places, *table[1:])


def _attention(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    """Scores, their softmax along the keys and the mean of the values by it."""
    queries, keys, values = dims
    along, size = statement.whole
    sequence = queries[keys.index(along)]
    scores = (*(dim for dim in queries if dim not in (sequence, size)), sequence, along)
    head_size = statement.operands[0].shape[queries.index(size)]
    code = f"{_einsum((queries, keys), scores, operands[:2])} * {head_size}**-0.5"
    if statement.function == "causal_attention":
        rows = statement.operands[0].shape[queries.index(sequence)]
        columns = statement.operands[1].shape[keys.index(along)]
        mask = f"jnp.arange({rows})[:, None] >= jnp.arange({columns})"
        code = f"jnp.where({mask}, {code}, -jnp.inf)"
    weights = f"jax.nn.softmax({code}, axis=-1)"
    return _einsum((scores, values), queries, (weights, operands[2])), queries


def _einsum(operands: Sequence[Dims], result: Dims, codes: Sequence[str]) -> str:
    from shardviz.compiler.statement_code import subscripts
    from shardviz.notation.einsum import Einsum

    return f'jnp.einsum("{subscripts(Einsum(tuple(operands), result))}", {", ".join(codes)})'


def _top_k(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    """What is among the largest stays, the rest is 0: the compiler has no function for that."""
    axis, last = dims[0].index(statement.whole[0]), len(dims[0]) - 1
    among = operands[0] if axis == last else f"jnp.moveaxis({operands[0]}, {axis}, {last})"
    size = statement.operands[0].shape[axis]
    chosen = f"jax.nn.one_hot(jax.lax.top_k({among}, {int(statement.number or 1)})[1], {size}).sum(-2)"
    made = tuple(dim for dim in dims[0] if dim not in statement.whole) + statement.whole
    return f"jnp.where({chosen} > 0, {among}, 0)", made


def _slots(statement: Statement, dims: tuple[Dims, ...], operands: Sequence[str]) -> tuple[str, Dims]:
    """A token's place is how many before it chose the same expert; places that there are not are all 0."""
    (gates,) = operands
    axis = dims[0].index(statement.whole[0])
    ((made, size),) = [
        each
        for each in zip(statement.result.dims, statement.result.shape, strict=True)
        if each[0] not in dims[0]
    ]
    place = f"jnp.where({gates} > 0, jnp.cumsum({gates} > 0, axis={axis}) - 1, -1)"
    return f"jax.nn.one_hot({place}, {size}, dtype={gates}.dtype)", (*dims[0], made)


_STRUCTURED: dict[str, Callable[[Statement, tuple[Dims, ...], Sequence[str]], tuple[str, Dims]]] = {
    "max": _max,
    "softmax": _softmax,
    "reshape": _reshape,
    "take": _take,
    "attention": _attention,
    "causal_attention": _attention,
    "top_k": _top_k,
    "slots": _slots,
}
"""The code of functions that are not pointwise, and the order of the dimensions that it makes."""
