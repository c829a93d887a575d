"""The functions of a program's statements, one entry each: in which operands it is linear, which says how its
work may be split, its FLOPs, its JAX code and its derivatives; and what a statement costs a device. How calls
in a program's text become such statements, `calls` says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import eq
from typing import Any, Literal, NamedTuple, cast

from shardviz.planner.problem import Statement
from shardviz.planner.problem.jax_code import WHOLE, JaxCode, LocalDims, dtype_code
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS, promoted_dtype

Shape = tuple[int, ...]
Linearity = Literal["product", "sum", "none"]
"""Over a mesh axis of which partial sums are pending: a "product" may take one operand with pending sums, a
"sum" may take all of them so, and leaves its result pending; "none" needs whole values."""
GRADIENT: Literal["gradient"] = "gradient"
RESULT: Literal["result"] = "result"
ROW_SUMS: Literal["row sums"] = "row sums"
Taken = Literal["gradient", "result", "row sums"] | int
"""An operand of a gradient's statement: the gradient of the forward result; that result; the one times the
other, summed to the dimensions of the second operand; an operand of the forward statement, by its place."""


class Derivative(NamedTuple):
    """The gradient of one operand: a `function` of what it takes, in this order, and of a `number`, or else
    the statement's. The "sum" of the result's gradient alone passes it on, without a statement if the operand
    has all its dimensions."""

    function: str
    takes: tuple[Taken, ...] = (GRADIENT,)
    number: float | None = None


Derivatives = tuple[Derivative | None, ...]
"""By each operand of a statement; None where the result does not change with it, but at jumps."""
PASSED_ON = Derivative("sum")
DIVIDED = Derivative("divide", (GRADIENT, 1))
Code = str | Callable[[JaxCode], str]


@dataclass(frozen=True)
class LocalFunction:
    """A function of a statement's operands, which each device applies to what it holds of them.

    `operands` is how many arrays it takes, and `linear_in` those among them, by number, that may come with
    pending sums; None is any. `flops` are its operations, the addition to a sum among them, at one point of
    all dimensions ("points"), for each element of its first "operand" or of its "result", or of the vectors
    of each pair of a query and a key, of those that a causal mask leaves to the device with most of them
    ("pairs"). `code` is its JAX code at one point, with ``{0}``, ``{1}`` for the operands broadcast to all
    dimensions, or for a function that is not pointwise what writes it. Over dimensions that the result lacks
    the points are summed, or with `averages` their mean is taken, or with `takes_largest` the largest of what
    each device has, then of all by a `pmax`. Of an operand in `looks_up` no more elements are read than the
    result has; one in `selects` says which elements are taken, and its dtype is none of numbers. With
    `multiplies_matrices` it is bound by the peak of a chip, as matrix products are. With `keeps_integers`
    integers give integers; with `of_positive` the operands must be positive; queries and keys
    `of_one_sequence` are equally many; a function that `makes_places` has them as one more dimension of its
    result; `few` is the usual size of the last dimension in `Statement.whole`, of which a function that
    `halves` takes halves. One that `joins` has a dimension as long as those in `whole` together; the one in
    `whole` of a function that `lies_within` is a part of `Statement.along`, from its number on. With
    `in_place` the result takes the place of the first operand. Where devices split `Statement.whole[0]`, each
    has a `halo` of these arrays, by number: the positions before its shard of an operand come from the device
    before, gradients of those of the result, -1, go back to it. What `shares_rows` makes of its own keys is
    weighed by the sums of all, and is a partial sum."""

    operands: int | None
    linearity: Linearity
    flops: int
    code: Code
    derivatives: Derivatives | Callable[[Statement], Derivatives] = ()
    counted: Literal["points", "operand", "result", "pairs"] = "points"
    linear_in: tuple[int, ...] | None = None
    averages: bool = False
    takes_largest: bool = False
    looks_up: tuple[int, ...] = ()
    selects: tuple[int, ...] = ()
    multiplies_matrices: bool = False
    keeps_integers: bool = False
    of_positive: bool = False
    of_one_sequence: bool = False
    makes_places: bool = False
    few: int = 0
    joins: bool = False
    lies_within: bool = False
    in_place: bool = False
    halves: bool = False
    halo: tuple[int, ...] = ()
    shares_rows: bool = False

    def may_pend(self, operand: int) -> bool:
        """This operand may come with pending sums, alone or with all others by `linearity`."""
        return self.linearity != "none" and (self.linear_in is None or operand in self.linear_in)


def derivatives(part: Statement) -> Derivatives:
    """The derivatives of a statement by its operands."""
    known = FUNCTIONS[part.function].derivatives
    return known(part) if callable(known) else known


def points_per_result(part: Statement) -> int:
    """The elements of the operand that each element of the result is made of."""
    return max(1, math.prod(part.operands[0].shape) // max(1, math.prod(part.result.shape)))


def _of_multiply(part: Statement) -> Derivatives:
    """In a product, an operand's gradient is the result's times all other operands, in their order."""
    places = range(len(part.operands))
    if len(places) == 1:
        return (PASSED_ON,)
    takes = (tuple(GRADIENT if other == own else other for other in places) for own in places)
    return tuple(Derivative("multiply", taken) for taken in takes)


def _of_first(
    operands: int | None, flops: int, code: Code, *derivatives: Derivative | None, **fields: object
) -> LocalFunction:
    """A function that is linear in its first operand alone."""
    usual = {"linearity": "product", "linear_in": (0,)} | fields
    return LocalFunction(operands, flops=flops, code=code, derivatives=derivatives, **usual)  # type: ignore[arg-type]


_GRADIENTS: dict[str, LocalFunction] = {}


def _own(name: str, flops: int, code: Code, *takes: Taken, **fields: object) -> Derivative:
    """The gradient by a function of its own, of the result's gradient, and what more it `takes`."""
    _GRADIENTS[f"{name}_gradient"] = _of_first(1 + len(takes), flops, code, **fields)
    return Derivative(f"{name}_gradient", (GRADIENT, *takes))


