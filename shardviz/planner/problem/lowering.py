"""The statements of a program's text: every expression is taken apart into functions of named arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NoReturn

from shardviz.errors import NotationError, plural, quote
from shardviz.notation.book import ProductFactors, two_readings
from shardviz.notation.einsum import Einsum
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
from shardviz.planner.problem import UNNAMED, unused_name
from shardviz.planner.problem.functions import PROGRAM_FUNCTIONS
from shardviz.sharding import PartitionSpec

Dims = tuple[str, ...]


@dataclass(frozen=True)
class ArrayUse:
    """An array where a statement takes or makes it: the names that its dimensions have there, the `spec` that
    its subscripts say (None without any), and its place in the program's text."""

    name: str
    dims: Dims
    spec: PartitionSpec | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.dims)}]"

    def without(self, dims: Dims) -> Dims:
        return tuple(dim for dim in self.dims if dim not in dims)


@dataclass(frozen=True)
class LoweredStatement:
    """One function of a written statement, its `source`; other fields are as in `problem.Statement`."""

    function: str
    operands: tuple[ArrayUse, ...]
    result: ArrayUse
    source: Assignment
    merged: tuple[tuple[str, Dims], ...] = ()
    whole: Dims = ()
    number: float | None = None

    @property
    def einsum(self) -> Einsum:
        return Einsum(tuple(use.dims for use in self.operands), self.result.dims)


@dataclass(frozen=True)
class _Target:
    """The result that an expression is to have, a partial one without a `name`; `dims` is None where they
    follow from the expression, whose products then do not sum over those in `kept`."""

    name: str = ""
    dims: Dims | None = None
    spec: PartitionSpec | None = None
    kept: frozenset[str] = frozenset()

    def of_operand(self, value: Expression) -> _Target:
        """The partial result that an operand makes of a function that keeps all dimensions. A product has the
        target's, in their order; what a function makes may lack some."""
        if _is_product(value):
            return replace(self, name="", spec=None)
        return _Target(kept=frozenset(self.dims or self.kept))


_PART = _Target()


