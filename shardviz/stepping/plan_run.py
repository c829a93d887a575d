"""A plan run on small numbers: what every device holds before and after each step, forwards and backwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shardviz.collectives.frames import Frames
from shardviz.collectives.operations.several_dims import collected
from shardviz.collectives.values import Ints, Values, numpy_dtype
from shardviz.collectives.verification import VerificationResult
from shardviz.errors import CompilerError, QuestionError, plural
from shardviz.planner.plan import Copy, Plan, PlanCopies, Step
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import FUNCTIONS, derivatives, statement_code
from shardviz.reports.target_result import ExecutionResult
from shardviz.sharding import Layout, Mesh
from shardviz.sharding.digits import value
from shardviz.stepping.collective_run import MAX_SHOWN_DEVICES, Verdict
from shardviz.stepping.plan_step import moved_axes, question_of_step
from shardviz.stepping.question import joined, shards_of

MAX_KEPT = 64
"""Elements of the largest array, up to which a problem keeps its own sizes."""
ROUNDING = 1e-6
"""The largest difference from JAX, as a part of the largest number, that another order of additions makes."""


class HeldCopy(NamedTuple):
    """A copy of an array as the devices hold it: `values` has the shape (devices, *shard), by position."""

    layout: Layout
    values: Values


class StepRun(NamedTuple):
    number: int
    step: Step
    before: tuple[HeldCopy, ...]
    after: HeldCopy


@dataclass(frozen=True)
class PlanRun:
    """The steps of a `plan` of small arrays, in f64. Of a program that runs several times it is one run."""

    plan: Plan
    jax_call: ClassVar[str] = "run_plan"
    """The worker's name of what runs it."""

    @property
    def mesh(self) -> Mesh:
        return self.plan.problem.mesh

    @cached_property
    def copies(self) -> PlanCopies:
        return PlanCopies(self.plan)

    @property
    def is_whole(self) -> bool:
        """Every number is a whole number, so that sums are exact in any order."""
        return all(FUNCTIONS[part.function].keeps_integers for part in self.plan.problem.parts)

    @cached_property
    def whole_arguments(self) -> tuple[Values, ...]:
        """The arguments, an array for each addend of a pending sum in front."""
        problem = self.plan.problem
        first = 1 if any(FUNCTIONS[part.function].of_positive for part in problem.parts) else -3.5
        most, rows = 10 if len(problem.parts) < 3 else 5, _rows(problem)
        arguments: list[Values] = []
        for number, array in enumerate(problem.arguments):
            shape = (self.mesh.group_size(array.decided_spec.unreduced), *array.shape)
            counted = np.arange(math.prod(shape)).reshape(shape) + number
            is_counted = self.is_whole or array.name in rows
            values = counted % rows.get(array.name, most) if is_counted else (counted * 7 % 9 + first) / 4
            arguments.append(values.astype(numpy_dtype(array.dtype)))
        return tuple(arguments)

    @cached_property
    def given(self) -> tuple[HeldCopy, ...]:
        arguments = zip(map(self._layout, self.copies.given), self.whole_arguments, strict=True)
        return tuple(HeldCopy(layout, shards_of(values, layout)) for layout, values in arguments)

    @cached_property
    def steps(self) -> tuple[StepRun, ...]:
        held = dict(zip(self.copies.given, self.given, strict=True))
        runs = []
        for index, (step, made) in enumerate(zip(self.plan.steps, self.copies.made, strict=True)):
            before = tuple(held[copy] for copy in self.copies.taken[index])
            held[made] = HeldCopy(self._layout(made), self._after(index, step, before))
            runs.append(StepRun(index + 1, step, before, held[made]))
        return tuple(runs)

    @cached_property
    def results(self) -> tuple[Values, ...]:
        """The results put together, each whole; addends of a pending sum are added."""
        held = dict(zip(self.copies.given, self.given, strict=True))
        held |= {made: run.after for made, run in zip(self.copies.made, self.steps, strict=True)}
        return tuple(joined(held[copy].values, held[copy].layout) for copy in self.copies.taken[-1])

    def for_jax(self) -> tuple[Plan, tuple[Values, ...], tuple[Values, ...]]:
        """The plan, the shards of its arguments, and the whole arguments, as JAX is asked to run them."""
        whole = tuple(values.sum(axis=0, dtype=values.dtype) for values in self.whole_arguments)
        return self.plan, tuple(held.values for held in self.given), whole

    def compared(self, ran: ExecutionResult) -> Verdict:
        """A comparison with JAX's of what every device holds after each step. Raises `CompilerError`."""
        if ran.steps is None:
            raise CompilerError(ran.error, ran.hint)
        after = [step.after.values for step in self.steps]
        differ = map(self._differ, after, ran.steps)
        different = [str(number) for number, is_so in enumerate(differ, 1) if is_so]
        is_other = any(map(self._differ, self.results, ran.on_one_device))
        where = f"step {', '.join(different)}" if different else f"each of {plural(len(after), 'step')}"
        digits = ", to six digits" * (not self.is_whole)
        note = f"after {where}{digits}; the result is {'not ' * is_other}that of the program on one device"
        verdict = "different" if different or is_other else "equal"
        return Verdict(ran, VerificationResult(verdict, sum(values.size for values in after), note=note))

    def _differ(self, ours: Values, theirs: Values) -> bool:
        most = 0 if self.is_whole else ROUNDING * float(np.abs(ours).max(initial=0))
        return ours.shape != theirs.shape or not np.allclose(ours, theirs, 0, most, equal_nan=True)

    def _layout(self, copy: Copy) -> Layout:
        name, spec = copy
        return Layout(self.copies.arrays[name].with_spec(spec), self.mesh)

    def _after(self, index: int, step: Step, before: tuple[HeldCopy, ...]) -> Values:
        mesh, (layout, values) = self.mesh, before[0]
        if step.op in ("einsum", "apply"):
            return self._computed(index, before)
        if step.op == "slice":
            bounds = self._layout(self.copies.made[index]).bounds() - layout.bounds()[..., :1]
            pairs = zip(values, bounds, strict=True)
            return np.stack([shard[tuple(slice(*own) for own in bounds)] for shard, bounds in pairs])
        if step.op == "pad":
            after = self._layout(self.copies.made[index])
            padded = np.zeros((len(values), *after.shard_shape), values.dtype)
            places = layout.bounds() - after.bounds()[..., :1]
            for into, shard, bounds in zip(padded, values, places, strict=True):
                into[tuple(slice(*own) for own in bounds)] = shard
            return padded
        if step.op == "mask":
            keepers = {group[0] for group in mesh.groups(step.axes)}
            return np.stack([shard * (position in keepers) for position, shard in enumerate(values)])
        question = question_of_step(self.plan, index + 1)
        result = Frames(question.schedule, question.operation, mesh, values).after
        assert result is not None
        if result.ndim > values.ndim:  # the pieces of the group, one after the other
            sizes = tuple(map(mesh.axis_size, step.axes))
            joined = collected(values.shape[1:], moved_axes(step, mesh).removed, sizes)
            order = (0, *(dim + 1 for dim in joined.order))
            result = result.reshape(-1, *joined.grid).transpose(order).reshape(-1, *joined.shape)
        return result

    def _computed(self, index: int, before: tuple[HeldCopy, ...]) -> Values:
        """A statement, by the same code that JAX is given."""
        part = self.plan.problem.parts[self.plan.steps[index].part]
        operands = [f"operands[{number}]" for number in range(len(before))]
        code = compile(statement_code(part, operands, local=self.copies.local(index)), "<statement>", "eval")
        made = np.empty((self.mesh.size, *self.copies.shard(self.copies.made[index])))
        for position in range(self.mesh.size):
            names = {"jnp": _Numpy(), "jax": _jax(self.mesh, position)}
            made[position] = eval(code, names | {"operands": [held.values[position] for held in before]})
        return made


