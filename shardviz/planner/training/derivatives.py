"""The derivative of each function of a program, as the statement that makes an operand's gradient.

In ``Y = f(A, B)`` the gradient of A is that of Y, times the derivative of f by A, summed over the dimensions
that A lacks and repeated along those that Y lacks: one more statement, over the same dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shardviz.planner.problem import Statement

GRADIENT: Literal["gradient"] = "gradient"
RESULT: Literal["result"] = "result"


@dataclass(frozen=True)
class RowSums:
    """The gradient of the forward result times that result, summed to the dimensions of the operand at a
    `place`."""

    place: int


Taken = Literal["gradient", "result"] | int | RowSums
"""An operand of a gradient's statement: the gradient of the forward result, that result, by its place an
operand of the forward statement, or an array of its own."""


@dataclass(frozen=True)
class Derivative:
    """The gradient of one operand: a `function` of what it takes, in this order, and of a `number`.

    The "sum" of the result's gradient alone passes it on: no statement is needed where the operand has all
    dimensions of the result.
    """

    function: str
    takes: tuple[Taken, ...]
    number: float | None = None


Derivatives = tuple[Derivative | None, ...]
"""By each operand of a statement; None where the result does not change with it, but at jumps."""

PASSED_ON = Derivative("sum", (GRADIENT,))


def derivatives(part: Statement) -> Derivatives:
    """The derivatives of a statement by its operands."""
    return DERIVATIVES[part.function](part)


def _of_multiply(part: Statement) -> Derivatives:
    """In a product, an operand's gradient is the result's times all other operands, in their order."""
    places = range(len(part.operands))
    if len(places) == 1:
        return (PASSED_ON,)
    return tuple(
        Derivative("multiply", tuple(GRADIENT if other == own else other for other in places))
        for own in places
    )


def _points(part: Statement) -> int:
    """The elements of the operand that each element of the result is made of."""
    return math.prod(part.operands[0].shape) // max(1, math.prod(part.result.shape))


def _always(*by_operands: Derivative | None) -> Callable[[Statement], Derivatives]:
    """The derivatives of a function whose statements all have the same."""
    return lambda _: by_operands


def _own(function: str, *takes: Taken) -> Derivative:
    """A function of the result's gradient first."""
    return Derivative(f"{function}_gradient", (GRADIENT, *takes))


def _attention(function: str) -> Callable[[Statement], Derivatives]:
    """By queries, keys and values: each takes all three, from which the scores are computed again."""
    return _always(*(_own(f"{function}_{operand}", 0, 1, 2) for operand in ("query", "key", "value")))


DERIVATIVES: dict[str, Callable[[Statement], Derivatives]] = {
    "multiply": _of_multiply,
    "add": _always(PASSED_ON, PASSED_ON),
    "subtract": _always(PASSED_ON, Derivative("negative", (GRADIENT,))),
    "negative": _always(Derivative("negative", (GRADIENT,))),
    "scale": lambda part: (Derivative("scale", (GRADIENT,), part.number),),
    "divide": _always(Derivative("divide", (GRADIENT, 1)), _own("divide", RESULT, 1)),
    "maximum": _always(_own("maximum", 0, 1), _own("maximum", 1, 0)),
    "minimum": _always(_own("minimum", 0, 1), _own("minimum", 1, 0)),
    "silu": _always(_own("silu", 0)),
    "gelu": _always(_own("gelu", 0)),
    "relu": _always(_own("relu", RESULT)),
    "sigmoid": _always(_own("sigmoid", RESULT)),
    "tanh": _always(_own("tanh", RESULT)),
    "exp": _always(Derivative("multiply", (GRADIENT, RESULT))),
    "log": _always(Derivative("divide", (GRADIENT, 0))),
    "sqrt": _always(_own("sqrt", RESULT)),
    "rsqrt": _always(_own("rsqrt", RESULT)),
    "square": _always(Derivative("square_gradient", (GRADIENT, 0), 2.0)),
    "sum": _always(PASSED_ON),
    "mean": lambda part: (Derivative("scale", (GRADIENT,), 1 / max(1, _points(part))),),
    "mean_square": lambda part: (Derivative("square_gradient", (GRADIENT, 0), 2 / max(1, _points(part))),),
    "max": _always(_own("max", 0, RESULT)),
    "normalize": _always(Derivative("normalize", (GRADIENT, 1)), _own("normalize", 0, 1)),
    "sum_exp": _always(_own("sum_exp", 0, 1), None),
    "softmax": _always(_own("softmax", RESULT, RowSums(1)), None, None),
    "add_log": _always(None, Derivative("divide", (GRADIENT, 1))),
    "pick": _always(_own("pick", 1), None),
    "reshape": _always(Derivative("reshape", (GRADIENT,))),
    "take": _always(_own("take", 1), None),
    "attention": _attention("attention"),
    "causal_attention": _attention("causal_attention"),
    "top_k": _always(_own("top_k", RESULT)),
    "slots": _always(None),
}
"""For each function of a forward pass the derivatives by its operands."""
