"""A statement as a JAX expression: the same that the child compiles and that exports write."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.notation.einsum import Einsum
    from shardviz.planner.problem import Statement


def subscripts(einsum: Einsum) -> str:
    """The einsum as `jnp.einsum` takes it: a dimension with a longer name gets a letter that is free."""
    free = (letter for letter in ascii_letters if letter not in einsum.dims)
    letters = {dim: dim if len(dim) == 1 and dim in ascii_letters else next(free) for dim in einsum.dims}
    operands = ",".join("".join(letters[dim] for dim in operand) for operand in einsum.operands)
    return f"{operands}->{''.join(letters[dim] for dim in einsum.result)}"


def statement_code(statement: Statement, operands: Sequence[str], out_sharding: str = "") -> str:
    """The expression of a statement's result from the expressions of its operands, and of its sharding."""
    told = f", out_sharding={out_sharding}" if out_sharding else ""
    return f'jnp.einsum("{subscripts(statement.einsum)}", {", ".join(operands)}{told})'
