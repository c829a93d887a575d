"""The functions of a program's statements: what they cost, in which operands they are linear, their code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Linearity = Literal["product", "sum", "none"]
"""Over a mesh axis of which partial sums are pending: a "product" may take one operand with pending sums, a
"sum" may take all of them so, and leaves its result pending; "none" needs whole values."""


@dataclass(frozen=True)
class LocalFunction:
    """A function that is applied at every point of a statement's dimensions.

    `flops` are its operations at one point, `code` its JAX code with ``{0}``, ``{1}`` for the operands,
    broadcast to the result's dimensions; "" for `multiply`, which is `jnp.einsum`.
    """

    name: str
    linearity: Linearity
    flops: int
    code: str


FUNCTIONS = {
    each.name: each
    for each in (
        LocalFunction("multiply", "product", 2, ""),
        LocalFunction("add", "sum", 1, "{0} + {1}"),
        LocalFunction("silu", "none", 4, "jax.nn.silu({0})"),
    )
}