def _elementwise(flops: int, code: str, derivative: Derivative, **fields: Any) -> LocalFunction:
    """A function of each element; a transcendental one counts as one operation."""
    return LocalFunction(1, "none", flops, code, (derivative,), **fields)


def _of_two(sign: str, function: str) -> LocalFunction:
    """The larger or the smaller of two; of equal ones each has half the gradient."""
    code = f"{{0}} * (0.5 * ({{1}} {sign} {{2}}) + 0.5 * ({{1}} {sign}= {{2}}))"
    takes = (_own(function, 3, code, 0, 1), _own(function, 3, code, 1, 0))
    return LocalFunction(2, "none", 1, f"jnp.{function}({{0}}, {{1}})", takes, keeps_integers=True)


def _by_jax(
    name: str, code: Callable[[JaxCode], str], operand: int, flops: int, *takes: int, **fields: object
) -> Derivative:
    """The gradient of one operand as JAX derives it from a function's code. Where the function is linear in
    the operand, which has the result's dimensions, that need not be taken."""
    return _own(name, flops, lambda written: written.gradient(code, operand, takes), *takes, **fields)


def _attention(name: str, is_causal: bool = True) -> LocalFunction:
    """Each gradient takes queries, keys and values, from which the scores are computed again, and the second
    queries and keys, if there are some."""
    fields: dict[str, Any] = {"multiplies_matrices": True, "of_one_sequence": is_causal, "counted": "pairs"}
    words = {"query": 2, "key": 4, "value": 4, "second_query": 2, "second_key": 4}

    def derivatives(part: Statement) -> Derivatives:
        takes = (GRADIENT, *range(len(part.operands)))
        return tuple(Derivative(f"{name}_{word}_gradient", takes) for word in [*words][: len(takes) - 1])

    has_halo = name == "window_attention"
    for operand, (word, flops) in enumerate(words.items()):

        def code(written: JaxCode, operand: int = operand) -> str:
            return written.gradient(JaxCode.attention, operand, range(len(written.operands) - 1))

        # What comes for the first of a backward kernel's gradients is there for the others.
        halo = ((2, 3) if word == "query" else (-1,)) if has_halo else ()
        _GRADIENTS[f"{name}_{word}_gradient"] = _of_first(None, flops, code, halo=halo, **fields)
    fields |= {"halo": (1, 2)} if has_halo else {"shares_rows": True}
    return LocalFunction(3, "product", 2, JaxCode.attention, derivatives, linear_in=(2,), **fields)