def small_run(plan: Plan) -> PlanRun:
    """The run of a plan, on the smallest arrays of which every device has a part, or on its own if these are
    small. Raises `QuestionError` for more devices than are looked at."""
    if plan.problem.mesh.size > MAX_SHOWN_DEVICES:
        many = f"a plan is played on up to {MAX_SHOWN_DEVICES:,} devices, and {plan.problem.mesh} has more"
        raise QuestionError(many, "use a smaller mesh, or --step N for the rounds of one collective")
    if beside := next((step for step in plan.steps if step.is_beside), None):
        what = f"{plan.problem.parts[beside.part].function} sends a part of {beside.array}"
        raise QuestionError(f"{what}, which is not played", "use --step N for the rounds of one collective")
    problem = replace(plan.problem, layers=1)
    rows = _rows(problem)
    small = problem.resized(_small_sizes(replace(plan, problem=problem))).with_arrays(
        lambda array: (
            array if array.dtype == "pred" else replace(array, dtype="s64" if array.name in rows else "f64")
        )
    )
    forward = [_within(part) for part in small.parts]
    # Gradients take the points of a mean, and the places of slices.
    numbers = {
        (part.result.name, large.function, large.number): little.number
        for part, own in zip(problem.parts, forward, strict=True)
        for large, little in zip(derivatives(part), derivatives(own), strict=False)
        if large is not None and little is not None
    }
    parts = tuple(
        replace(part, number=numbers.get((part.source, part.function, part.number), part.number))
        for part in forward
    )
    steps = tuple(replace(step, dtype="f64") for step in plan.steps)
    return PlanRun(replace(plan, problem=replace(small, parts=parts), steps=steps))


