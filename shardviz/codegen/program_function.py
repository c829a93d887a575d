"""A problem's program as Python functions: its statements, its runs as a scan, its gradients by JAX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardviz.codegen.code_literals import names_code, spec_code
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import statement_code
from shardviz.planner.problem.jax_code import dtype_code
from shardviz.sharding import PartitionSpec, ShardedArray

_REMAT = {
    "none": "{0}",
    "layer": "jax.checkpoint({0})",
    "dots": "jax.checkpoint({0}, policy=jax.checkpoint_policies.dots_saveable)",
}
"""A forward function as it is differentiated, by what its backward pass computes again."""


def stacked_names(problem: Problem) -> frozenset[str]:
    """The arrays of which each run of the program has one of its own: all but what the runs hand on."""
    if problem.layers == 1:
        return frozenset()
    gradients = dict(problem.gradients)
    passed = problem.passed_on or problem.arguments[0]
    handed_on = (passed.name, problem.forward[-1].result.name, *problem.shared)
    names = {array.name for array in problem.arrays}
    return frozenset(names.difference(handed_on, (gradients.get(name) for name in handed_on)))


def stacked(array: ShardedArray, problem: Problem) -> ShardedArray:
    """An array as the program takes or returns it."""
    if array.name not in stacked_names(problem):
        return array
    spec = None if array.spec is None else PartitionSpec(((), *array.spec.dims), array.spec.unreduced)
    return replace(array, dims=("layers", *array.dims), shape=(problem.layers, *array.shape), spec=spec)


@dataclass(frozen=True)
class ProgramFunction:
    """Writes the functions of a problem's program, the last of them called `name`. With `is_split` they have
    the shardings that the problem wants in between."""

    problem: Problem
    is_split: bool = True
    name: str = "program"

    @cached_property
    def names(self) -> dict[str, str]:
        return names_code(dict.fromkeys(array.name for array in self.problem.arrays))

    @property
    def arguments(self) -> str:
        return self._listed([array.name for array in self.problem.arguments])

    def lines(self) -> list[str]:
        if not self.problem.gradients:
            return self._forward(self.name)
        return [*self._forward("forward"), "", "", *self._train_step()]

    def _listed(self, names: Sequence[str]) -> str:
        return ", ".join(self.names[name] for name in names)

    @cached_property
    def _taken(self) -> list[str]:
        used = {operand.name for part in self.problem.forward for operand in part.operands}
        return [array.name for array in self.problem.arguments if array.name in used]

    @cached_property
    def _returned(self) -> list[str]:
        made = {part.result.name for part in self.problem.forward}
        return [array.name for array in self.problem.returned_arrays if array.name in made]

    def _forward(self, name: str) -> list[str]:
        problem = self.problem
        if problem.layers == 1:
            body = self._statements(problem.forward)
            return [f"def {name}({self._listed(self._taken)}):", *body, self._return_forward()]
        shared = [name for name in self._taken if name in problem.shared]
        handed_on = {*self._taken} - {*stacked_names(problem), *shared}
        first = next(name for name in self._taken if name in handed_on)
        others = [name for name in self._taken if name != first and name not in shared]
        *kept, last = self._returned
        own, stacks = self._packed(others), self._packed(kept)
        body = self._statements(problem.forward)
        spec = problem.forward[-1].result.spec
        if spec is not None and self.is_split and not problem.gradients:
            body.append(self._constrained(last, spec))
        unpacked = [f"    {self._listed(others)}{',' * (len(others) == 1)} = own"] if others else []
        also = f", {self._listed(shared)}" * bool(shared)
        layer = self._recomputing(f"lambda value, own: layer(value, own{also})" if shared else "layer")
        taken = f"{self.names[first]}, {own}" if others else f"{self.names[first]}, length={problem.layers}"
        return [
            f"def layer({self.names[first]}, own{also}):",
            *unpacked,
            *body,
            f"    return {self.names[last]}, {stacks}",
            "",
            "",
            f"def {name}({self._listed(self._taken)}):",
            f"    # A scan over {problem.layers} layers: every array but {first}{also} is stacked by layer.",
            f"    {self.names[last]}, {stacks if kept else '_'} = jax.lax.scan({layer}, {taken})",
            self._return_forward(),
        ]

    def _recomputing(self, name: str) -> str:
        training = self.problem.training
        return _REMAT["none" if training is None else training.remat].format(name)

    def _packed(self, names: Sequence[str]) -> str:
        return f"({self._listed(names)},)" if len(names) == 1 else f"({self._listed(names)})"

    @cached_property
    def _given(self) -> tuple[list[str], list[str]]:
        """The results of the forward pass whose gradients are given, and the others, as caches of int8."""
        gradients = dict(self.problem.gradients)
        given = [name for name in self._returned if name in gradients]
        return given, [name for name in self._returned if name not in gradients]

    def _tuple(self, names: Sequence[str]) -> str:
        """One name, or several in brackets."""
        return self._listed(names) if len(names) == 1 else f"({self._listed(names)})"

    def _return_forward(self) -> str:
        """The last line of the forward function: of a train step other results stand apart."""
        given, others = self._given
        if not (self.problem.gradients and others):
            return f"    return {self._listed(self._returned)}"
        return f"    return {self._tuple(given)}, {self._tuple(others)}"

    def _train_step(self) -> list[str]:
        """The function that has JAX differentiate the forward one, and then runs the optimizer."""
        problem = self.problem
        gradients = dict(problem.gradients)
        made = {part.result.name: part.result for part in problem.parts}
        changed = [name for name in self._taken if name in gradients]
        gradient_names = [gradients[name] for name in changed]
        targets = self._listed(gradient_names)
        given, others = self._given
        values = self._tuple([gradients[name] for name in given])
        also, aux = (f", {self._tuple(others)}", ", has_aux=True") if others else ("", "")
        forward = "forward" if problem.layers > 1 else self._recomputing("forward")
        if len(changed) < len(self._taken):
            forward = f"lambda {self._listed(changed)}: {forward}({self._listed(self._taken)})"
        lines = [
            f"def {self.name}({self.arguments}):",
            f"    {self._tuple(given)}, backward{also} = jax.vjp({forward}, {self._listed(changed)}{aux})",
            f"    {targets}{',' * (len(changed) == 1)} = backward({values})",
        ]
        dtypes = {array.name: array.dtype for array in problem.arguments}
        returned = [array.name for array in problem.returned_arrays]
        for name, gradient in zip(changed, gradient_names, strict=True):
            array, called = made[gradient], self.names[gradient]
            if array.dtype != dtypes[name]:
                lines.append(f"    {called} = {called}.astype({dtype_code(array.dtype)})")
            spec = stacked(array, problem).spec
            if spec is not None and gradient not in returned and self.is_split:
                lines.append(self._constrained(gradient, spec))
        optimizer = [part for part in problem.parts if part.phase == "optimizer"]
        return [*lines, *self._statements(optimizer), f"    return {self._listed(returned)}"]

    def _statements(self, parts: Sequence[Statement]) -> list[str]:
        lines: list[str] = []
        left = Counter(operand.name for part in parts for operand in part.operands)
        left.update(array.name for array in self.problem.returned_arrays)
        made = {array.name: array.spec for array in self.problem.arguments}
        for part in parts:
            operands = []
            for operand in part.operands:
                left[operand.name] -= 1
                called = self.names[operand.name]
                is_asked = operand.name in made and operand.spec not in (None, made[operand.name])
                if is_asked and operand.spec is not None and self.is_split:
                    if left[operand.name]:
                        called = self._constraint(called, operand.spec)
                    else:
                        lines.append(self._constrained(operand.name, operand.spec))
                operands.append(called)
            spec = made[part.result.name] = part.result.spec
            told = f"NamedSharding(mesh, {spec_code(spec)})" if self._is_explicit and spec is not None else ""
            called = statement_code(part, operands, told)
            lines.append(f"    {self.names[part.result.name]} = {called}")
            lines += self._after(part)
        return lines

    def _after(self, part: Statement) -> list[str]:
        name, spec = self.names[part.result.name], part.result.spec
        if self._is_explicit:
            is_told = spec is None or part.function == "multiply"
            asked = [] if is_told or spec is None else [self._constrained(part.result.name, spec)]
            return [*asked, f'    print("{name}:", jax.typeof({name}))']
        is_last = part is self.problem.parts[-1]
        if spec is None or is_last or not self.is_split or part.phase == "optimizer":
            return []
        return [self._constrained(part.result.name, spec)]

    @property
    def _is_explicit(self) -> bool:
        return self.problem.axis_types == "explicit" and self.is_split

    def _constrained(self, array: str, spec: PartitionSpec) -> str:
        return f"    {self.names[array]} = {self._constraint(self.names[array], spec)}"

    def _constraint(self, name: str, spec: PartitionSpec) -> str:
        call = "jax.sharding.reshard" if self._is_explicit else "jax.lax.with_sharding_constraint"
        return f"{call}({name}, NamedSharding(mesh, {spec_code(spec)}))"