def _linear_attention() -> LocalFunction:
    """Its FLOPs are those of the recurrence. Gradients compute the states again, and those backwards."""
    of, names = JaxCode.linear_attention, ("_factor", "_query", "_key", "_value")
    takes = tuple(
        _by_jax(f"linear_attention{name}", of, operand, flops, 0, 1, 2, 3, multiplies_matrices=True)
        for operand, (name, flops) in enumerate(zip(names, (8, 5, 5, 5), strict=True))
    )
    return LocalFunction(4, "product", 5, of, takes, linear_in=(1, 2, 3), multiplies_matrices=True)


def _of_mean(part: Statement) -> Derivatives:
    return (Derivative("scale", number=1 / points_per_result(part)),)


def _of_mean_square(part: Statement) -> Derivatives:
    return (Derivative("square_gradient", (GRADIENT, 0), 2 / points_per_result(part)),)


def _of_places(
    operands: int | None,
    code: Code,
    derivatives: Derivatives | Callable[[Statement], Derivatives],
    **fields: Any,
) -> LocalFunction:
    """A function that moves elements to other places, without arithmetic."""
    return LocalFunction(operands, "sum", 0, code, derivatives, keeps_integers=True, **fields)


def _of_slice(part: Statement) -> Derivatives:
    return (Derivative("slice", number=-(part.number or 0)),)


def _of_concatenate(part: Statement) -> Derivatives:
    starts = accumulate((part.sizes[dim] for dim in part.whole), initial=0)
    return tuple(Derivative("slice", number=start) for start, _ in zip(starts, part.whole, strict=False))


def _of_update(part: Statement) -> Derivatives:
    """The gradients of what stays of the array, and of its new rows."""
    start = part.sizes[part.along] - part.sizes[part.whole[0]]
    return Derivative("update_gradient", number=start), Derivative("slice", number=start)


