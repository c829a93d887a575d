"""The derivative of each function of a program, as the statement that makes an operand's gradient.

In ``Y = f(A, B)`` the gradient of A is that of Y, times the derivative of f by A, summed over the dimensions
that A lacks and repeated along those that Y lacks: one more statement, over the same dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from shardviz.planner.problem import Statement

GRADIENT: Literal["gradient"] = "gradient"
RESULT: Literal["result"] = "result"
ROW_SUMS: Literal["row sums"] = "row sums"
Taken = Literal["gradient", "result", "row sums"] | int
"""An operand of a gradient's statement: the gradient of the forward result; that result; the one times the
other, summed to the dimensions of the second operand; an operand of the forward statement, by its place."""


class Derivative(NamedTuple):
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
    known = DERIVATIVES[part.function]
    return known(part) if callable(known) else known


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
    return max(1, math.prod(part.operands[0].shape) // max(1, math.prod(part.result.shape)))


def _own(function: str, *takes: Taken) -> Derivative:
    return Derivative(f"{function}_gradient", (GRADIENT, *takes))


def _attention(function: str) -> Derivatives:
    """By queries, keys and values: each takes all three, from which the scores are computed again."""
    return tuple(_own(f"{function}_{operand}", 0, 1, 2) for operand in ("query", "key", "value"))


DERIVATIVES: dict[str, Derivatives | Callable[[Statement], Derivatives]] = {
    "multiply": _of_multiply,
    "add": (PASSED_ON, PASSED_ON),
    "subtract": (PASSED_ON, Derivative("negative", (GRADIENT,))),
    "negative": (Derivative("negative", (GRADIENT,)),),
    "scale": lambda part: (Derivative("scale", (GRADIENT,), part.number),),
    "divide": (Derivative("divide", (GRADIENT, 1)), _own("divide", RESULT, 1)),
    "maximum": (_own("maximum", 0, 1), _own("maximum", 1, 0)),
    "minimum": (_own("minimum", 0, 1), _own("minimum", 1, 0)),
    "silu": (_own("silu", 0),),
    "gelu": (_own("gelu", 0),),
    "relu": (_own("relu", RESULT),),
    "sigmoid": (_own("sigmoid", RESULT),),
    "tanh": (_own("tanh", RESULT),),
    "exp": (Derivative("multiply", (GRADIENT, RESULT)),),
    "log": (Derivative("divide", (GRADIENT, 0)),),
    "sqrt": (_own("sqrt", RESULT),),
    "rsqrt": (_own("rsqrt", RESULT),),
    "square": (Derivative("square_gradient", (GRADIENT, 0), 2.0),),
    "sum": (PASSED_ON,),
    "mean": lambda part: (Derivative("scale", (GRADIENT,), 1 / _points(part)),),
    "mean_square": lambda part: (Derivative("square_gradient", (GRADIENT, 0), 2 / _points(part)),),
    "max": (_own("max", 0, RESULT),),
    "normalize": (Derivative("normalize", (GRADIENT, 1)), _own("normalize", 0, 1)),
    "sum_exp": (_own("sum_exp", 0, 1), None),
    "softmax": (_own("softmax", RESULT, ROW_SUMS), None, None),
    "add_log": (None, Derivative("divide", (GRADIENT, 1))),
    "pick": (_own("pick", 1), None),
    "reshape": (Derivative("reshape", (GRADIENT,)),),
    "take": (_own("take", 1), None),
    "attention": _attention("attention"),
    "causal_attention": _attention("causal_attention"),
    "top_k": (_own("top_k", RESULT),),
    "slots": (None,),
}
"""For each function of a forward pass the derivatives by its operands."""
