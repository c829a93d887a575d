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
from shardviz.text_tables import rows_of, sections_beside

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
    weighed by the sums of all, and is a partial sum. One that `decodes` takes one position, and has
    no gradient."""

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
    decodes: bool = False

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


def _of_concatenate(part: Statement) -> Derivatives:
    starts = accumulate((part.sizes[dim] for dim in part.whole), initial=0)
    return tuple(Derivative("slice", number=start) for start, _ in zip(starts, part.whole, strict=False))


def _of_update(part: Statement) -> Derivatives:
    """The gradients of what stays of the array, and of its new rows."""
    start = part.sizes[part.along] - part.sizes[part.whole[0]]
    return Derivative("update_gradient", number=start), Derivative("slice", number=start)


def _of_attention(part: Statement) -> Derivatives:
    count = len(part.operands)
    words = ["query", "key", "value", "second_query", "second_key"][:count]
    if count % 2 == 0:
        words[count - 1 :] = ["sink"]
    takes = (GRADIENT, *range(count))
    return tuple(Derivative(f"{part.function}_{word}_gradient", takes) for word in words)


_TOLD: dict[str, Callable[[Statement], Derivatives]] = {
    "multiply": _of_multiply,
    "mean": lambda part: (Derivative("scale", number=1 / points_per_result(part)),),
    "mean_square": lambda part: (Derivative("square_gradient", (GRADIENT, 0), 2 / points_per_result(part)),),
    "slice": lambda part: (Derivative("slice", number=-(part.number or 0)),),
    "concatenate": _of_concatenate,
    "update": _of_update,
    "attention": _of_attention,
}


def _read_functions(rows: str) -> dict[str, LocalFunction]:
    """The functions of a section of `functions.txt`."""
    found = {}
    for name, figures, code, *others in rows_of(rows):
        operands, linearity, flops = figures.split()
        gradients, more, *_ = *others, "", ""
        fields: dict[str, Any] = {}
        for field in more.split(", ") if more else ():
            key, *values = field.split()
            numbers = () if key == "counted" else tuple(map(int, values))
            fields[key] = numbers or next(iter(values), True)
        if "few" in fields:
            fields["few"] = fields["few"][0]
        count = None if operands == "any" else int(operands)
        made = (count, linearity, int(flops), _read_code(code), _read_derivatives(gradients))
        found[name] = LocalFunction(*made, **fields)  # type: ignore[arg-type]
    return found


def _read_code(text: str) -> Code:
    if "{" in text:
        return text
    if not text.startswith("d "):
        code: Callable[[JaxCode], str] = getattr(JaxCode, text)
        return code
    _, of, operand, *taken = text.replace(" of", "").split()
    code = getattr(JaxCode, of)

    def gradient(written: JaxCode) -> str:
        takes = range(len(written.operands) - 1) if taken == ["all"] else [*map(int, taken)]
        return written.gradient(code, takes[-1] if operand == "-1" else int(operand), takes)

    return gradient


def _read_derivatives(text: str) -> Derivatives | Callable[[Statement], Derivatives]:
    if text.startswith("by "):
        return _TOLD[text.removeprefix("by ")]
    words: dict[str, Taken] = {"result": RESULT, "row_sums": ROW_SUMS}
    found: list[Derivative | None] = []
    for each in text.split("; ") if text else ():
        if each == "-":
            found.append(None)
            continue
        called, _, number = each.partition(" = ")
        function, *taken = called.split()
        takes = (GRADIENT, *(words.get(word) or int(word) for word in taken))
        found.append(Derivative(function, takes, float(number) if number else None))
    return tuple(found)


_SECTIONS = sections_beside(__file__, "functions.txt")
PROGRAM_FUNCTIONS = _read_functions(_SECTIONS["of programs"])
"""The functions that a program may write."""
FUNCTIONS = PROGRAM_FUNCTIONS | _read_functions(_SECTIONS["of statements alone"])
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
        if part.function.endswith("_gradient"):
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
    values, behind the gradient, where there is one."""
    query, keys, values = part.einsum.operands[part.function.endswith("_gradient") :][:3]
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

    op: Literal["ppermute", "all_gather", "psum_scatter"]
    number: int
    shape: Shape
    dtype: str


def sent_beside(part: Statement, cuts: Mapping[str, int]) -> Iterator[SentBeside]:
    """The needs of a statement beside its operands, where its dimensions are cut into so many parts: halos,
    and of all rows of scores the logarithms of sums of exponentials, f32. Gradients have those of the forward
    pass, and the first adds up what each row weighs in the gradients of all parts."""
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
    is_first = part.function.endswith("attention_query_gradient")
    if function.shares_rows and (is_first or not part.function.endswith("_gradient")):
        own = (dim for dim in _queries(part)[0] if dim != part.whole[1])
        shape = (part.sizes[dim] // cuts.get(dim, 1) for dim in own)
        yield SentBeside("psum_scatter" if is_first else "all_gather", -1, (parts, *shape), "f32")


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
    if FUNCTIONS[part.function].lies_within and FUNCTIONS[part.function].in_place:
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
    multiplies = is_matmul(part) or FUNCTIONS[part.function].multiplies_matrices
    return computed_dtype(part) if multiplies else ""