_RAISED = "jnp.exp({0} - jax.lax.stop_gradient({1}))"
_OF_SOFTMAX = _own("softmax", 2, "{1} * ({0} - {2})", RESULT, ROW_SUMS, linearity="sum", linear_in=(0, 2))
_OF_MAX = _own("max", 2, "{0} * ({1} == {2})", 0, RESULT)
_OF_RELU = _own("relu", 1, "{0} * ({1} > 0)", RESULT)
_OF_SQUARE = _own("square", 2, "{number} * {0} * {1}", 0)._replace(number=2.0)
_OF_TOP_K = _own("top_k", 1, "{0} * ({1} != 0)", RESULT)
_OF_TAKE = _own("take", 1, JaxCode.take_gradient, 1, counted="operand", selects=(1,))
_OF_PICK = _own("pick", 1, JaxCode.pick_gradient, 1, counted="result", selects=(1,))
_OF_WHERE = _own("where", 1, "jnp.where({1}, {0}, 0)", 0, selects=(1,))
_OF_ROTARY = _by_jax("rotary", JaxCode.rotary, 0, 3, linearity="sum")
_OF_CUMSUM = _by_jax("cumsum", JaxCode.cumsum, 0, 1, linearity="sum")
PROGRAM_FUNCTIONS = {
    "multiply": LocalFunction(None, "product", 2, JaxCode.product, _of_multiply, keeps_integers=True),
    "add": LocalFunction(2, "sum", 1, "{0} + {1}", (PASSED_ON, PASSED_ON), keeps_integers=True),
    "subtract": LocalFunction(
        2, "sum", 1, "{0} - {1}", (PASSED_ON, Derivative("negative")), keeps_integers=True
    ),
    "negative": LocalFunction(1, "sum", 1, "-{0}", (Derivative("negative"),), keeps_integers=True),
    "scale": LocalFunction(1, "sum", 1, "{0} * {number}", (Derivative("scale"),)),
    "divide": _of_first(2, 1, "{0} / {1}", DIVIDED, _own("divide", 2, "-{0} * {1} / {2}", RESULT, 1)),
    "maximum": _of_two(">", "maximum"),
    "minimum": _of_two("<", "minimum"),
    "silu": _elementwise(
        5,
        "jax.nn.silu({0})",
        _own("silu", 6, "{0} * jax.nn.sigmoid({1}) * (1 + {1} * (1 - jax.nn.sigmoid({1})))", 0),
    ),
    "gelu": _elementwise(8, "jax.nn.gelu({0})", _own("gelu", 16, "jax.vjp(jax.nn.gelu, {1})[1]({0})[0]", 0)),
    "relu": _elementwise(1, "jax.nn.relu({0})", _OF_RELU, keeps_integers=True),
    "sigmoid": _elementwise(4, "jax.nn.sigmoid({0})", _own("sigmoid", 3, "{0} * {1} * (1 - {1})", RESULT)),
    "tanh": _elementwise(4, "jnp.tanh({0})", _own("tanh", 3, "{0} * (1 - jnp.square({1}))", RESULT)),
    "exp": _elementwise(1, "jnp.exp({0})", Derivative("multiply", (GRADIENT, RESULT))),
    "log": _elementwise(1, "jnp.log({0})", Derivative("divide", (GRADIENT, 0)), of_positive=True),
    "sqrt": _elementwise(1, "jnp.sqrt({0})", _own("sqrt", 2, "{0} / (2 * {1})", RESULT), of_positive=True),
    "rsqrt": _elementwise(
        1, "jax.lax.rsqrt({0})", _own("rsqrt", 4, "-0.5 * {0} * {1} ** 3", RESULT), of_positive=True
    ),
    "square": _elementwise(1, "jnp.square({0})", _OF_SQUARE, keeps_integers=True),
    "sum": LocalFunction(1, "sum", 1, "{0}", (PASSED_ON,), keeps_integers=True),
    "mean": LocalFunction(1, "sum", 1, "{0}", _of_mean, averages=True),
    "mean_square": LocalFunction(1, "none", 2, "jnp.square({0})", _of_mean_square, averages=True),
    "max": LocalFunction(1, "none", 1, JaxCode.largest, (_OF_MAX,), takes_largest=True, keeps_integers=True),
    "normalize": _of_first(
        2,
        3,
        "{0} * jax.lax.rsqrt({1} + 1e-6)",
        Derivative("normalize", (GRADIENT, 1)),
        _own("normalize", 6, "-0.5 * {0} * {1} * jax.lax.rsqrt({2} + 1e-6) ** 3", 0, 1),
    ),
    "sum_exp": LocalFunction(
        2, "none", 3, _RAISED, (_own("sum_exp", 3, "{0} * jnp.exp({1} - {2})", 0, 1), None)
    ),
    "softmax": LocalFunction(3, "none", 3, f"{_RAISED} / {{2}}", (_OF_SOFTMAX, None, None)),
    "add_log": LocalFunction(2, "none", 2, "jax.lax.stop_gradient({0}) + jnp.log({1})", (None, DIVIDED)),
    "pick": _of_first(2, 1, JaxCode.pick, _OF_PICK, None, selects=(1,), keeps_integers=True),
    "reshape": _of_places(1, JaxCode.reshape, (Derivative("reshape"),)),
    "slice": _of_places(1, JaxCode.slice, _of_slice, looks_up=(0,), lies_within=True),
    "concatenate": _of_places(None, JaxCode.concatenate, _of_concatenate, joins=True),
    "update": _of_places(2, JaxCode.update, _of_update, lies_within=True, in_place=True, few=1),
    "take": _of_first(2, 0, JaxCode.take, _OF_TAKE, None, looks_up=(0,), selects=(1,), keeps_integers=True),
    "attention": _attention("attention", is_causal=False),
    "causal_attention": _attention("causal_attention"),
    "window_attention": _attention("window_attention"),
    "rotary": LocalFunction(1, "sum", 3, JaxCode.rotary, (_OF_ROTARY,), halves=True),
    "cumsum": LocalFunction(1, "sum", 1, JaxCode.cumsum, (_OF_CUMSUM,), keeps_integers=True),
    "scan": LocalFunction(
        2,
        "product",
        2,
        JaxCode.scan,
        (_by_jax("scan_factor", JaxCode.scan, 0, 6, 0, 1), _by_jax("scan", JaxCode.scan, 1, 2, 0)),
        linear_in=(1,),
        keeps_integers=True,
    ),
    "linear_attention": _linear_attention(),
    "conv": LocalFunction(
        2,
        "product",
        2,
        JaxCode.conv,
        (
            _by_jax("conv", JaxCode.conv, 0, 2, 1, halo=(-1,)),
            _by_jax("conv_weight", JaxCode.conv, 1, 2, 0, 1, halo=(1,)),
        ),
        keeps_integers=True,
        few=4,
        halo=(0,),
    ),
    "where": LocalFunction(
        3,
        "sum",
        1,
        "jnp.where({0}, {1}, {2})",
        (None, _OF_WHERE, _own("where_not", 1, "jnp.where({1}, 0, {0})", 0, selects=(1,))),
        linear_in=(1, 2),
        selects=(0,),
        keeps_integers=True,
    ),
    "dropout": _of_first(
        2,
        1,
        "jnp.where({1}, {0} / (1 - {number}), 0)",
        Derivative("dropout", (GRADIENT, 1)),
        None,
        selects=(1,),
    ),
    "top_k": LocalFunction(1, "none", 2, JaxCode.top_k, (_OF_TOP_K,), counted="operand", keeps_integers=True),
    "slots": LocalFunction(1, "none", 2, JaxCode.slots, (None,), counted="result", makes_places=True),
    "dispatch": _of_first(
        *(2, 0, JaxCode.dispatch, _own("dispatch", 1, JaxCode.dispatch, 1, counted="operand"), None),
        counted="result",
        makes_places=True,
    ),
    "combine": _of_first(
        *(2, 2, JaxCode.combine, _own("combine", 1, JaxCode.combine, 1, counted="result")),
        _own("combine_gates", 2, JaxCode.dispatch, 0, 1, counted="operand"),
        counted="operand",
    ),
}
"""The functions that a program may write."""

