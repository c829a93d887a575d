"""The backward pass of a program: reverse-mode differentiation, statement by statement.

A compiler is asked the same question as `jax.grad` of the sum of all results, each multiplied by the argument
that is its gradient; `Problem.gradients` has the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from shardviz.errors import QuestionError, quote
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Phase, Problem, Statement
from shardviz.planner.problem.statement import is_floating
from shardviz.planner.problem.training import Training
from shardviz.planner.statements.local_work import is_matmul
from shardviz.planner.training.derivatives import (
    GRADIENT,
    PASSED_ON,
    RESULT,
    Derivative,
    RowSums,
    Taken,
    derivatives,
)
from shardviz.planner.training.optimizer import optimizer_statements
from shardviz.sharding import PartitionSpec, ShardedArray


def backward_statements(problem: Problem, training: Training) -> Problem:
    """The train step of a forward problem whose last result has a spec; see `with_backward`."""
    return _Backward(problem, training).problem()


def kept_results(problem: Problem, training: Training) -> frozenset[str]:
    """The results of forward statements that the backward pass need not compute again."""
    match training.remat:
        case "none":
            kept = [*problem.forward]
        case "dots":
            kept = [part for part in problem.forward if is_matmul(part)]
        case "layer":
            kept = []
    return frozenset(problem.results).union(part.result.name for part in kept)


def _uses(problem: Problem) -> Counter[str]:
    """By the name of each array that has a gradient, how many summands that has."""
    derived = {each.name for each in problem.arguments if is_floating(each)}
    for part in problem.parts:
        pairs = zip(part.operands, derivatives(part), strict=True)
        if any(derivative and operand.name in derived for operand, derivative in pairs):
            derived.add(part.result.name)
    uses = Counter(name for name in problem.results if name in derived)
    for part in reversed(problem.parts):
        if uses[part.result.name]:
            pairs = zip(part.operands, derivatives(part), strict=True)
            uses.update(operand.name for operand, each in pairs if each and operand.name in derived)
    return uses


class _Backward:
    """Makes the statements after the forward pass, from its last statement to its first.

    `_gradients` are the arrays that the gradients will be in the end. A gradient is added up use by use:
    `_sums` has what is found of it, and `_left` counts the summands that are still to come.
    """

    def __init__(self, problem: Problem, training: Training) -> None:
        self._problem, self._training = problem, training
        self._arguments = {each.name: each for each in problem.arguments}
        self._made = {part.result.name: part for part in problem.parts}
        self._taken = {*self._arguments, *self._made}
        self._parameters = problem.parameters
        self._kept = kept_results(problem, training)
        self._left = _uses(problem)
        arrays = (*self._arguments.values(), *(part.result for part in problem.parts))
        self._gradients = {each.name: self._gradient(each) for each in arrays if self._left[each.name]}
        self._given: dict[str, str] = {}
        self._sums: dict[str, ShardedArray] = {}
        self._recomputed: dict[str, str] = {}
        self._parts: list[Statement] = []

    def problem(self) -> Problem:
        """The whole train step."""
        for name in self._problem.results:
            if name in self._gradients:
                self._give(name)
        for part in reversed(self._problem.parts):
            if part.result.name in self._sums:
                self._differentiate(part)
        found = {name: self._sums[name] for name in self._arguments if name in self._sums}
        if not found:
            raise QuestionError(
                f"no result of {quote(self._problem.text)} depends on an argument of floating point",
                "leave out --backward",
            )
        optimizer = self._training.optimizer
        returned, updates = [*self._problem.results], dict[str, Statement]()
        for name, gradient in found.items():
            if optimizer is None or name not in self._parameters:
                returned.append(gradient.name)
                continue
            updates |= optimizer_statements(
                self._arguments[name], gradient, optimizer, self._problem.mesh, self._unused
            )
        made = {name: gradient.name for name, gradient in found.items()}
        return replace(
            self._problem,
            parts=(*self._problem.parts, *self._parts, *updates.values()),
            returned=(*returned, *(part.result.name for part in updates.values())),
            training=self._training,
            gradients=tuple((self._given | made).items()),
            updates=tuple((old, part.result.name) for old, part in updates.items()),
        )

    def _gradient(self, array: ShardedArray) -> ShardedArray:
        """The gradient of an array; a parameter's is the optimizer's to split where that splits its state."""
        optimizer = self._training.optimizer
        dtype, spec = array.dtype, _of_gradient(array.spec)
        if optimizer is not None and array.name in self._parameters:
            dtype, spec = optimizer.gradients, None if optimizer.over else spec
        return replace(array, name=self._unused(f"d{array.name}"), dtype=dtype, spec=spec)

    def _give(self, name: str) -> None:
        """Take the gradient of a result, or the first summand of it, as an argument."""
        given = self._gradients[name]
        if given.spec is None:
            raise QuestionError(
                f"the sharding of {name} is open, but its gradient is given, and split as {name} is",
                f"give {name} a spec",
            )
        if self._left[name] > 1:
            given = replace(given, name=self._unused(f"{given.name}_given"))
        self._given[name] = given.name
        self._add(name, given)

    def _differentiate(self, part: Statement) -> None:
        """Add what one forward statement says about the gradients of its operands."""
        gradient = self._sums[part.result.name]
        for operand, derivative in zip(part.operands, derivatives(part), strict=True):
            if derivative is not None and operand.name in self._gradients:
                self._add(operand.name, self._summand(part, operand, derivative, gradient))

    def _summand(
        self, part: Statement, operand: ShardedArray, derivative: Derivative, gradient: ShardedArray
    ) -> ShardedArray:
        """The gradient of an operand by its use in one statement, whose result has the `gradient`.

        It has the names of dimensions that the array has where it is made, not those of the use.
        """
        made, is_argument = self._gradients[operand.name], operand.name in self._arguments
        is_whole = self._left[operand.name] == 1 and operand.name not in self._sums
        if not is_whole:
            made = replace(made, spec=None if is_argument else _of_gradient(operand.spec))
        is_same = (operand.dims, made.dtype) == (gradient.dims, gradient.dtype)
        may_stay = made.spec in (None, gradient.spec) and not (is_whole and is_argument)
        if derivative == PASSED_ON and is_same and may_stay:
            return replace(gradient, dims=made.dims)
        if not is_whole:
            made = replace(made, name=self._numbered(made.name))
        operands = [self._taken_by(part, each, gradient) for each in derivative.takes]
        made_here = replace(made, dims=operand.dims)
        self._state("backward", derivative.function, operands, made_here, part, derivative.number)
        return made

    def _taken_by(self, part: Statement, taken: Taken, gradient: ShardedArray) -> ShardedArray:
        """The operands of a gradient's statement; `gradient` is that of the forward statement's result."""
        result = replace(part.result, spec=None)
        if taken == GRADIENT:
            return self._read(gradient)
        if taken == RESULT:
            return result
        if isinstance(taken, RowSums):
            sums = replace(part.operands[taken.place], dtype=gradient.dtype, spec=None)
            sums = replace(sums, name=self._unused(f"d{part.result.name}_sum"))
            self._state("backward", "multiply", (self._read(gradient), result), sums, part, None)
            return sums
        assert isinstance(taken, int)
        return part.operands[taken]

    def _add(self, name: str, summand: ShardedArray) -> None:
        """Add to the gradient of an array."""
        self._left[name] -= 1
        before = self._sums.get(name)
        if before is not None:
            total = self._gradients[name]
            if self._left[name]:
                total = replace(total, name=self._numbered(total.name), spec=None)
            einsum = Einsum((total.dims, total.dims), total.dims)
            both = self._read(before), self._read(summand)
            self._parts.append(Statement(einsum, both, total, "add", phase="backward", source=name))
            summand = total
        self._sums[name] = summand

    def _read(self, gradient: ShardedArray) -> ShardedArray:
        """A gradient as an operand, whose spec is that of an argument, or none."""
        return gradient if gradient.name in self._given.values() else replace(gradient, spec=None)

    def _state(
        self,
        phase: Phase,
        function: str,
        operands: Iterable[ShardedArray],
        result: ShardedArray,
        source: Statement,
        number: float | None,
    ) -> None:
        """Append a statement that differentiates a forward one, or computes it again."""
        taken = tuple(self._available(each) for each in operands)
        einsum = Einsum(tuple(each.dims for each in taken), result.dims)
        whole = tuple(dim for dim in source.whole if dim in einsum.dims)
        self._parts.append(
            Statement(
                einsum, taken, result, function, source.merged, whole, phase, number, source.result.name
            )
        )

    def _available(self, array: ShardedArray) -> ShardedArray:
        """An array as the backward pass has it: a forward result that is not kept is computed again."""
        part = self._made.get(array.name)
        if part is None or array.name in self._kept:
            return array
        if array.name not in self._recomputed:
            result = replace(part.result, name=self._unused(f"{array.name}_remat"))
            self._state("recomputed", part.function, part.operands, result, part, part.number)
            self._recomputed[array.name] = result.name
        return replace(array, name=self._recomputed[array.name])

    def _unused(self, name: str) -> str:
        """The name, or the first of ``name_1``, ``name_2``, … that no other array has."""
        return self._numbered(name) if name in self._taken else self._take(name)

    def _numbered(self, name: str) -> str:
        return self._take(next(each for n in count(1) if (each := f"{name}_{n}") not in self._taken))

    def _take(self, name: str) -> str:
        self._taken.add(name)
        return name


def _of_gradient(spec: PartitionSpec | None) -> PartitionSpec | None:
    """The spec of an array's gradient: that of a pending sum is the same on all devices of the sum."""
    return None if spec is None else PartitionSpec(spec.dims)