class LoweredProgram:
    """The statements of a program in order. `arguments` are the arrays that it takes, as they stand first;
    `named` are the results that the text names, and the last. `renamed` are arrays that a statement calls by
    other dimensions than before: its name, the array as it was, its use there. `integers` are the arguments
    that hold places in a table."""

    def __init__(self, program: ProgramText, sizes: Mapping[str, int]) -> None:
        """Take a program's expressions apart. `sizes` are those of dimensions that errors may say.

        A product sums over the dimensions of both factors that neither the result nor another factor has;
        where both have the same dimensions and the result's are not written, it is elementwise. In brackets
        it is what it would be in a statement of its own, ``Y_1``. Raises `NotationError` where an array, a
        function or a dimension does not fit, and for a product that has two readings (`ProductFactors`)."""
        self.program, self._sizes = program, sizes
        self.statements: list[LoweredStatement] = []
        self.arguments: dict[str, ArrayUse] = {}
        self.named: list[str] = []
        self.renamed: list[tuple[str, ArrayUse, ArrayUse]] = []
        self.integers: set[str] = set()
        self._made: dict[str, ArrayUse] = {}
        self._activations: dict[Dims, str] = {}
        self._weights = 0
        self._targets = {
            statement.target.name for statement in program.statements if statement.target is not None
        }
        words = {word.name for statement in program.statements for word in mentions(statement.value)}
        self._taken = self._targets | words
        for number, assignment in enumerate(program.statements):
            self._statement(assignment, number)

    @property
    def uses(self) -> list[ArrayUse]:
        """All operands and results, in the order of the statements."""
        return [use for statement in self.statements for use in (*statement.operands, statement.result)]

    @property
    def dims(self) -> Dims:
        """Every dimension once, in the order in which arguments, then statements have them."""
        return tuple(dict.fromkeys(dim for use in self.uses for dim in use.dims))

    def _statement(self, assignment: Assignment, number: int) -> None:
        self._source, self._partial = assignment, 0
        if (written := assignment.target) is None:
            is_last = number == len(self.program.statements) - 1
            name = UNNAMED if is_last else f"H{number + 1}"
            target = _Target(self._unused(name))
        else:
            dims = None if written.array is None else written.array.dims
            target = _Target(written.name, dims, _spec(written))
            if (name := written.name) in self._made or name in self.arguments:
                what = "made" if name in self._made else "taken as an argument"
                self._fail(f"{quote(name, 30)} is {what} before,", written, "give every result its own name")
            self._check_once(written)
            if name in PROGRAM_FUNCTIONS:
                self._fail(f"{quote(name)} is a function,", written, "give the result another name")
        self._expression(assignment.value, target)
        self.named.append(target.name)

    def _expression(self, value: Expression, target: _Target = _PART) -> ArrayUse:
        if isinstance(value, Mention):
            use = self._use(value)
            # A name of its own for the array, perhaps with its dimensions in another order.
            return self._einsum((use,), use.dims, target, value) if target.name else use
        if isinstance(value, EinsumCall):
            return self._letters_einsum(value, target)
        if isinstance(value, Literal):
            problem, hint = "expected an array but found a number,", "numbers multiply or divide arrays"
            self._fail(problem, value, hint)
        if value.merges and value.function != "reshape":
            self._fail(f"{value.function} takes no q=nh,", value, "only reshape does")
        if value.function in _CALLS:
            return _CALLS[value.function][0](self, value, target)
        pointwise = [name for name, function in PROGRAM_FUNCTIONS.items() if isinstance(function.code, str)]
        if value.function not in pointwise:
            hint = f"the functions are {', '.join(sorted({*_CALLS, *pointwise}))}"
            self._fail(f"{quote(value.function, 30)} is not a function,", value, hint)
        return self._pointwise(value, target)

    # Products and einsums.

    def _product(
        self, call: FunctionCall, target: _Target, outside: AbstractSet[str] = frozenset()
    ) -> ArrayUse:
        """Factors from left to right; what multiplies a product in brackets has the dimensions `outside`."""
        numbers = [operand.value for operand in call.operands if isinstance(operand, Literal)]
        factors = [operand for operand in call.operands if not isinstance(operand, Literal)]
        if not factors:
            self._fail("only numbers are multiplied,", call, "multiply an array: 0.5 * X")
        if len(call.operands) == 1:
            self._fail("multiply takes 2 or more arrays, not 1,", call, "give it 2 arrays")
        sums = call.sums or (None,) * (len(call.operands) - 1)
        if numbers:
            if len(factors) == 1:
                use = self._expression(factors[0], target.of_operand(factors[0]))
            else:
                before = zip(call.operands, (None, *sums), strict=True)
                arrays = [said for term, said in before if not isinstance(term, Literal)]
                product = replace(call, operands=tuple(factors), sums=tuple(arrays[1:]))
                use = self._product(product, target.of_operand(product), outside)
            return self._emit("scale", (use,), use.dims, target, number=math.prod(numbers))
        needed = {*(target.dims or ()), *target.kept, *outside}
        uses = self._factors(factors, needed)
        product_of = ProductFactors(tuple(use.dims for use in uses), sums, target.dims, target.kept, True)
        readings = product_of.readings()
        if len(readings) > 1:
            self._refuse_two_readings(call, product_of, readings, target)
        left, lefts = uses[0], product_of.left(readings[0])
        for index, right in enumerate(uses[1:], 1):
            result = target if index == len(uses) - 1 else _PART
            shared = [dim for dim in left.dims if dim in right.dims]
            if not shared:
                later = needed.union(*(use.dims for use in uses[index + 1 :]))
                self._check_outer(left, right, later, result.dims is not None, call)
            for dim in sums[index - 1] or ():
                if dim not in shared or dim in (result.dims or ()):
                    where = "which its factors do not share" if dim not in shared else "which the result has"
                    hint = "the subscript of a product names a dimension of both factors"
                    problem = f"the product sums over {quote(dim, 30)}, {where},"
                    self._fail(problem, call, f"{hint} that the result lacks")
            left = self._einsum((left, right), lefts[index], result, call)
        return left

    def _factors(self, factors: Sequence[Expression], needed: AbstractSet[str]) -> list[ArrayUse]:
        """The factors, those that are products themselves made last: they are of what the others need."""
        uses: dict[int, ArrayUse] = {}
        for number in sorted(range(len(factors)), key=lambda number: _is_product(factors[number])):
            factor = factors[number]
            if isinstance(factor, FunctionCall) and _is_product(factor):
                others = {dim for use in uses.values() for dim in use.dims}
                uses[number] = self._product(factor, _PART, others | needed)
            else:
                uses[number] = self._expression(factor)
        return [uses[number] for number in range(len(factors))]

    def _refuse_two_readings(
        self, call: FunctionCall, factors: ProductFactors, readings: Sequence[Sequence[Dims]], target: _Target
    ) -> NoReturn:
        """Raise for a product that has two readings, with both as they can be written."""

        def written(value: Expression) -> str:
            text = self.program.text[value.start : value.stop].strip()
            signs = ("multiply", "add", "subtract", "divide")
            needs = isinstance(value, FunctionCall) and value.function in signs
            return f"({text})" if needs else text

        dims = factors.left(readings[0])[-1] if factors.result is None else factors.result
        own = target.name and not factors.needed
        result = f"{self._name if own else 'T'}[{', '.join(dims)}]"
        problem, hint = two_readings(readings, factors.sums, [*map(written, call.operands)], result)
        self._fail(problem, call, hint if own else f"{hint}, the latter in a statement of its own")

    def _check_outer(
        self, left: ArrayUse, right: ArrayUse, later: AbstractSet[str], is_written: bool, call: FunctionCall
    ) -> None:
        """Raise for factors without a common dimension, unless what follows has the dimensions of one."""
        if not left.dims or not right.dims or later >= {*left.dims} or later >= {*right.dims}:
            return
        every = (*left.dims, *right.dims)
        outer = f"{self._name}[{', '.join(every)}] = …"
        hint = f"for an outer product write {outer}, else one letter for what both have"
        if is_written:
            alone = [dim for dim in every if dim not in later]
            hint = f"to sum each separately, write sum({left.name}, {alone[0]}), else one letter for both"
        self._fail(f"{self._name} multiplies {left} by {right}, which share no dimension,", call, hint)

    def _einsum(
        self, operands: tuple[ArrayUse, ...], natural: Dims, target: _Target, place: Expression
    ) -> ArrayUse:
        """An einsum with the dimensions that the target has, which may be any that an operand has."""
        dims = natural if target.dims is None else target.dims
        for dim in dims:
            if not any(dim in use.dims for use in operands):
                factors = " and ".join(map(str, operands))
                hint = "each dimension of the result is one that the factors have"
                for own in reversed(self.statements):
                    is_in_brackets = own.result in operands and own.source is self._source
                    if is_in_brackets and dim in own.einsum.contracted:
                        names = ", ".join(use.name for use in own.operands)
                        hint = f"the product in brackets sums over {dim}; scale({names}) keeps it"
                made = f"{target.name or self._name} has the dimension {self._sized(dim)}"
                problem = f"{made}, which no factor has: {factors},"
                self._fail(problem, place, hint)
        return self._emit("multiply", operands, dims, target)

    def _letters_einsum(self, value: EinsumCall, target: _Target) -> ArrayUse:
        """An einsum of letters: a name that is known is that array. Other letters are an array of their own:
        the first an activation, the same one where they stand first again, or the result just made where that
        has no name; all others are weights."""
        uses = []
        for number, operand in enumerate(value.operands):
            if isinstance(operand, Mention) and operand.array is None and self._known(operand.name) is None:
                dims, before = self._letters(operand), self.statements[-1].result if self.statements else None
                if number:
                    self._weights += 1
                    name = self._unused(f"W{self._weights}")
                elif before is not None and before.name not in self._targets and before.dims == dims:
                    name = before.name
                else:
                    if dims not in self._activations:
                        self._activations[dims] = self._unused("A")
                    name = self._activations[dims]
                uses.append(ArrayUse(name, dims, None, operand.start, operand.stop))
                if name not in self._made:
                    self.arguments.setdefault(name, uses[-1])
            else:
                uses.append(self._expression(operand))
        known = {dim for use in uses for dim in use.dims}
        for dim in value.result:
            if dim not in known or value.result.count(dim) > 1:
                problem = "occurs twice in the result" if dim in known else "of the result is in no operand"
                hint = "name letters of the operands, each once"
                self._fail(f"dimension {quote(dim)} {problem},", value, hint)
        if target.dims not in (None, value.result):
            written = f"{target.name}[{', '.join(target.dims or ())}]"
            self._fail(f"the result is {''.join(value.result)} and {written},", value, "write it once")
        return self._emit("multiply", tuple(uses), value.result, target)

    def _letters(self, operand: Mention) -> Dims:
        dims = tuple(operand.name)
        for dim in dims:
            if not (dim.isascii() and dim.isalpha()) or dims.count(dim) > 1:
                problem = f"{quote(operand.name, 30)} is neither an array nor a letter for each dimension,"
                self._fail(problem, operand, "name an earlier result, or write letters as in bd,df->bf")
        return dims

    # Functions.

    def _pointwise(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """A function of each element; of two arrays one may lack dimensions of the other."""
        operands = call.operands
        if call.function == "divide" and isinstance(operands[1], Literal):
            if not operands[1].value:
                self._fail("an array is divided by 0,", call, "divide by another number")
            use = self._expression(operands[0], target.of_operand(operands[0]))
            return self._emit("scale", (use,), use.dims, target, number=1 / operands[1].value)
        self._check_count(call, PROGRAM_FUNCTIONS[call.function].operands or 1)
        kept = _Target(kept=frozenset(target.dims or target.kept))
        uses = tuple(self._expression(operand, kept.of_operand(operand)) for operand in operands)
        largest = max(uses, key=lambda use: len(use.dims))
        for use in uses:
            if missing := use.without(largest.dims):
                does = f"takes the {call.function} of"
                if call.function in ("add", "subtract", "divide"):
                    does = f"{call.function}s"
                doing = f"{target.name or self._name} {does} {largest} and {use}"
                own = f"{self._all_sized(missing)} of {use.name} {'is' if len(missing) == 1 else 'are'}"
                others = f"{self._all_sized(largest.without(use.dims))} of {largest.name}"
                hint = "both need the same dimensions, or one a subset of the other's"
                self._fail(f"{doing}, but {own} not {others},", call, hint)
        return self._emit(call.function, uses, largest.dims, target)

    def _scale(self, call: FunctionCall, target: _Target) -> ArrayUse:
        array, factor = self._arrays(call, 2)
        self._check_within(factor, array, call)
        return self._emit("multiply", (array, factor), array.dims, target)

    def _reduction(self, call: FunctionCall, target: _Target) -> ArrayUse:
        array, dims, _ = self._along(call, dims=None)
        return self._emit(call.function, (array,), array.without(dims), target)

    def _softmax(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """Also written ``softmax(X, M, Z)``, in parts of a row: no row need be on one device."""
        if len(call.operands) == 3:
            return self._pointwise(call, target)
        array, dims, _ = self._along(call)
        rows = self._raised_rows(array, array.without(dims))
        return self._emit("softmax", (array, *rows), array.dims, target)

    def _log_sum_exp(self, call: FunctionCall, target: _Target) -> ArrayUse:
        array, dims, _ = self._along(call)
        kept = array.without(dims)
        return self._emit("add_log", self._raised_rows(array, kept), kept, target)

    def _raised_rows(self, array: ArrayUse, kept: Dims) -> tuple[ArrayUse, ArrayUse]:
        """The largest of each row, and the sum of the exponentials of what is left without it."""
        largest = self._emit("max", (array,), kept)
        return largest, self._emit("sum_exp", (array, largest), kept)

    def _sum_exp(self, call: FunctionCall, target: _Target) -> ArrayUse:
        array, dims, (largest,) = self._along(call, arrays=2)
        self._check_within(largest, array, call)
        return self._emit("sum_exp", (array, largest), array.without(dims), target)

    def _pick(self, call: FunctionCall, target: _Target) -> ArrayUse:
        array, places, kept = self._at_places(call)
        return self._emit("pick", (array, places), kept, target)

    def _cross_entropy(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """The logarithm of the sum of exponentials, less the element at the place."""
        array, places, kept = self._at_places(call)
        every = self._emit("add_log", self._raised_rows(array, kept), kept)
        own = self._emit("pick", (array, places), kept)
        return self._emit("subtract", (every, own), kept, target)

    def _at_places(self, call: FunctionCall) -> tuple[ArrayUse, ArrayUse, Dims]:
        array, dims, (places,) = self._along(call, arrays=2)
        example = f"{call.function}({_CALLS[call.function][2]})"
        self._take_integers(places, call, f"the places are an argument: {example}")
        kept = array.without(dims)
        if {*places.dims} != {*kept}:
            problem = f"{places} must have all dimensions of {array} but {dims[0]},"
            self._fail(problem, call, f"write {example}")
        return array, places, kept

    def _norm(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """``layer_norm`` takes the mean away before, and may add a bias behind the scale."""
        is_layer = call.function == "layer_norm"
        array, dims, weights = self._along(call, weights=1 + is_layer)
        for weight in weights:
            self._check_within(weight, array, call)
        if is_layer:
            mean = self._emit("mean", (array,), array.without(dims))
            array = self._emit("subtract", (array, mean), array.dims)
        squares = self._emit("mean_square", (array,), array.without(dims))
        made = self._emit("normalize", (array, squares), array.dims, _PART if weights else target)
        for function, weight in zip(("multiply", "add"), weights, strict=False):
            own = target if weight is weights[-1] else _PART
            made = self._emit(function, (made, weight), array.dims, own)
        return made

    def _take(self, call: FunctionCall, target: _Target) -> ArrayUse:
        table, places = self._arrays(call, 2)
        self._take_integers(places, call, "take rows at an argument: take(W[v, d], T[b, t])")
        if shared := [dim for dim in places.dims if dim in table.dims]:
            problem = f"{shared[0]} is a dimension of both {table} and {places},"
            self._fail(problem, call, "the table has dimensions of its own")
        return self._emit("take", (table, places), (*places.dims, *table.dims[1:]), target)

    def _attention(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """With grouped heads the queries have a dimension more. No score is ever kept (flash attention)."""
        queries, keys, values = self._arrays(call, 3)
        if set(keys.dims) != set(values.dims):
            problem = f"the keys {keys} and the values {values} have other dimensions,"
            self._fail(problem, call, "give both the same dimensions")
        along = keys.without(queries.dims)
        # The queries' sequence stands where the keys' does, the heads of a group behind those of the keys.
        index = keys.dims.index(along[0]) if len(along) == 1 else len(queries.dims)
        own, behind = queries.dims[index : index + 1], queries.dims[index + 1 :]
        shared = tuple(dim for dim in behind if dim in keys.dims)
        is_like_keys = (*queries.dims[:index], *along, *shared) == keys.dims
        if not is_like_keys or not own or own[0] in keys.dims or not shared or behind[0] != shared[0]:
            place = "another sequence in the same place, and perhaps heads of a group"
            problem = f"the queries {queries} must have the dimensions of the keys {keys}, {place},"
            hint = "attention(Q[b, t, n, h], K[b, s, n, h], V[b, s, n, h])"
            self._fail(problem, call, f"write {hint}, with grouped heads Q[b, t, n, g, h]")
        whole = (*along, *keys.dims[-1:])
        return self._emit(call.function, (queries, keys, values), queries.dims, target, whole=whole)

    def _top_k(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """The largest along a dimension, and zero for all others."""
        count = call.operands[-1] if len(call.operands) == 3 else None
        if not isinstance(count, Literal) or count.value < 1 or count.value % 1:
            self._fail_form(call)
        array, dims, _ = self._along(replace(call, operands=call.operands[:2]))
        return self._emit("top_k", (array,), array.dims, target, whole=dims, number=count.value)

    def _slots(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """1 where a token has the place of those that chose an expert, in order; some have no place."""
        if len(call.operands) != 3:
            self._fail_form(call)
        array, dims, _ = self._along(replace(call, operands=call.operands[:2]))
        places = self._dim(call.operands[2], call)
        if places in array.dims:
            problem = f"{array} already has the dimension {places},"
            self._fail(problem, call, "choose another name for the places")
        return self._emit("slots", (array,), (*array.dims, places), target, whole=dims)

    def _reshape(self, call: FunctionCall, target: _Target) -> ArrayUse:
        """``reshape(P, q=nh)``: q becomes n and h, or n and h, side by side, become q."""
        if len(call.operands) != 1 or not call.merges:
            self._fail_form(call)
        array = self._expression(call.operands[0])
        dims = array.dims
        for whole, factors in call.merges:
            old, new = ((whole,), factors) if whole in dims else (factors, (whole,))
            index = dims.index(old[0]) if old[0] in dims else 0
            if dims[index : index + len(old)] != old:
                problem = f"{array} has neither {whole} nor {', '.join(factors)} side by side,"
                self._fail(problem, call, self._has(array))
            dims = (*dims[:index], *new, *dims[index + len(old) :])
        return self._emit("reshape", (array,), dims, target, merged=call.merges)

    # The arguments of functions.

    def _along(
        self, call: FunctionCall, *, arrays: int = 1, dims: int | None = 1, weights: int = 0
    ) -> tuple[ArrayUse, Dims, tuple[ArrayUse, ...]]:
        """The first array, its dimensions behind so many `arrays` (None: at least one), and the other arrays,
        of which as many as `weights` may follow."""
        most = len(call.operands) if dims is None else arrays + dims + weights
        if not arrays + (dims or 1) <= len(call.operands) <= most:
            self._fail_form(call)
        stop = None if dims is None else arrays + dims
        array = self._expression(call.operands[0])
        along = tuple(self._dim(operand, call) for operand in call.operands[arrays:stop])
        for dim in along:
            if dim not in array.dims:
                problem = f"{call.function} is along {quote(dim, 30)}, which {array} lacks,"
                self._fail(problem, call, self._has(array))
        others = (*call.operands[1:arrays], *(call.operands[stop:] if stop else ()))
        return array, along, tuple(self._expression(other) for other in others)

    def _arrays(self, call: FunctionCall, count: int) -> list[ArrayUse]:
        self._check_count(call, count)
        return [self._expression(operand) for operand in call.operands]

    def _dim(self, value: Expression, call: FunctionCall) -> str:
        if not isinstance(value, Mention) or value.array is not None:
            self._fail(f"{call.function} takes the name of a dimension here,", value, "write for example d")
        return value.name

    def _take_integers(self, places: ArrayUse, call: FunctionCall, hint: str) -> None:
        if places.name not in self.arguments:
            self._fail(f"{places.name} holds no whole numbers,", call, hint)
        self.integers.add(places.name)

    def _check_count(self, call: FunctionCall, count: int) -> None:
        if len(call.operands) != count:
            arrays = plural(count, "array")
            problem = f"{call.function} takes {arrays}, not {len(call.operands)},"
            self._fail(problem, call, f"give it {arrays}")

    def _check_within(self, factor: ArrayUse, array: ArrayUse, call: FunctionCall) -> None:
        for dim in factor.without(array.dims):
            problem = f"{call.function} has {self._sized(dim)} of {factor}, which {array} lacks,"
            hint = f"the dimensions of {array.name} are {', '.join(map(self._sized, array.dims))}"
            self._fail(problem, call, hint)

    def _has(self, array: ArrayUse) -> str:
        return f"the dimensions of {array.name} are {', '.join(array.dims)}"

    def _fail_form(self, call: FunctionCall) -> NoReturn:
        _, words, example = _CALLS[call.function]
        self._fail(f"{call.function} takes {words},", call, f"write {call.function}({example})")

    # Arrays and their names.

    def _emit(
        self,
        function: str,
        operands: tuple[ArrayUse, ...],
        dims: Dims,
        target: _Target = _PART,
        merged: tuple[tuple[str, Dims], ...] = (),
        whole: Dims = (),
        number: float | None = None,
    ) -> ArrayUse:
        source = self._source
        expression = source.target or source.value
        if not (name := target.name):
            self._partial += 1
            name = self._unused(f"{self._name}_{self._partial}")
        wanted = dims if target.dims is None else target.dims
        if set(wanted) != set(dims):
            leaves = self._all_sized(dims) or "no dimension"
            problem = f"{name}[{', '.join(wanted)}] is made by {function}, which leaves {leaves},"
            self._fail(problem, expression, "write the dimensions that it leaves, in any order")
        if len(wanted) > MAX_RANK:
            problem = f"{name} has {len(wanted)} dimensions, and an array has at most {MAX_RANK},"
            self._fail(problem, expression, "use fewer dimensions")
        result = self._made[name] = ArrayUse(name, wanted, target.spec, source.start, source.stop)
        self.statements.append(LoweredStatement(function, operands, result, source, merged, whole, number))
        return result

    def _use(self, mention: Mention) -> ArrayUse:
        """The array of a name, with the dimensions that it has here."""
        known = self._known(mention.name)
        if mention.array is None:
            if known is None:
                hint = f"write them at its first use, as in {mention.name}[b, d]"
                self._fail(f"{quote(mention.name, 30)} has no dimensions yet,", mention, hint)
            return replace(known, spec=None, start=mention.start, stop=mention.stop)
        dims = mention.array.dims
        use = ArrayUse(mention.name, dims, _spec(mention), mention.start, mention.stop)
        self._check_once(mention)
        if known is None:
            self.arguments[mention.name] = use
            return use
        if len(known.dims) != len(dims):
            counts = f"{plural(len(dims), 'dimension')} against {len(known.dims)}"
            hint = "brackets may rename the dimensions, but not add or remove any"
            self._fail(f"{self._name} takes {use}, but it is {known}: {counts},", mention, hint)
        if dims != known.dims:
            self.renamed.append((self._name, known, use))
        return use

    def _check_once(self, mention: Mention) -> None:
        if mention.array is not None and len({*mention.array.dims}) < len(mention.array.dims):
            problem = f"{mention.name} has one dimension twice,"
            self._fail(problem, mention, "name each dimension of an array once")

    @property
    def _name(self) -> str:
        return self._source.target.name if self._source.target is not None else UNNAMED

    def _unused(self, name: str) -> str:
        return unused_name(name, self._taken)

    def _known(self, name: str) -> ArrayUse | None:
        return self._made.get(name) or self.arguments.get(name)

    def _sized(self, dim: str) -> str:
        return f"{dim}={self._sizes[dim]}" if dim in self._sizes else dim

    def _all_sized(self, dims: Dims) -> str:
        return " and ".join(map(self._sized, dims))

    def _fail(self, problem: str, place: Expression, hint: str) -> NoReturn:
        raise NotationError(problem, self.program.text, place.start, place.stop, hint)


_CALLS = {
    "multiply": (LoweredProgram._product, "", ""),
    "scale": (LoweredProgram._scale, "", ""),
    **dict.fromkeys(
        ("sum", "mean", "mean_square", "max"), (LoweredProgram._reduction, "an array and dimensions", "X, d")
    ),
    "softmax": (LoweredProgram._softmax, "an array and a dimension", "X, d"),
    "sum_exp": (LoweredProgram._sum_exp, "an array, what is taken from it and a dimension", "X, M, d"),
    "log_sum_exp": (LoweredProgram._log_sum_exp, "an array and a dimension", "X, d"),
    "pick": (LoweredProgram._pick, "an array, places and a dimension", "X[b, v], T[b], v"),
    "cross_entropy": (LoweredProgram._cross_entropy, "an array, places and a dimension", "X[b, v], T[b], v"),
    "rms_norm": (LoweredProgram._norm, "an array, a dimension and perhaps a scale", "X, d"),
    "layer_norm": (LoweredProgram._norm, "an array, a dimension and perhaps a scale and a bias", "X, d"),
    "take": (LoweredProgram._take, "", ""),
    "attention": (LoweredProgram._attention, "", ""),
    "causal_attention": (LoweredProgram._attention, "", ""),
    "top_k": (LoweredProgram._top_k, "an array, a dimension and how many are kept", "X, e, 2"),
    "slots": (LoweredProgram._slots, "an array, a dimension and the dimension of places", "G[b, t, e], t, c"),
    "reshape": (LoweredProgram._reshape, "an array and equations of dimensions", "P, q=nh"),
}
"""How functions that are not of each element are taken apart; what one takes, in words and as an example."""


def _spec(mention: Mention) -> PartitionSpec | None:
    spec = None if mention.array is None else mention.array.spec
    return spec if spec is not None and (spec.axes or spec.unreduced) else None


def _is_product(value: Expression) -> bool:
    return isinstance(value, FunctionCall) and value.function == "multiply"
