"""The functions of a program's statements: in which operands they are linear, their code, and what they cost:
the FLOPs of a statement on a device, and the bytes that it reads and writes there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shardviz.planner.problem import Statement
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS

Shape = tuple[int, ...]
Linearity = Literal["product", "sum", "none"]
"""Over a mesh axis of which partial sums are pending: a "product" may take one operand with pending sums, a
"sum" may take all of them so, and leaves its result pending; "none" needs whole values."""
Counted = Literal["points", "operand", "result"]


@dataclass(frozen=True)
class LocalFunction:
    """A function of a statement's operands, which each device applies to what it holds of them.

    `operands` is how many arrays it takes, and `linear_in` those among them, by number, that may come with
    pending sums; None is any. `flops` are its operations, the addition to a sum among them, at one point of
    all dimensions ("points"), or for each element of its first "operand" or of its "result". `code` is its
    JAX code at one point, with ``{0}``, ``{1}`` for the operands broadcast to all dimensions; "" where it is
    not pointwise, and for `multiply`, which is `jnp.einsum`. Over dimensions that the result lacks the points
    are summed, or with `averages` their mean is taken, or with `takes_largest` the largest of the part of
    each device, then of all by a `pmax`. Of an operand in `looks_up` no more elements are read than the
    result has. With `multiplies_matrices` it is bound by the peak of a chip, as matrix products are.
    """

    name: str
    operands: int | None
    linearity: Linearity
    flops: int
    code: str = ""
    counted: Counted = "points"
    linear_in: tuple[int, ...] | None = None
    averages: bool = False
    takes_largest: bool = False
    looks_up: tuple[int, ...] = ()
    multiplies_matrices: bool = False

    def may_pend(self, operand: int) -> bool:
        """This operand may come with pending sums, alone or with all others by `linearity`."""
        return self.linearity != "none" and (self.linear_in is None or operand in self.linear_in)


_ELEMENTWISE = (
    ("silu", 5, "jax.nn.silu({0})"),
    ("gelu", 8, "jax.nn.gelu({0})"),
    ("relu", 1, "jax.nn.relu({0})"),
    ("sigmoid", 4, "jax.nn.sigmoid({0})"),
    ("tanh", 4, "jnp.tanh({0})"),
    ("exp", 1, "jnp.exp({0})"),
    ("log", 1, "jnp.log({0})"),
    ("sqrt", 1, "jnp.sqrt({0})"),
    ("rsqrt", 1, "jax.lax.rsqrt({0})"),
    ("square", 1, "jnp.square({0})"),
)
"""Name, operations at one point (a transcendental function counts as one), JAX code."""

PROGRAM_FUNCTIONS = {
    function.name: function
    for function in (
        LocalFunction("multiply", None, "product", 2),
        LocalFunction("add", 2, "sum", 1, "{0} + {1}"),
        LocalFunction("subtract", 2, "sum", 1, "{0} - {1}"),
        LocalFunction("negative", 1, "sum", 1, "-{0}"),
        LocalFunction("scale", 1, "sum", 1, "{0} * {number}"),
        LocalFunction("divide", 2, "product", 1, "{0} / {1}", linear_in=(0,)),
        LocalFunction("maximum", 2, "none", 1, "jnp.maximum({0}, {1})"),
        LocalFunction("minimum", 2, "none", 1, "jnp.minimum({0}, {1})"),
        *(LocalFunction(name, 1, "none", flops, code) for name, flops, code in _ELEMENTWISE),
        LocalFunction("sum", 1, "sum", 1, "{0}"),
        LocalFunction("mean", 1, "sum", 1, "{0}", averages=True),
        LocalFunction("mean_square", 1, "none", 2, "jnp.square({0})", averages=True),
        LocalFunction("max", 1, "none", 1, takes_largest=True),
        LocalFunction("normalize", 2, "product", 3, "{0} * jax.lax.rsqrt({1} + 1e-6)", linear_in=(0,)),
        LocalFunction("sum_exp", 2, "none", 3, "jnp.exp({0} - jax.lax.stop_gradient({1}))"),
        LocalFunction("softmax", 3, "none", 3, "jnp.exp({0} - jax.lax.stop_gradient({1})) / {2}"),
        LocalFunction("add_log", 2, "none", 2, "jax.lax.stop_gradient({0}) + jnp.log({1})"),
        LocalFunction("pick", 2, "product", 1, linear_in=(0,)),
        LocalFunction("reshape", 1, "sum", 0),
        LocalFunction("take", 2, "product", 0, counted="result", linear_in=(0,), looks_up=(0,)),
        LocalFunction("attention", 3, "product", 4, linear_in=(2,), multiplies_matrices=True),
        LocalFunction("causal_attention", 3, "product", 2, linear_in=(2,), multiplies_matrices=True),
        LocalFunction("top_k", 1, "none", 2, counted="operand"),
        LocalFunction("slots", 1, "none", 2, counted="result"),
    )
}
"""The functions that a program may write."""

_GRADIENTS = (
    ("silu", 2, 6, "{0} * jax.nn.sigmoid({1}) * (1 + {1} * (1 - jax.nn.sigmoid({1})))"),
    ("gelu", 2, 16, "jax.vjp(jax.nn.gelu, {1})[1]({0})[0]"),
    ("relu", 2, 1, "{0} * ({1} > 0)"),
    ("sigmoid", 2, 3, "{0} * {1} * (1 - {1})"),
    ("tanh", 2, 3, "{0} * (1 - jnp.square({1}))"),
    ("sqrt", 2, 2, "{0} / (2 * {1})"),
    ("rsqrt", 2, 4, "-0.5 * {0} * {1} ** 3"),
    ("square", 2, 2, "{number} * {0} * {1}"),
    ("divide", 3, 2, "-{0} * {1} / {2}"),
    ("maximum", 3, 3, "{0} * (0.5 * ({1} > {2}) + 0.5 * ({1} >= {2}))"),
    ("minimum", 3, 3, "{0} * (0.5 * ({1} < {2}) + 0.5 * ({1} <= {2}))"),
    ("max", 3, 2, "{0} * ({1} == {2})"),
    ("sum_exp", 3, 3, "{0} * jnp.exp({1} - {2})"),
    ("normalize", 3, 6, "-0.5 * {0} * {1} * jax.lax.rsqrt({2} + 1e-6) ** 3"),
    ("top_k", 2, 1, "{0} * ({1} != 0)"),
)
"""For functions at one point: the operands of what makes an operand's gradient, the result's gradient first,
its operations and its JAX code (`training` says what the others are)."""
_OPTIMIZER = (
    ("adam_mean", 2, 3, "0.9 * {0} + 0.1 * {1}"),
    ("adam_square", 2, 4, "0.999 * {0} + 0.001 * jnp.square({1})"),
    ("adam_update", 3, 5, "{0} - 1e-3 * {1} / (jnp.sqrt({2}) + 1e-8)"),
    ("sgd_update", 2, 2, "{0} - 1e-3 * {1}"),
)
"""The steps of Adam (Kingma and Ba 2015, with the bias of the moments in the rate) and of SGD, for a rate of
0.001: operands, operations, JAX code."""

FUNCTIONS = PROGRAM_FUNCTIONS | {
    function.name: function
    for function in (
        LocalFunction("convert", 1, "sum", 0, "{0}"),
        *(
            LocalFunction(f"{name}_gradient", operands, "product", flops, code, linear_in=(0,))
            for name, operands, flops, code in _GRADIENTS
        ),
        LocalFunction("softmax_gradient", 3, "sum", 2, "{1} * ({0} - {2})", linear_in=(0, 2)),
        LocalFunction("pick_gradient", 2, "product", 1, counted="result", linear_in=(0,)),
        LocalFunction("take_gradient", 2, "product", 1, counted="operand", linear_in=(0,)),
        *(
            LocalFunction(
                f"{name}_{operand}_gradient",
                4,
                "product",
                flops * share,
                linear_in=(0,),
                multiplies_matrices=True,
            )
            for name, flops in (("attention", 2), ("causal_attention", 1))
            for operand, share in (("query", 1), ("key", 2), ("value", 2))
        ),
        *(LocalFunction(name, operands, "none", flops, code) for name, operands, flops, code in _OPTIMIZER),
    )
}
"""These, and those that only gradients and optimizers take."""


KEEP_WHOLE = frozenset(("multiply", "add", "sum", "reshape", "convert", "take"))
"""Functions that make whole numbers of whole numbers."""
ABOVE_ZERO = frozenset(("sqrt", "rsqrt", "log", "adam_square"))
"""Functions of numbers that are not negative."""


def statement_flops(part: Statement, operands: Sequence[Shape], result: Shape) -> int:
    """Operations of a statement on a device that holds pieces of these shapes of its operands and its
    result."""
    local: dict[str, int] = {}
    for array, shape in zip(part.arrays, (*operands, result), strict=True):
        for dim, size in zip(array.dims, shape, strict=True):
            local[dim] = min(size, local.get(dim, size))
    operand_dims = {dim for array in part.operands for dim in array.dims}
    points = math.prod(size for dim, size in local.items() if dim in operand_dims)
    if part.function == "multiply":
        # A multiplication for each operand after the first, and an addition where a dimension is summed.
        return points * (len(part.operands) - 1 + bool(operand_dims.difference(part.result.dims)))
    function = FUNCTIONS[part.function]
    if function.counted == "operand":
        return function.flops * math.prod(operands[0])
    if function.counted == "result":
        return function.flops * math.prod(result)
    return points * function.flops


def local_work(part: Statement, operands: Sequence[Shape], result: Shape) -> tuple[int, int, str]:
    """FLOPs, bytes read and written, and the dtype of matrix products ("" without any) of a statement on a
    device that holds pieces of these shapes."""
    looks_up = FUNCTIONS[part.function].looks_up
    traffic = array_bytes(result, part.result.dtype)
    for index, (array, shape) in enumerate(zip(part.operands, operands, strict=True)):
        size = array_bytes(shape, array.dtype)
        looked_up = math.prod(result) * size // max(1, math.prod(shape))
        traffic += min(size, looked_up) if index in looks_up else size
    return statement_flops(part, operands, result), traffic, matmul_dtype(part)


def is_matmul(part: Statement) -> bool:
    """Return whether the statement sums over a dimension that several operands have."""
    operands_with = Counter(dim for dims in part.einsum.operands for dim in dims)
    return part.function == "multiply" and any(operands_with[dim] > 1 for dim in part.einsum.contracted)


def matmul_dtype(part: Statement) -> str:
    """The dtype of a statement's matrix products, that of its largest elements; "" where it has none: only
    these are bound by a chip's published peak, all else by its HBM."""
    if not is_matmul(part) and not FUNCTIONS[part.function].multiplies_matrices:
        return ""
    return max((array.dtype for array in part.operands), key=BITS.__getitem__)
