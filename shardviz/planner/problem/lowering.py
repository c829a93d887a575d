"""The statements of a program's text: every expression is taken apart into functions of named arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import NoReturn

from shardviz.errors import quote
from shardviz.notation.book import ProductFactors, two_readings
from shardviz.notation.program import (
    Assignment,
    EinsumCall,
    Expression,
    FunctionCall,
    Literal,
    Mention,
    ProgramText,
)
from shardviz.planner.problem import UNNAMED
from shardviz.planner.problem.calls import CALLS, FunctionLowering
from shardviz.planner.problem.functions import PROGRAM_FUNCTIONS
from shardviz.planner.problem.lowered import PART, ArrayUse, Dims, WantedResult, is_product, written_spec


class LoweredProgram(FunctionLowering):
    """The statements of a program in order; `named` are the results that the text names, and the last."""

    def __init__(self, program: ProgramText, sizes: Mapping[str, int]) -> None:
        """Take a program's expressions apart. `sizes` are those of dimensions that errors may say.

        A product sums over the dimensions of both factors that neither the result nor another factor has;
        where both have the same dimensions and the result's are not written, it is elementwise. In brackets
        it is what it would be in a statement of its own, ``Y_1``. Raises `NotationError` where an array, a
        function or a dimension does not fit, and for a product that has two readings (`ProductFactors`)."""
        super().__init__(program, sizes)
        self.named: list[str] = []
        self._activations: dict[Dims, str] = {}
        self._weights = 0
        for number, assignment in enumerate(program.statements):
            self._statement(assignment, number)

    def _statement(self, assignment: Assignment, number: int) -> None:
        self._source, self._partial = assignment, 0
        if (written := assignment.target) is None:
            is_last = number == len(self.program.statements) - 1
            name = UNNAMED if is_last else f"H{number + 1}"
            target = WantedResult(self._unused(name))
        else:
            dims = None if written.array is None else written.array.dims
            target = WantedResult(written.name, dims, written_spec(written))
            if (name := written.name) in self._made or name in self.arguments:
                what = "made" if name in self._made else "taken as an argument"
                self._fail(f"{quote(name, 30)} is {what} before,", written, "give every result its own name")
            self._check_once(written)
            if name in PROGRAM_FUNCTIONS:
                self._fail(f"{quote(name)} is a function,", written, "give the result another name")
        self._expression(assignment.value, target)
        self.named.append(target.name)

    def _expression(self, value: Expression, target: WantedResult = PART) -> ArrayUse:
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
        if value.function == "multiply":
            return self._product(value, target)
        if value.function in CALLS:
            own: ArrayUse = getattr(self, CALLS[value.function][0])(value, target)
            return own
        pointwise = [name for name, function in PROGRAM_FUNCTIONS.items() if isinstance(function.code, str)]
        if value.function not in pointwise:
            hint = f"the functions are {', '.join(sorted({'multiply', *CALLS, *pointwise}))}"
            self._fail(f"{quote(value.function, 30)} is not a function,", value, hint)
        return self._pointwise(value, target)

    # Products and einsums.

    def _product(
        self, call: FunctionCall, target: WantedResult, outside: AbstractSet[str] = frozenset()
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
            result = target if index == len(uses) - 1 else PART
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
        for number in sorted(range(len(factors)), key=lambda number: is_product(factors[number])):
            factor = factors[number]
            if isinstance(factor, FunctionCall) and is_product(factor):
                others = {dim for use in uses.values() for dim in use.dims}
                uses[number] = self._product(factor, PART, others | needed)
            else:
                uses[number] = self._expression(factor)
        return [uses[number] for number in range(len(factors))]

    def _refuse_two_readings(
        self,
        call: FunctionCall,
        factors: ProductFactors,
        readings: Sequence[Sequence[Dims]],
        target: WantedResult,
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
        self, operands: tuple[ArrayUse, ...], natural: Dims, target: WantedResult, place: Expression
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

    def _letters_einsum(self, value: EinsumCall, target: WantedResult) -> ArrayUse:
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
