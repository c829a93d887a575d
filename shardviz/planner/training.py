"""The train step of a program: reverse-mode differentiation, statement by statement, then the optimizer.

In ``Y = f(A, B)`` the gradient of A is that of Y, times the derivative of f by A, summed over the dimensions
that A lacks and repeated along those that Y lacks: one more statement, over the same dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from shardviz.errors import QuestionError, quote
from shardviz.notation.einsum import Einsum
from shardviz.planner.planner import plan
from shardviz.planner.problem import Phase, Problem, Statement, is_floating, unused_name
from shardviz.planner.problem.functions import (
    FUNCTIONS,
    GRADIENT,
    PASSED_ON,
    ROW_SUMS,
    Derivative,
    Taken,
    derivatives,
    is_matmul,
)
from shardviz.planner.problem.training import Optimizer, Training
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray


def with_backward(problem: Problem, training: Training) -> Problem:
    """The train step of a forward problem: its statements, then those of the gradients and the optimizer. The
    gradient of each result is an argument, split as the result. All arguments of floating point that are not
    frozen have gradients: those of `Problem.parameters` are the optimizer's, all others are returned, split
    as their arguments. A constraint on an intermediate holds for its gradient too. An open last result is
    split as the first argument in a stack of layers, else as the forward plan leaves it. Raises
    `QuestionError` where another result's sharding is open, where no result depends on an argument that has
    a gradient, and for frozen arrays that are not arguments."""
    arguments = [argument.name for argument in problem.arguments]
    if unknown := next((name for name in training.frozen if name not in arguments), None):
        hint = f"the arguments are {', '.join(arguments)}"
        raise QuestionError(f"{quote(unknown, 30)} is frozen, but is not an argument", hint)
    if (passed := problem.passed_on) and passed.name in training.frozen:
        hint = f"leave {passed.name} out of the frozen arrays"
        raise QuestionError(f"{passed.name} passes through the layers, which need its gradient", hint)
    last, first = problem.result, problem.arguments[0]
    if last.spec is None:
        is_stack = problem.layers > 1 and first.shape == last.shape
        spec = first.spec if is_stack else plan(problem).result_spec
        problem = problem.with_results({last.name: spec})
    return _Backward(problem, training).problem()


def _derived(part: Statement) -> list[tuple[ShardedArray, Derivative]]:
    pairs = zip(part.operands, derivatives(part), strict=True)
    return [(operand, derivative) for operand, derivative in pairs if derivative is not None]


def _uses(problem: Problem, frozen: Collection[str]) -> Counter[str]:
    """By the name of each array that has a gradient, how many summands that has."""
    derived = {array.name for array in problem.arguments if is_floating(array) and array.name not in frozen}
    for part in problem.parts:
        is_differentiable = is_floating(part.result)
        if FUNCTIONS[part.function].decodes and any(operand.name in derived for operand in part.operands):
            hint = "leave out --backward; linear_attention and delta_rule take whole sequences"
            raise QuestionError(f"{part.function} has no gradient: it is of a step that decodes", hint)
        if is_differentiable and any(operand.name in derived for operand, _ in _derived(part)):
            derived.add(part.result.name)
    uses = Counter(name for name in problem.results if name in derived)
    for part in reversed(problem.parts):
        if uses[part.result.name]:
            uses.update(operand.name for operand, _ in _derived(part) if operand.name in derived)
    return uses


class _Backward:
    """Makes the statements after the forward pass, from its last statement to its first. A gradient is added
    up use by use: `_sums` has what is found of it, `_left` counts the summands that are still to come, and
    `_gradients` are the arrays that they will be in the end."""

    def __init__(self, problem: Problem, training: Training) -> None:
        self._problem, self._training = problem, training
        self._arguments = {argument.name: argument for argument in problem.arguments}
        self._made = {part.result.name: part for part in problem.parts}
        self._taken = {*self._arguments, *self._made}
        self._trained = () if training.optimizer is None else problem.parameters
        # What the backward pass need not compute again.
        kept = [part for part in problem.parts if training.remat == "none" or is_matmul(part)]
        self._kept = {*problem.results, *(part.result.name for part in kept if training.remat != "layer")}
        self._left = _uses(problem, {*training.frozen, *problem.shared})
        arrays = (*self._arguments.values(), *(part.result for part in problem.parts))
        self._gradients = {array.name: self._gradient(array) for array in arrays if self._left[array.name]}
        self._given: dict[str, str] = {}
        self._sums: dict[str, ShardedArray] = {}
        self._recomputed: dict[str, str] = {}
        self._parts: list[Statement] = []

    def problem(self) -> Problem:
        for name in self._problem.results:
            if name in self._gradients:
                # The gradient of a result, or the first summand of it, is an argument.
                given = self._gradients[name]
                if given.spec is None:
                    problem = f"the sharding of {name} is open, but its given gradient has the same sharding"
                    raise QuestionError(problem, f"give {name} a spec")
                if self._left[name] > 1:
                    given = replace(given, name=self._unused(f"{given.name}_given"))
                self._given[name] = given.name
                self._add(name, given)
        for part in reversed(self._problem.parts):
            if (gradient := self._sums.get(part.result.name)) is not None:
                for operand, derivative in _derived(part):
                    if operand.name in self._gradients:
                        self._add(operand.name, self._summand(part, operand, derivative, gradient))
        made = {name: self._sums[name] for name in self._arguments if name in self._sums}
        if not made:
            which = "that is not frozen" if self._training.frozen else "of floating point"
            problem = f"no result of {quote(self._problem.text)} depends on an argument {which}"
            raise QuestionError(problem, "leave out --backward")
        optimizer, updates = self._training.optimizer, dict[str, Statement]()
        for name, gradient in made.items():
            if optimizer is not None and name in self._trained:
                updates |= self._updates(self._arguments[name], gradient, optimizer)
        gradients = [gradient.name for name, gradient in made.items() if name not in self._trained]
        news = [part.result.name for part in updates.values()]
        return replace(
            self._problem,
            parts=(*self._problem.parts, *self._parts, *updates.values()),
            returned=(*self._problem.results, *gradients, *news),
            training=self._training,
            gradients=tuple((self._given | {name: array.name for name, array in made.items()}).items()),
            updates=tuple(zip(updates, news, strict=True)),
        )

    def _updates(
        self, parameter: ShardedArray, gradient: ShardedArray, optimizer: Optimizer
    ) -> dict[str, Statement]:
        """A parameter's update, by the argument that each statement replaces. The rate is a constant, and
        with it the correction of the bias of Adam's moments."""
        spec = state_spec(parameter, optimizer.over, self._problem.mesh)
        updates: dict[str, Statement] = {}

        def state(name: str, dtype: str) -> ShardedArray:
            return replace(parameter, name=self._unused(f"{parameter.name}_{name}"), dtype=dtype, spec=spec)

        def update(old: ShardedArray, function: str, *operands: ShardedArray) -> ShardedArray:
            new = replace(old, name=self._unused(f"{old.name}_new"))
            einsum = Einsum((old.dims,) * len(operands), old.dims)
            updates[old.name] = Statement(
                einsum, operands, new, function, phase="optimizer", source=parameter.name
            )
            return new.with_spec(None)

        master = parameter
        if optimizer.master and optimizer.master != parameter.dtype:
            master = state("master", optimizer.master)
        gradient = gradient.with_spec(None)
        if optimizer.rule == "adam":
            mean, square = state("mean", optimizer.moments), state("square", optimizer.moments)
            new_mean = update(mean, "adam_mean", mean, gradient)
            new_square = update(square, "adam_square", square, gradient)
            updated = update(master, "adam_update", master, new_mean, new_square)
        else:
            updated = update(master, "sgd_update", master, gradient)
        if master is not parameter:
            update(parameter, "convert", updated)
        return updates

    def _gradient(self, array: ShardedArray) -> ShardedArray:
        """The gradient of an array; a parameter's is the optimizer's to split where that splits its state."""
        optimizer = self._training.optimizer
        dtype, spec = array.dtype, _of_gradient(array.spec)
        if optimizer is not None and array.name in self._trained:
            dtype, spec = optimizer.gradients, None if optimizer.over else spec
        return replace(array, name=self._unused(f"d{array.name}"), dtype=dtype, spec=spec)

    def _summand(
        self, part: Statement, operand: ShardedArray, derivative: Derivative, gradient: ShardedArray
    ) -> ShardedArray:
        """The gradient of an operand by its use in one statement, in the dimensions where it is made."""
        made, is_argument = self._gradients[operand.name], operand.name in self._arguments
        is_whole = self._left[operand.name] == 1 and operand.name not in self._sums
        if not is_whole:
            made = replace(made, spec=None if is_argument else _of_gradient(operand.spec))
        is_same = (operand.dims, made.dtype) == (gradient.dims, gradient.dtype)
        may_stay = made.spec in (None, gradient.spec) and not (is_whole and is_argument)
        if derivative == PASSED_ON and is_same and may_stay:
            return replace(gradient, dims=made.dims)
        if not is_whole:
            made = replace(made, name=self._unused(made.name))
        operands = [self._taken_by(part, taken, gradient) for taken in derivative.takes]
        made_here = replace(made, dims=operand.dims)
        self._state("backward", derivative.function, operands, made_here, part, derivative.number)
        return made

    def _taken_by(self, part: Statement, taken: Taken, gradient: ShardedArray) -> ShardedArray:
        """The operands of a gradient's statement; `gradient` is that of the forward statement's result."""
        result = replace(part.result, spec=None)
        if taken == GRADIENT:
            return self._read(gradient)
        if taken == ROW_SUMS:
            name = self._unused(f"d{part.result.name}_sum")
            sums = replace(part.operands[1], name=name, dtype=gradient.dtype, spec=None)
            self._state("backward", "multiply", (self._read(gradient), result), sums, part)
            return sums
        return part.operands[taken] if isinstance(taken, int) else result

    def _add(self, name: str, summand: ShardedArray) -> None:
        self._left[name] -= 1
        before = self._sums.get(name)
        if before is not None:
            total = self._gradients[name]
            if self._left[name]:
                total = replace(total, name=self._unused(total.name), spec=None)
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
        number: float | None = None,
    ) -> None:
        """Add a statement; without a `number` of its own it has that of its `source`."""
        taken = tuple(self._available(operand) for operand in operands)
        einsum = Einsum(tuple(array.dims for array in taken), result.dims)
        whole = tuple(dim for dim in source.whole if dim in einsum.dims)
        number = source.number if number is None else number
        own = (function, source.merged, whole, phase, number, source.result.name, source.along, source.limit)
        self._parts.append(Statement(einsum, taken, result, *own))

    def _available(self, array: ShardedArray) -> ShardedArray:
        """An array as the backward pass has it: a forward result that is not kept is computed again."""
        part = self._made.get(array.name)
        if part is None or array.name in self._kept:
            return array
        if array.name not in self._recomputed:
            result = replace(part.result, name=self._unused(f"{array.name}_remat"))
            self._state("recomputed", part.function, part.operands, result, part)
            self._recomputed[array.name] = result.name
        return replace(array, name=self._recomputed[array.name])

    def _unused(self, name: str) -> str:
        return unused_name(name, self._taken, 1)


def _of_gradient(spec: PartitionSpec | None) -> PartitionSpec | None:
    """The spec of an array's gradient: that of a pending sum is the same on all devices of the sum."""
    return None if spec is None else PartitionSpec(spec.dims)


def state_spec(parameter: ShardedArray, over: tuple[str, ...], mesh: Mesh) -> PartitionSpec:
    """The parameter's spec with the axes `over` that it does not use, each on the first dimension that then
    still divides; an axis that divides none is left out."""
    spec = PartitionSpec(parameter.decided_spec.dims)
    for axis in over:
        if axis in spec.axes:
            continue
        for dim, size in enumerate(parameter.shape):
            axes = (*spec.dims[dim], axis)
            if size % mesh.group_size(axes) == 0:
                spec = PartitionSpec((*spec.dims[:dim], axes, *spec.dims[dim + 1 :]))
                break
    return spec
