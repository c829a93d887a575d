"""The statements of a program's text: every expression is taken apart into functions of named arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NoReturn

from shardviz.errors import NotationError, plural, quote
from shardviz.notation.einsum import Einsum
from shardviz.notation.product_readings import ProductFactors, two_readings
from shardviz.notation.program import (
    Assignment,
    EinsumCall,
    Expression,
    FunctionCall,
    Literal,
    Mention,
    ProgramText,
    mentions,
)
from shardviz.notation.scanner import MAX_RANK
from shardviz.planner.problem.functions import PROGRAM_FUNCTIONS
from shardviz.sharding import PartitionSpec


@dataclass(frozen=True)
class ArrayUse:
    """An array where a statement takes or makes it, with the names that its dimensions have there.

    `spec` is what its subscripts say there, None without subscripts. `start` and `stop` are its place in the
    program's text.
    """

    name: str
    dims: tuple[str, ...]
    spec: PartitionSpec | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.dims)}]"


@dataclass(frozen=True)
class LoweredStatement:
    """One function of arrays; the fields are those of `problem.Statement`, before sizes are known.

    `source` is the written statement that it is a part of.
    """

    function: str
    operands: tuple[ArrayUse, ...]
    result: ArrayUse
    source: Assignment
    merged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    number: float | None = None

    @property
    def einsum(self) -> Einsum:
        return Einsum(tuple(each.dims for each in self.operands), self.result.dims)


@dataclass(frozen=True)
class Renamed:
    """An array that a `statement` has with other names for its dimensions than where it was made or taken
    `before`."""

    statement: str
    before: ArrayUse
    use: ArrayUse


@dataclass(frozen=True)
class LoweredProgram:
    """The statements of a program in order. `arguments` are the arrays that it takes, by name, as they stand
    first; `named` are the results that the text names, the last one's name among them. `integers` are
    the arguments that hold places in a table."""

    program: ProgramText
    statements: tuple[LoweredStatement, ...]
    arguments: Mapping[str, ArrayUse]
    named: tuple[str, ...]
    renamed: tuple[Renamed, ...]
    integers: frozenset[str]

    @property
    def dims(self) -> tuple[str, ...]:
        """Every dimension once, in the order in which arguments, then statements have them."""
        uses = [use.dims for each in self.statements for use in (*each.operands, each.result)]
        return tuple(dict.fromkeys(dim for dims in uses for dim in dims))


def lower(program: ProgramText, sizes: Mapping[str, int]) -> LoweredProgram:
    """Take a program's expressions apart. `sizes` are those of dimensions that errors may say.

    A product sums over the dimensions of both factors that neither the result nor another factor has; where
    both have the same dimensions and the result's are not written, it is elementwise. In brackets it is what
    it would be in a statement of its own. A partial result has the name of its statement and a number:
    ``Y_1``.

    Raises `NotationError` where an array, a function or a dimension does not fit, and for a product that has
    two readings (`notation.product_readings`).
    """
    lowering = _Lowering(program, sizes)
    for number, assignment in enumerate(program.statements):
        lowering.statement(assignment, number)
    return LoweredProgram(
        program,
        tuple(lowering.statements),
        lowering.arguments,
        tuple(lowering.named),
        tuple(lowering.renamed),
        frozenset(lowering.integers),
    )


@dataclass(frozen=True)
class _Target:
    """The result that an expression is to have; `dims` is None where they follow from the expression, whose
    products then do not sum over those in `kept`. A partial result has no `name` yet."""

    name: str
    dims: tuple[str, ...] | None
    spec: PartitionSpec | None
    kept: frozenset[str] = frozenset()


@dataclass
class _Lowering:
    program: ProgramText
    sizes: Mapping[str, int]
    statements: list[LoweredStatement] = field(default_factory=list)
    arguments: dict[str, ArrayUse] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    integers: set[str] = field(default_factory=set)
    _made: dict[str, ArrayUse] = field(default_factory=dict)
    _activations: dict[tuple[str, ...], str] = field(default_factory=dict)
    _weights: int = 0

    def __post_init__(self) -> None:
        targets = [each.target.name for each in self.program.statements if each.target is not None]
        words = [each.name for statement in self.program.statements for each in mentions(statement.value)]
        self._taken = {*targets, *words}

    def statement(self, assignment: Assignment, number: int) -> None:
        """Take one written statement apart."""
        self._source = assignment
        target = assignment.target
        if target is None:
            is_last = number == len(self.program.statements) - 1
            name, dims, spec = self._unused("Out" if is_last else f"H{number + 1}"), None, None
        else:
            name = target.name
            dims = None if target.array is None else target.array.dims
            spec = _spec(target)
            if name in self._made or name in self.arguments:
                what = "made" if name in self._made else "taken as an argument"
                self._fail(f"{quote(name, 30)} is {what} before,", target, "give every result its own name")
            if dims is not None and len(set(dims)) < len(dims):
                self._fail(f"{name} has a dimension twice,", target, "name each dimension of an array once")
        if name in PROGRAM_FUNCTIONS and target is not None:
            self._fail(f"{quote(name)} is a function,", target, "give the result another name")
        self._partial = 0
        self._expression(assignment.value, _Target(name, dims, spec))
        self.named.append(name)

    def _expression(self, value: Expression, target: _Target | None) -> ArrayUse:
        """Make an array of an expression: the target, or a partial result."""
        if isinstance(value, Mention):
            found = self._use(value)
            # A name of its own for the array, perhaps with its dimensions in another order.
            return found if target is None else self._einsum((found,), found.dims, target, value)
        if isinstance(value, EinsumCall):
            return self._letters_einsum(value, target)
        if isinstance(value, Literal):
            self._fail(
                "a number stands where an array is expected,", value, "numbers multiply or divide arrays"
            )
        calls = {
            "multiply": self._product,
            "scale": self._scale,
            "sum": self._reduction,
            "mean": self._reduction,
            "mean_square": self._reduction,
            "max": self._reduction,
            "softmax": self._softmax,
            "sum_exp": self._sum_exp,
            "log_sum_exp": self._log_sum_exp,
            "pick": self._pick,
            "cross_entropy": self._cross_entropy,
            "rms_norm": self._rms_norm,
            "layer_norm": self._layer_norm,
            "take": self._take,
            "attention": self._attention,
            "causal_attention": self._attention,
            "top_k": self._top_k,
            "slots": self._slots,
            "reshape": self._reshape,
        }
        if value.merges and value.function != "reshape":
            self._fail(f"{value.function} takes no q=nh,", value, "only reshape does")
        if call := calls.get(value.function):
            return call(value, target)
        function = PROGRAM_FUNCTIONS.get(value.function)
        if function is None or not function.code:
            names = sorted({*calls, *(name for name, each in PROGRAM_FUNCTIONS.items() if each.code)})
            self._fail(
                f"{quote(value.function, 30)} is not a function,",
                value,
                f"the functions are {', '.join(names)}",
            )
        return self._pointwise(value, target)

    def _product(
        self, call: FunctionCall, target: _Target | None, outside: AbstractSet[str] = frozenset()
    ) -> ArrayUse:
        """Factors from left to right; numbers among them scale the result. `outside` are dimensions that what
        multiplies a product in brackets has."""
        numbers = [each.value for each in call.operands if isinstance(each, Literal)]
        factors = [each for each in call.operands if not isinstance(each, Literal)]
        if not factors:
            self._fail("numbers alone are multiplied,", call, "multiply an array: 0.5 * X")
        if numbers:
            if len(factors) == 1:
                use = self._expression(factors[0], _operand_target(factors[0], target))
            else:
                product = FunctionCall("multiply", tuple(factors), call.start, call.stop, _sums(call))
                use = self._product(product, _partial(target), outside)
            return self._scaled(use, math.prod(numbers), target)
        wanted, kept = (None, frozenset[str]()) if target is None else (target.dims, target.kept)
        uses = self._factors(factors, {*(wanted or ()), *kept, *outside})
        left, later = uses[0], [{*each.dims} for each in uses]
        product_of = ProductFactors(tuple(each.dims for each in uses), call.sums, wanted, kept, True)
        readings = product_of.readings()
        if len(readings) > 1:
            self._refuse_two_readings(call, product_of, readings, target)
        for index, (right, said, natural) in enumerate(
            zip(uses[1:], call.sums, product_of.left(readings[0])[1:], strict=True), 1
        ):
            is_last = index == len(uses) - 1
            shared = [dim for dim in left.dims if dim in right.dims]
            if not shared:
                needed = {*outside, *(wanted or kept)}.union(*later[index + 1 :])
                self._check_outer(left, right, needed, is_last and wanted is not None, call)
            self._check_summed(said or (), shared, (is_last and wanted) or (), call)
            left = self._einsum((left, right), natural, target if is_last else None, call)
        return left

    def _refuse_two_readings(
        self,
        call: FunctionCall,
        factors: ProductFactors,
        readings: Sequence[Sequence[tuple[str, ...]]],
        target: _Target | None,
    ) -> NoReturn:
        """Raise for a product that has two readings, with both as they can be written."""
        dims = factors.left(readings[0])[-1] if factors.result is None else factors.result
        own = target is not None and target.name and not factors.needed
        result = f"{self._name if own else 'T'}[{', '.join(dims)}]"
        problem, hint = two_readings(readings, factors.sums, [*map(self._written, call.operands)], result)
        self._fail(problem, call, hint if own else f"{hint}, the latter in a statement of its own")

    def _written(self, value: Expression) -> str:
        """An expression as its text has it, in brackets where it needs them as a factor."""
        text = self.program.text[value.start : value.stop].strip()
        needs = isinstance(value, FunctionCall) and value.function in (
            "multiply",
            "add",
            "subtract",
            "divide",
        )
        return f"({text})" if needs else text

    def _factors(self, factors: Sequence[Expression], needed: AbstractSet[str]) -> list[ArrayUse]:
        """The factors of a product; those that are products themselves come last, for an outer product among
        them must be of what the others need."""
        uses: dict[int, ArrayUse] = {}
        nested = [_is_product(factor) for factor in factors]
        for number in sorted(range(len(factors)), key=nested.__getitem__):
            factor = factors[number]
            if nested[number] and isinstance(factor, FunctionCall):
                others = {dim for use in uses.values() for dim in use.dims}
                uses[number] = self._product(factor, None, others | needed)
            else:
                uses[number] = self._expression(factor, None)
        return [uses[number] for number in range(len(factors))]

    def _check_summed(
        self, summed: Sequence[str], shared: Sequence[str], result: Sequence[str], call: FunctionCall
    ) -> None:
        for dim in summed:
            if dim not in shared or dim in result:
                where = "which its factors do not share" if dim not in shared else "which the result has"
                self._fail(
                    f"the product sums over {quote(dim, 30)}, {where},",
                    call,
                    "the subscript of a product names a dimension of both factors that the result lacks",
                )

    def _check_outer(
        self,
        left: ArrayUse,
        right: ArrayUse,
        later: AbstractSet[str],
        is_written: bool,
        call: FunctionCall,
    ) -> None:
        """Raise for factors without a common dimension, unless what follows has the dimensions of one: a
        mistyped letter makes an outer product, or sums each factor by itself."""
        if not left.dims or not right.dims or later >= {*left.dims} or later >= {*right.dims}:
            return
        name = self._name
        every = ", ".join((*left.dims, *right.dims))
        hint = f"for an outer product write {name}[{every}] = …, else one letter for what both have"
        if is_written:
            alone = [dim for dim in (*left.dims, *right.dims) if dim not in later]
            hint = f"for sums of each by itself write sum({left.name}, {alone[0]}), else one letter for both"
        self._fail(f"{name} multiplies {left} by {right}, which share no dimension,", call, hint)

    def _einsum(
        self,
        operands: tuple[ArrayUse, ...],
        natural: tuple[str, ...],
        target: _Target | None,
        place: Expression,
    ) -> ArrayUse:
        """An einsum with the dimensions that the target has, which may be any that an operand has."""
        dims = natural if target is None or target.dims is None else target.dims
        known = {dim for each in operands for dim in each.dims}
        for dim in dims:
            if dim not in known:
                self._fail(
                    f"{self._result_name(target)} has the dimension {self._sized(dim)}, which no factor has: "
                    f"{' and '.join([str(each) for each in operands])},",
                    place,
                    self._where_summed(dim, operands)
                    or "each dimension of the result is one that the factors have",
                )
        return self._emit("multiply", operands, dims, target)

    def _where_summed(self, dim: str, operands: Sequence[ArrayUse]) -> str:
        """A hint where one of the operands is a product in brackets that sums over a dimension, or ""."""
        for each in self.statements:
            if each.result in operands and each.source is self._source and dim in each.einsum.contracted:
                factors = ", ".join([use.name for use in each.operands])
                return f"the product in brackets sums over {dim}; scale({factors}) keeps it"
        return ""

    def _letters_einsum(self, value: EinsumCall, target: _Target | None) -> ArrayUse:
        """An einsum of letters: a name that is known is that array, other letters are an array of their own.

        The first letters are an activation, the same one where they stand first again, or the result just
        made where that has no name; all others are weights.
        """
        uses = []
        for number, operand in enumerate(value.operands):
            is_bare = isinstance(operand, Mention) and operand.array is None
            if is_bare and isinstance(operand, Mention) and not self._is_known(operand.name):
                dims = self._letters(operand)
                name = self._activation(dims) if not number else self._weight()
                use = ArrayUse(name, dims, None, operand.start, operand.stop)
                if name not in self._made:
                    self.arguments.setdefault(name, use)
                uses.append(use)
            else:
                uses.append(self._expression(operand, None))
        known = {dim for use in uses for dim in use.dims}
        for dim in value.result:
            if dim not in known or value.result.count(dim) > 1:
                problem = "occurs twice in the result" if dim in known else "of the result is in no operand"
                hint = "each letter of the result is one of the operands', once"
                self._fail(f"dimension {quote(dim)} {problem},", value, hint)
        if target is not None and target.dims is not None and target.dims != value.result:
            self._fail(
                f"the result is {''.join(value.result)} and {target.name}[{', '.join(target.dims)}],",
                value,
                "write it once",
            )
        return self._emit("multiply", tuple(uses), value.result, target)

    def _letters(self, operand: Mention) -> tuple[str, ...]:
        dims = tuple(operand.name)
        for dim in dims:
            if not (dim.isascii() and dim.isalpha()) or dims.count(dim) > 1:
                self._fail(
                    f"{quote(operand.name, 30)} is neither an array nor a letter for each dimension,",
                    operand,
                    "name a result that stands before, or write letters as in bd,df->bf",
                )
        return dims

    def _activation(self, dims: tuple[str, ...]) -> str:
        """The array that letters at the front of an einsum stand for."""
        before = self.statements[-1].result if self.statements else None
        named = {each.target.name for each in self.program.statements if each.target is not None}
        if before is not None and before.name not in named and before.dims == dims:
            return before.name
        if dims not in self._activations:
            self._activations[dims] = self._unused("A")
        return self._activations[dims]

    def _weight(self) -> str:
        self._weights += 1
        return self._unused(f"W{self._weights}")

    def _pointwise(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """A function of each element; of two arrays one may lack dimensions of the other."""
        function = PROGRAM_FUNCTIONS[call.function]
        operands = list(call.operands)
        if call.function == "divide" and isinstance(operands[1], Literal):
            if not operands[1].value:
                self._fail("an array is divided by 0,", call, "divide by another number")
            use = self._expression(operands[0], _operand_target(operands[0], target))
            return self._scaled(use, 1 / operands[1].value, target)
        self._check_count(call, function.operands or 1, "array")
        kept = None if target is None else _Target("", None, None, frozenset(target.dims or target.kept))
        uses = tuple(self._expression(each, _operand_target(each, kept)) for each in operands)
        largest = max(uses, key=lambda use: len(use.dims))
        for use in uses:
            if missing := [dim for dim in use.dims if dim not in largest.dims]:
                other = [dim for dim in largest.dims if dim not in use.dims]
                against = f"{' and '.join([self._sized(dim) for dim in other])} of {largest.name}"
                self._fail(
                    f"{self._result_name(target)} {_DOES[call.function]} {largest} and {use}, but "
                    f"{' and '.join([self._sized(dim) for dim in missing])} of {use.name} "
                    f"{'is' if len(missing) == 1 else 'are'} not {against},",
                    call,
                    "both have the same dimensions, or one of them some of the other's",
                )
        return self._emit(call.function, uses, largest.dims, target)

    def _scaled(self, use: ArrayUse, number: float, target: _Target | None) -> ArrayUse:
        return self._emit("scale", (use,), use.dims, target, number=number)

    def _scale(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``scale(X, g[d])``: a product that keeps all dimensions of the first array."""
        self._check_count(call, 2, "array")
        array, factor = (self._expression(each, None) for each in call.operands)
        self._check_within(factor, array, call)
        return self._emit("multiply", (array, factor), array.dims, target)

    def _reduction(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``sum(X, d)``, ``mean(X, d)``, ``max(X, d)`` over one dimension or several."""
        array, dims = self._along(call, None)
        kept = tuple(dim for dim in array.dims if dim not in dims)
        return self._emit(call.function, (array,), kept, target)

    def _softmax(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``softmax(X, d)``: the largest of each row, the sum of what is raised from there, then what each
        element has of it, which is also written ``softmax(X, M, Z)``. So no row need be on one device."""
        if len(call.operands) == 3:
            return self._pointwise(call, target)
        array, dims = self._along(call, 1)
        rows = self._raised_rows(array, dims)
        return self._emit("softmax", (array, *rows), array.dims, target)

    def _log_sum_exp(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``log_sum_exp(X, d)``."""
        array, dims = self._along(call, 1)
        rows = self._raised_rows(array, dims)
        return self._emit("add_log", rows, rows[0].dims, target)

    def _raised_rows(self, array: ArrayUse, dims: tuple[str, ...]) -> tuple[ArrayUse, ArrayUse]:
        """The largest of each row, and the sum of the exponentials of what is left without it."""
        kept = tuple(dim for dim in array.dims if dim not in dims)
        largest = self._emit("max", (array,), kept, None)
        return largest, self._emit("sum_exp", (array, largest), kept, None)

    def _sum_exp(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``sum_exp(X, M, d)``: the sum along d of the exponentials of X - M."""
        self._check_count(call, 3, "array, what is taken from it and a dimension")
        array, dims = self._along(replace(call, operands=(call.operands[0], call.operands[2])), 1)
        largest = self._expression(call.operands[1], None)
        self._check_within(largest, array, call)
        kept = tuple(dim for dim in array.dims if dim not in dims)
        return self._emit("sum_exp", (array, largest), kept, target)

    def _pick(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``pick(X[b,v], T[b], v)``: of each row the element at a place."""
        self._check_count(call, 3, "array, places and a dimension")
        return self._picked(*self._places_along(call), target)

    def _cross_entropy(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``cross_entropy(X[b,v], T[b], v)``: the logarithm of the sum of exponentials, less the element at
        the place."""
        self._check_count(call, 3, "array, places and a dimension")
        array, places, dims = self._places_along(call)
        rows = self._raised_rows(array, dims)
        every = self._emit("add_log", rows, rows[0].dims, None)
        return self._emit("subtract", (every, self._picked(array, places, dims, None)), every.dims, target)

    def _places_along(self, call: FunctionCall) -> tuple[ArrayUse, ArrayUse, tuple[str, ...]]:
        """An array, places along a dimension of it, and that dimension."""
        array, dims = self._along(replace(call, operands=(call.operands[0], call.operands[2])), 1)
        places = self._expression(call.operands[1], None)
        if places.name not in self.arguments:
            self._fail(
                f"{places.name} holds no whole numbers,",
                call,
                f"the places are an argument: {call.function}(X[b, v], T[b], v)",
            )
        if {*places.dims} != {*array.dims} - {*dims}:
            self._fail(
                f"{places} must have all dimensions of {array} but {dims[0]},",
                call,
                f"write {call.function}(X[b, v], T[b], v)",
            )
        self.integers.add(places.name)
        return array, places, dims

    def _picked(
        self, array: ArrayUse, places: ArrayUse, dims: tuple[str, ...], target: _Target | None
    ) -> ArrayUse:
        kept = tuple(dim for dim in array.dims if dim not in dims)
        return self._emit("pick", (array, places), kept, target)

    def _rms_norm(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``rms_norm(X, d)``, or with a scale ``rms_norm(X, d, g[d])``: the mean of squares, which parts of
        the dimension give as a sum, then what each element becomes."""
        array, dims, weights = self._norm(call, 1)
        return self._normalized(array, dims, weights, target)

    def _layer_norm(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``layer_norm(X, d)``, with a scale and a bias ``layer_norm(X, d, g[d], b[d])``."""
        array, dims, weights = self._norm(call, 2)
        kept = tuple(dim for dim in array.dims if dim not in dims)
        mean = self._emit("mean", (array,), kept, None)
        centred = self._emit("subtract", (array, mean), array.dims, None)
        return self._normalized(centred, dims, weights, target)

    def _norm(self, call: FunctionCall, most: int) -> tuple[ArrayUse, tuple[str, ...], tuple[ArrayUse, ...]]:
        """The array, the dimension that it is normalized over, and its scale and bias."""
        if not 2 <= len(call.operands) <= 2 + most:
            taken = "a scale" if most == 1 else "a scale and a bias"
            self._fail(
                f"{call.function} takes an array, a dimension and perhaps {taken},",
                call,
                f"write {call.function}(X, d)",
            )
        array, dims = self._along(replace(call, operands=call.operands[:2]), 1)
        weights = tuple(self._expression(each, None) for each in call.operands[2:])
        for weight in weights:
            self._check_within(weight, array, call)
        return array, dims, weights

    def _normalized(
        self,
        array: ArrayUse,
        dims: tuple[str, ...],
        weights: tuple[ArrayUse, ...],
        target: _Target | None,
    ) -> ArrayUse:
        kept = tuple(dim for dim in array.dims if dim not in dims)
        squares = self._emit("mean_square", (array,), kept, None)
        made = self._emit("normalize", (array, squares), array.dims, None if weights else target)
        for number, (function, weight) in enumerate(zip(("multiply", "add"), weights, strict=False), 1):
            made = self._emit(
                function, (made, weight), array.dims, target if number == len(weights) else None
            )
        return made

    def _take(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``take(W[v,d], T[b,t])``: the rows of a table, at whole numbers."""
        self._check_count(call, 2, "array")
        table, places = (self._expression(each, None) for each in call.operands)
        if places.name not in self.arguments:
            self._fail(
                f"{places.name} holds no whole numbers,",
                call,
                "take rows at an argument: take(W[v, d], T[b, t])",
            )
        if shared := [dim for dim in places.dims if dim in table.dims]:
            self._fail(
                f"{shared[0]} is a dimension of both {table} and {places},",
                call,
                "the table has dimensions of its own",
            )
        self.integers.add(places.name)
        return self._emit("take", (table, places), (*places.dims, *table.dims[1:]), target)

    def _attention(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h])``; with grouped heads Q has a dimension more. No
        score is ever kept (flash attention)."""
        self._check_count(call, 3, "array")
        queries, keys, values = (self._expression(each, None) for each in call.operands)
        if set(keys.dims) != set(values.dims):
            self._fail(
                f"the keys {keys} and the values {values} have other dimensions,", call, "they have the same"
            )
        size = keys.dims[-1:]
        along = tuple(dim for dim in keys.dims if dim not in queries.dims)
        # The queries' sequence stands where the keys' does, the heads of a group behind those of the keys.
        place = keys.dims.index(along[0]) if len(along) == 1 else len(queries.dims)
        is_placed = queries.dims[place : place + 1] != () and queries.dims[place] not in keys.dims
        behind = tuple(dim for dim in queries.dims[place + 1 :] if dim in keys.dims)
        if (
            not is_placed
            or (*queries.dims[:place], *along, *behind) != keys.dims
            or size[0] not in behind
            or queries.dims[place + 1] not in keys.dims
        ):
            self._fail(
                f"the queries {queries} must have the dimensions of the keys {keys}, another sequence in the "
                "same place, and perhaps heads of a group,",
                call,
                "write attention(Q[b, t, n, h], K[b, s, n, h], V[b, s, n, h]), with grouped heads "
                "Q[b, t, n, g, h]",
            )
        whole = (*along, *size)
        return self._emit(call.function, (queries, keys, values), queries.dims, target, whole=whole)

    def _top_k(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``top_k(X, e, 2)``: the 2 largest along e, and zero for all others."""
        last = call.operands[-1] if call.operands else None
        if len(call.operands) != 3 or not isinstance(last, Literal) or last.value < 1 or last.value % 1:
            self._fail(
                "top_k takes an array, a dimension and how many are kept,", call, "write top_k(X, e, 2)"
            )
        array, dims = self._along(replace(call, operands=call.operands[:2]), 1)
        return self._emit("top_k", (array,), array.dims, target, whole=dims, number=last.value)

    def _slots(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``slots(G[b,t,e], t, c)``: 1 where token t has the place c of those that chose expert e, in order;
        a token without a place has none."""
        self._check_count(call, 3, "array, dimension and the dimension of places")
        array, dims = self._along(replace(call, operands=call.operands[:2]), 1)
        (places,) = self._named_dims(call.operands[2], call)
        if places in array.dims:
            self._fail(
                f"{array} has the dimension {places} already,", call, "name another one for the places"
            )
        return self._emit("slots", (array,), (*array.dims, places), target, whole=dims)

    def _reshape(self, call: FunctionCall, target: _Target | None) -> ArrayUse:
        """``reshape(P, q=nh)``: q becomes n and h, or n and h, side by side, become q."""
        if len(call.operands) != 1 or not call.merges:
            self._fail("reshape takes an array and equations of dimensions,", call, "write reshape(P, q=nh)")
        array = self._expression(call.operands[0], None)
        dims = array.dims
        for whole, factors in call.merges:
            if whole in dims:
                place = dims.index(whole)
                dims = (*dims[:place], *factors, *dims[place + 1 :])
                continue
            place = dims.index(factors[0]) if factors[0] in dims else 0
            if dims[place : place + len(factors)] != factors:
                self._fail(
                    f"{array} has neither {whole} nor {', '.join(factors)} side by side,",
                    call,
                    f"the dimensions of {array.name} are {', '.join(array.dims)}",
                )
            dims = (*dims[:place], whole, *dims[place + len(factors) :])
        return self._emit("reshape", (array,), dims, target, merged=call.merges)

    def _along(self, call: FunctionCall, count: int | None) -> tuple[ArrayUse, tuple[str, ...]]:
        """The array of a call and the dimensions of it that follow."""
        if len(call.operands) < 2 or (count is not None and len(call.operands) != 1 + count):
            wanted = "a dimension" if count else "dimensions"
            self._fail(f"{call.function} takes an array and {wanted},", call, f"write {call.function}(X, d)")
        array = self._expression(call.operands[0], None)
        dims = tuple(dim for each in call.operands[1:] for dim in self._named_dims(each, call))
        for dim in dims:
            if dim not in array.dims:
                self._fail(
                    f"{call.function} is along {quote(dim, 30)}, which {array} lacks,",
                    call,
                    f"the dimensions of {array.name} are {', '.join(array.dims)}",
                )
        return array, dims

    def _named_dims(self, value: Expression, call: FunctionCall) -> tuple[str, ...]:
        if not isinstance(value, Mention) or value.array is not None:
            self._fail(f"{call.function} takes the name of a dimension here,", value, "write for example d")
        return (value.name,)

    def _check_count(self, call: FunctionCall, count: int, what: str) -> None:
        if len(call.operands) != count:
            self._fail(
                f"{call.function} takes {plural(count, what)}, not {len(call.operands)},",
                call,
                f"give it {plural(count, what)}",
            )

    def _check_within(self, factor: ArrayUse, array: ArrayUse, call: FunctionCall) -> None:
        for dim in factor.dims:
            if dim not in array.dims:
                self._fail(
                    f"{call.function} has {self._sized(dim)} of {factor}, which {array} lacks,",
                    call,
                    f"the dimensions of {array.name} are {', '.join(map(self._sized, array.dims))}",
                )

    def _emit(
        self,
        function: str,
        operands: tuple[ArrayUse, ...],
        dims: tuple[str, ...],
        target: _Target | None,
        merged: tuple[tuple[str, tuple[str, ...]], ...] = (),
        whole: tuple[str, ...] = (),
        number: float | None = None,
    ) -> ArrayUse:
        """Append a statement, and return its result."""
        source = self._source
        target = target or _Target("", None, None)
        name = target.name or self._partial_name()
        wanted = dims if target.dims is None else target.dims
        if set(wanted) != set(dims):
            has = " and ".join([self._sized(dim) for dim in dims]) or "no dimension"
            self._fail(
                f"{name}[{', '.join(wanted)}] is made by {function}, which leaves {has},",
                source.target or source.value,
                "write the dimensions that it leaves, in any order",
            )
        if len(wanted) > MAX_RANK:
            self._fail(
                f"{name} has {len(wanted)} dimensions, and an array has at most {MAX_RANK},",
                source.target or source.value,
                "use fewer dimensions",
            )
        result = ArrayUse(name, wanted, target.spec, source.start, source.stop)
        self._made[result.name] = result
        self.statements.append(LoweredStatement(function, operands, result, source, merged, whole, number))
        return result

    def _partial_name(self) -> str:
        """The name of the next partial result of the statement."""
        self._partial += 1
        return self._unused(f"{self._name}_{self._partial}")

    def _use(self, mention: Mention) -> ArrayUse:
        """The array of a name, with the dimensions that it has here."""
        known = self._made.get(mention.name) or self.arguments.get(mention.name)
        if mention.array is None:
            if known is None:
                self._fail(
                    f"{quote(mention.name, 30)} has no dimensions yet,",
                    mention,
                    f"write them where it stands first, as in {mention.name}[b, d]",
                )
            return replace(known, spec=None, start=mention.start, stop=mention.stop)
        dims = mention.array.dims
        use = ArrayUse(mention.name, dims, _spec(mention), mention.start, mention.stop)
        if len(set(dims)) < len(dims):
            self._fail(
                f"{mention.name} has a dimension twice,", mention, "name each dimension of an array once"
            )
        if known is None:
            self.arguments[mention.name] = use
            return use
        if len(known.dims) != len(dims):
            self._fail(
                f"{self._name} takes {use}, but it is {known}: {plural(len(dims), 'dimension')} against "
                f"{len(known.dims)},",
                mention,
                "brackets may name the dimensions otherwise, but not more or fewer of them",
            )
        if dims != known.dims:
            self.renamed.append(Renamed(self._name, known, use))
        return use

    @property
    def _name(self) -> str:
        """The name of the statement."""
        return self._source.target.name if self._source.target is not None else "Out"

    def _unused(self, name: str) -> str:
        found = next(
            candidate
            for candidate in (name, *(f"{name}_{number}" for number in range(2, len(self._taken) + 3)))
            if candidate not in self._taken
        )
        self._taken.add(found)
        return found

    def _is_known(self, name: str) -> bool:
        return name in self._made or name in self.arguments

    def _result_name(self, target: _Target | None) -> str:
        return self._name if target is None else target.name or self._name

    def _sized(self, dim: str) -> str:
        return f"{dim}={self.sizes[dim]}" if dim in self.sizes else dim

    def _fail(self, problem: str, place: Expression, hint: str) -> NoReturn:
        raise NotationError(problem, self.program.text, place.start, place.stop, hint)


_DOES = {
    "add": "adds",
    "subtract": "subtracts",
    "divide": "divides",
    "maximum": "takes the maximum of",
    "minimum": "takes the minimum of",
}


def _partial(target: _Target | None) -> _Target | None:
    """A partial result with the dimensions of the result."""
    return None if target is None else _Target("", target.dims, None, target.kept)


def _operand_target(value: Expression, target: _Target | None) -> _Target | None:
    """The partial result that an operand makes of a function that keeps all dimensions; an array that stands
    there makes none. A product has the dimensions of the `target`, in their order; what a function makes may
    lack some."""
    if target is None or not isinstance(value, FunctionCall):
        return None
    kept = frozenset(target.dims or target.kept)
    return _partial(target) if _is_product(value) else _Target("", None, None, kept)


def _spec(mention: Mention) -> PartitionSpec | None:
    """The spec that the subscripts of an array say; None where it has none."""
    spec = None if mention.array is None else mention.array.spec
    return spec if spec is not None and (spec.axes or spec.unreduced) else None


def _sums(call: FunctionCall) -> tuple[tuple[str, ...] | None, ...]:
    """The dimensions that the products between the arrays of a call sum over, where they say so."""
    before: tuple[tuple[str, ...] | None, ...] = (None, *call.sums)
    arrays = [sums for each, sums in zip(call.operands, before, strict=True) if not isinstance(each, Literal)]
    return tuple(arrays[1:])


def _is_product(value: Expression) -> bool:
    return isinstance(value, FunctionCall) and value.function == "multiply"
