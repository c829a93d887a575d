"""The derivative of each function of a program, as the statement that makes an operand's gradient.

In ``Y = f(A, B)`` the gradient of A is that of Y, times the derivative of f by A, summed over the dimensions
that A lacks: one more statement, of the function `Derivative.function` over the same dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shardviz.planner.problem import Statement

GRADIENT: Literal["gradient"] = "gradient"
RESULT: Literal["result"] = "result"
Taken = Literal["gradient", "result"] | int
"""An operand of a gradient's statement: the gradient of the forward result, that result, or by its place an
operand of the forward statement."""


@dataclass(frozen=True)
class Derivative:
    """The gradient of one operand: a `function` of what it takes, in this order.

    The function "multiply" of the result's gradient alone passes it on: no statement is needed where the
    operand has all dimensions of the result.
    """

    function: str
    takes: tuple[Taken, ...]


PASSED_ON = Derivative("multiply", (GRADIENT,))


def derivatives(part: Statement) -> tuple[Derivative | None, ...]:
    """The derivative of a statement by each of its operands; None where it has none."""
    return DERIVATIVES[part.function](len(part.operands))


def _of_multiply(operands: int) -> tuple[Derivative, ...]:
    """In a product, an operand's gradient is the result's times all other operands, in their order."""
    return tuple(
        Derivative("multiply", tuple(GRADIENT if other == own else other for other in range(operands)))
        for own in range(operands)
    )


def _elementwise(*of_operands: Derivative | None) -> Callable[[int], tuple[Derivative | None, ...]]:
    return lambda _: of_operands


DERIVATIVES: dict[str, Callable[[int], tuple[Derivative | None, ...]]] = {
    "multiply": _of_multiply,
    "add": lambda operands: (PASSED_ON,) * operands,
    "silu": _elementwise(Derivative("silu_gradient", (GRADIENT, 0))),
}
"""For each function the derivatives by its operands, of which it has so many."""