FUNCTIONS = {
    **PROGRAM_FUNCTIONS,
    **_GRADIENTS,
    "update_gradient": LocalFunction(1, "sum", 0, JaxCode.update_gradient),
    # What a program writes as `where` with a number.
    "fill": LocalFunction(2, "none", 1, "jnp.where({0}, {1}, {number})", (None, _OF_WHERE), selects=(0,)),
    "convert": LocalFunction(1, "sum", 0, "{0}", keeps_integers=True),
    # Adam (Kingma and Ba 2015, with the bias of the moments in the rate) and SGD, for a rate of 0.001.
    "adam_mean": LocalFunction(2, "none", 3, "0.9 * {0} + 0.1 * {1}"),
    "adam_square": LocalFunction(2, "none", 4, "0.999 * {0} + 0.001 * jnp.square({1})", of_positive=True),
    "adam_update": LocalFunction(3, "none", 5, "{0} - 1e-3 * {1} / (jnp.sqrt({2}) + 1e-8)"),
    "sgd_update": LocalFunction(2, "none", 2, "{0} - 1e-3 * {1}"),
}
"""These, and those that only a program's statements have, its gradients and optimizers."""


def computed_dtype(part: Statement) -> str:
    """The dtype to which a statement's operands are converted, and which its code makes: JAX's, where whole
    numbers become f32 in functions that do not keep them, and a sum of narrow ones is one of 32 bits. What is
    updated in place keeps its dtype."""
    function = FUNCTIONS[part.function]
    if function.in_place:
        return part.operands[0].dtype
    taken = (array.dtype for index, array in enumerate(part.operands) if index not in function.selects)
    dtype = promoted_dtype(taken)
    if dtype.removeprefix("b").startswith(("f", "c")):
        return dtype
    if not function.keeps_integers:
        return "f32"
    is_narrow = part.function in ("sum", "pick") and part.einsum.contracted and BITS[dtype] < 32
    return ("u32" if dtype.startswith("u") else "s32") if is_narrow else dtype