def _within(part: Statement) -> Statement:
    """A statement on smaller arrays, that takes a part of a dimension which is there."""
    if part.number is None or not FUNCTIONS[part.function].lies_within or part.phase == "backward":
        return part
    return replace(part, number=min(part.number, part.sizes[part.along] - part.sizes[part.whole[0]]))


def _rows(problem: Problem) -> dict[str, int]:
    """The arrays that are places in a table, by name, and the rows of that; of a mask one in three is 0."""
    return {array.name: 3 for array in problem.arguments if array.dtype == "pred"} | {
        part.operands[1].name: size
        for part in problem.parts
        if FUNCTIONS[part.function].selects == (1,)
        for dim, size in zip(part.einsum.operands[0], part.operands[0].shape, strict=True)
        if dim not in part.einsum.operands[1] and dim not in part.result.dims
    }


def _small_sizes(plan: Plan) -> dict[str, int]:
    """The elements of each dimension: its own of a small problem, else as few as its axes divide."""
    problem, copies = plan.problem, PlanCopies(plan)
    own = problem.sizes
    if max(array.elements for array in problem.arrays) <= MAX_KEPT:
        return own
    roots = problem.roots
    parts = dict.fromkeys(roots.values(), 1)
    for name, spec in (copy for taken in (copies.given, *copies.taken, copies.made) for copy in taken):
        for dim, count in zip(copies.arrays[name].dims, spec.parts(problem.mesh), strict=True):
            parts[roots[dim]] = math.lcm(parts[roots[dim]], count)
    sizes = {root: count if count > 1 else min(own[root], 2) for root, count in parts.items()}
    for part in problem.parts:
        function = FUNCTIONS[part.function]
        if part.function == "top_k":
            root = roots[part.whole[0]]
            sizes[root] *= -(-int(part.number or 1) // sizes[root])
        if function.lies_within and part.phase == "forward":
            root, size = roots[part.along], sizes[roots[part.whole[0]]]
            sizes[root] *= -(-size // sizes[root])
        if function.joins:
            root = roots[part.along]
            for dim in part.whole:
                sizes[roots[dim]] = math.lcm(sizes[roots[dim]], parts[root])
            sizes[root] = sum(sizes[roots[dim]] for dim in part.whole)
    every = [merge for part in problem.parts for merge in part.merged]
    for whole, factors in every * len(every):  # a factor may be a product, too
        product = math.prod(sizes[roots[factor]] for factor in factors)
        lacking = parts[roots[whole]] // math.gcd(product, parts[roots[whole]])
        sizes[roots[factors[0]]] *= lacking
        sizes[roots[whole]] = product * lacking
    return {dim: sizes[root] for dim, root in roots.items()}


class _Numpy:
    """NumPy by the names of `jax.numpy`, as far as the code of statements has them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def take(self, table: Values, places: Ints, axis: int = 0, **_: Any) -> Values:
        """The elements of an axis at some places, zeros for places outside."""
        count = table.shape[axis]
        padded = np.concatenate([table, np.zeros_like(table.take([0], axis))], axis)
        return padded.take(np.where((places >= 0) & (places < count), places, count), axis)

    def zeros(self, shape: tuple[int, ...], _dtype: Any) -> Any:
        return _Zeros(shape)


class _Zeros:
    """``zeros.at[places].add(values)``, which drops what is outside."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._made, self.at = np.zeros((shape[0] + 1, *shape[1:])), self

    def __getitem__(self, places: Ints) -> _Zeros:
        self._places = np.where((places >= 0) & (places < len(self._made) - 1), places, -1)
        return self

    def add(self, values: Values, **_: Any) -> Values:
        np.add.at(self._made, self._places, values)
        return self._made[:-1]


def _jax(mesh: Mesh, place: int) -> Any:
    """The functions of JAX that the code of statements has, on the device at a place of the mesh."""
    nn = SimpleNamespace(
        sigmoid=_sigmoid,
        silu=lambda x: x * _sigmoid(x),
        gelu=lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        relu=lambda x: np.maximum(x, 0),
        logsumexp=lambda x, axis: np.log(np.exp(x).sum(axis=axis)),
        softmax=lambda x, axis: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True),
        one_hot=lambda x, count, dtype=float: (x[..., None] == np.arange(count)).astype(dtype),
    )
    lax = SimpleNamespace(
        axis_index=lambda axes: value(map(mesh.digit, axes), place),
        rsqrt=lambda x: 1 / np.sqrt(x),
        stop_gradient=lambda x: x,
        dynamic_update_slice_in_dim=_updated,
        # Of equal elements the first.
        top_k=lambda x, count: (None, np.argsort(-x, axis=-1, kind="stable")[..., :count]),
        associative_scan=_scan,
        scan=_loop,
    )
    return SimpleNamespace(nn=nn, lax=lax, vjp=_vjp)


def _scan(join: Callable[..., Any], arrays: Sequence[Values], axis: int) -> tuple[Values, ...]:
    """`jax.lax.associative_scan`, one position after the other."""
    places = list(zip(*(np.moveaxis(array, axis, 0) for array in arrays), strict=True))
    made = np.array(list(accumulate(places, join)))
    return tuple(np.moveaxis(made[:, number], 0, axis) for number in range(len(arrays)))


def _loop(step: Callable[..., Any], state: Values, arrays: Sequence[Values]) -> tuple[Values, Values]:
    """`jax.lax.scan`."""
    made = []
    for at in zip(*arrays, strict=True):
        state, result = step(state, at)
        made.append(result)
    return state, np.array(made)


def _updated(array: Values, rows: Values, start: int, axis: int) -> Values:
    made = np.moveaxis(array.copy(), axis, 0)
    made[start : start + rows.shape[axis]] = np.moveaxis(rows, axis, 0)
    return np.moveaxis(made, 0, axis)


def _sigmoid(x: Values) -> Any:
    return 1 / (1 + np.exp(-x))


def _vjp(function: Callable[[Values], Values], x: Values, step: float = 1e-5) -> tuple[None, Any]:
    """`jax.vjp` by differences: gradients are good to about ten digits."""

    def gradient(given: Values) -> list[Values]:
        grad = np.zeros_like(x)
        for index in np.ndindex(x.shape):
            beside = np.zeros_like(x)
            beside[index] = step
            grad[index] = ((function(x + beside) - function(x - beside)) * given).sum() / (2 * step)
        return [grad]

    return None, gradient