def statement_code(
    statement: Statement, operands: Sequence[str], out_sharding: str = "", local: LocalDims = WHOLE
) -> str:
    """The JAX expression of a statement's result; `out_sharding` is what an einsum is told of its result."""
    function = FUNCTIONS[statement.function]
    dtype = computed_dtype(statement)
    taken = tuple(
        code if array.dtype == dtype or index in function.selects else f"{code}.astype({dtype_code(dtype)})"
        for index, (array, code) in enumerate(zip(statement.operands, operands, strict=True))
    )
    written = JaxCode(statement, taken, out_sharding, local)
    if isinstance(function.code, str):
        code = written.pointwise(function.code, function.averages)
    else:
        code = function.code(written)
    # The code of places says the dtype of the result.
    if statement.result.dtype == dtype or function.makes_places:
        return code
    return f"({code}).astype({dtype_code(statement.result.dtype)})"


def local_sizes(pieces: Iterable[tuple[tuple[str, ...], Shape]]) -> dict[str, int]:
    """Elements along each dimension of a statement on a device that holds pieces of arrays."""
    found: dict[str, int] = {}
    for dims, shape in pieces:
        for dim, size in zip(dims, shape, strict=True):
            found[dim] = _smaller(size, found.get(dim, size))
    return found


def _smaller(one: Any, other: Any) -> Any:
    """The smaller of two numbers, or of two arrays at each place."""
    if hasattr(one, "clip"):
        return one.clip(max=other)
    return other.clip(max=one) if hasattr(other, "clip") else min(one, other)


def statement_flops(part: Statement, operands: Sequence[Shape], result: Shape) -> int:
    """Operations of a statement on a device that holds pieces of these shapes of its arrays; an array of
    them where sizes are arrays, as those of many devices."""
    pieces = zip(part.arrays, (*operands, result), strict=True)
    local = local_sizes((array.dims, shape) for array, shape in pieces)
    operand_dims = {dim for array in part.operands for dim in array.dims}
    points = math.prod(size for dim, size in local.items() if dim in operand_dims)
    if part.function == "multiply":
        # A multiplication for each operand after the first, and an addition where a dimension is summed.
        return points * (len(part.operands) - 1 + bool(operand_dims.difference(part.result.dims)))
    function = FUNCTIONS[part.function]
    if function.counted == "pairs":
        query, rows, keys, values = _queries(part)
        along, size, *others = part.whole
        pairs = 1.0 * (math.prod(local[dim] for dim in {*query, along} - {size}) * function.flops)
        if function.of_one_sequence:
            whole, own = max(1, part.sizes[along]), local[along] + (local[along] == 0)
            # A device with the first keys has most pairs of them; one with a halo has all of its window.
            seen = local[rows] / max(1, part.sizes[rows])
            share = _share_seen(seen + (seen == 0), _smaller(1, (part.number or own) / whole))
            pairs = pairs * (share * whole / own)
        made = next((dim for dim in values if dim not in keys), size)
        vectors = [size, made, *others]
        if len(part.operands) % 2 == 0:
            vectors = [dim for dim in dict.fromkeys(vectors) if dim in part.einsum.result]
        every: Any = pairs * sum(local[dim] for dim in vectors)
        return cast("int", every.round() if hasattr(every, "round") else round(every))
    if function.counted == "operand":
        return function.flops * math.prod(operands[0])
    if function.counted == "result":
        return function.flops * math.prod(result)
    return points * function.flops


def _queries(part: Statement) -> tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]:
    """The dimensions of the queries of attention, that of their positions, those of the keys, and of the
    values. Behind the gradient, where there is one, are three operands, or five."""
    query, keys, values = part.einsum.operands[1 - len(part.operands) % 2 :][:3]
    return query, query[keys.index(part.whole[0])], keys, values


def shared_positions(part: Statement) -> tuple[str, int] | None:
    """Of a statement with a halo the dimension along which devices may have shards, as long as that at
    least, and the positions of the halo; None of others."""
    function = FUNCTIONS[part.function]
    if not function.halo:
        return None
    along = _queries(part)[1] if function.counted == "pairs" else part.whole[0]
    return along, int(part.number or part.sizes[part.whole[-1]]) - 1


def has_halo(part: Statement, cuts: Mapping[str, int]) -> bool:
    """Shards are as long as the halo that the next device needs of them, where dimensions are cut into so
    many parts."""
    along, halo = shared_positions(part) or ("", 0)
    return not along or part.sizes[along] // cuts.get(along, 1) >= max(1, halo)


class SentBeside(NamedTuple):
    """A part of a statement's array of this number, the result last, or of its sums, that a device sends."""

    op: Literal["ppermute", "all_gather"]
    number: int
    shape: Shape
    dtype: str


def sent_beside(part: Statement, cuts: Mapping[str, int]) -> Iterator[SentBeside]:
    """The needs of a statement beside its operands, where its dimensions are cut into so many parts: halos,
    and of all rows of scores the logarithms of sums of exponentials, f32."""
    function, along = FUNCTIONS[part.function], part.whole[0] if part.whole else ""
    if (parts := cuts.get(along, 1)) == 1:
        return
    _, rows = shared_positions(part) or ("", 0)
    halo = {part.arrays[number].name: number for number in function.halo if rows}
    for number in halo.values():
        array = part.arrays[number]
        shape = (
            rows if dim == along else size // cuts.get(dim, 1)
            for dim, size in zip(array.dims, array.shape, strict=True)
        )
        yield SentBeside("ppermute", number, tuple(shape), array.dtype)
    if function.shares_rows:
        own = (dim for dim in part.einsum.operands[0] if dim != part.whole[1])
        shape = (part.sizes[dim] // cuts.get(dim, 1) for dim in own)
        yield SentBeside("all_gather", -1, (parts, *shape), "f32")


def _share_seen(rows: Any, window: Any) -> Any:
    """The part of all pairs of queries and keys that the last queries of a sequence see, each only the last
    keys up to its own; earlier ones see no more. `rows` and `window` are parts of the sequence."""

    def seen(first: Any) -> Any:
        until = _smaller(first, window)
        return until * (2 * first - until) / 2

    return (seen(1) - seen(1 - rows)) / rows


def local_work(part: Statement, operands: Sequence[Shape], result: Shape) -> tuple[int, int, str]:
    """FLOPs, bytes read and written, and dtype of matrix products ("" for none) on pieces of these shapes."""
    looks_up = FUNCTIONS[part.function].looks_up
    if FUNCTIONS[part.function].in_place:
        # The new rows are read and written.
        return 0, 2 * array_bytes(operands[1], part.operands[1].dtype), ""
    traffic = array_bytes(result, part.result.dtype)
    names = [array.name for array in part.operands]
    for index, (array, shape) in enumerate(zip(part.operands, operands, strict=True)):
        size = array_bytes(shape, array.dtype)
        if index in looks_up:
            points = math.prod(shape)
            size = _smaller(size, math.prod(result) * size // (points + (points == 0)))
        for before in range(index):
            # What stands twice is read once.
            if names[before] == array.name:
                size = size * (1 - math.prod(map(eq, shape, operands[before])))
        traffic = traffic + size
    return statement_flops(part, operands, result), traffic, matmul_dtype(part)


def is_matmul(part: Statement) -> bool:
    """Return whether the statement sums over a dimension that several operands have."""
    operands_with = Counter(dim for dims in part.einsum.operands for dim in dims)
    return part.function == "multiply" and any(operands_with[dim] > 1 for dim in part.einsum.contracted)


def matmul_dtype(part: Statement) -> str:
    """The dtype of a statement's matrix products; "" where it has none: only
    these are bound by a chip's published peak, all else by its HBM."""
    if not is_matmul(part) and not FUNCTIONS[part.function].multiplies_matrices:
        return ""
    return computed_dtype(part)
