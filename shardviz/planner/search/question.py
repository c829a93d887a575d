"""The question of a search: a program, the machine, the axes of its meshes, and what is fixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Literal, get_args

from shardviz.errors import QuestionError, quote
from shardviz.hardware.machine import Machine
from shardviz.notation.program import is_program, split_layers
from shardviz.notation.spec_string import parse_named_specs
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import statement_flops
from shardviz.planner.problem.reading import problem_from_text, read_program
from shardviz.planner.problem.roles import Roles, roles_of
from shardviz.planner.problem.training import Optimizer, Remat, Training
from shardviz.planner.search.rules import COPYING, SearchAxis
from shardviz.planner.statements.contraction_order import Order, contraction_orders
from shardviz.planner.states.moves import remembered
from shardviz.planner.states.prices import lacking_words
from shardviz.planner.training import with_backward
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.array import BITS

Overlap = Literal["none", "parameters", "all"]
"""The communication that can run beside the work of its pass (`priced_plan`), and is hidden behind it as far
as that lasts: none; by default that which gathers parameters or reduces their gradients, while that of
activations stands between two statements of a layer; all, as "How to Scale Your Model" counts."""
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
Offload = Literal["any", "none", "optimizer"]
"""What lies in the host's memory between steps: the optimizer's state, or where that is "any" what the search
chooses."""
OFFLOADS: tuple[Offload, ...] = get_args(Offload)


@dataclass(frozen=True)
class SearchQuestion:
    """A program whose arrays may be split in any way, but for those that have a spec: its forward statements
    `problem`, on a mesh of the axes' names; `training` makes a train step of them, with one of `remats` if
    there are any, and Adam's `moments` in one of these dtypes where they do not fit otherwise. A train step,
    and each stage along a pipeline axis, computes `microbatches` parts of the batch one after the other, a
    stage in `interleave` runs of its layers; the search chooses what is None. What it has `chosen` is said in
    words. `unnamed` are results that the text gives no name, whose shardings a row leaves to the planner. A
    model has a `name`, and `tokens`, the sequences of a step and the tokens of each; `cached` are the arrays
    of a layer that have these tokens where it decodes. Its layers of other `kinds` share the shardings of the
    arguments that they have in common; `ends` are its embedding, logits and loss."""

    problem: Problem
    machine: Machine
    axes: tuple[SearchAxis, ...]
    training: Training | None = None
    overlap: Overlap = "parameters"
    microbatches: int | None = None
    interleave: int | None = None
    remats: tuple[Remat, ...] = ()
    moments: tuple[str, ...] = ()
    offload: Offload = "none"
    chosen: tuple[str, ...] = ()
    unnamed: frozenset[str] = frozenset()
    name: str = ""
    tokens: tuple[int, int] = (0, 0)
    cached: tuple[str, ...] = ()
    kinds: tuple[SearchQuestion, ...] = ()
    ends: SearchQuestion | None = None

    def __post_init__(self) -> None:
        if self.overlap not in OVERLAPS:
            problem = f"{quote(self.overlap)} is not an overlap policy"
            raise QuestionError(problem, f"choose one of {', '.join(OVERLAPS)}")
        if self.offload not in OFFLOADS:
            problem = f"{quote(self.offload)} cannot be offloaded"
            raise QuestionError(problem, f"choose one of {', '.join(OFFLOADS)}")
        if self.offload == "optimizer" and not self.optimizer:
            hint = "leave out --offload, or search a train step: --backward --optimizer adam"
            raise QuestionError("the state of an optimizer is offloaded, but this step has none", hint)
        if self.offload == "optimizer" and not self.machine.device.host:
            problem = f"no bandwidth to the host is published for {self.machine.chip}"
            raise QuestionError(problem, "use a --machine FILE.toml with device.host")
        for name, count in (("microbatch", self.microbatches), ("run of layers", self.interleave)):
            if count is not None and count < 1:
                problem = f"a step has at least 1 {name}, not {count}"
                raise QuestionError(problem, "leave it out, and the search chooses")
        has_stages = any(axis.kind == "pipeline" for axis in self.axes)
        if self.microbatches is not None and not (self.training or has_stages):
            raise QuestionError("microbatches are those of a train step or a pipeline", "add --backward")
        if self.interleave is not None and not has_stages:
            raise QuestionError(
                "an interleave is that of a pipeline", "add an axis: --axes pipeline,data,tensor"
            )
        if has_stages and self.problem.layers == 1:
            problem = "a pipeline needs several layers, but the program is one"
            raise QuestionError(problem, "give their number: end the program with x 32")
        if {"arithmetic", "memory traffic"} <= {*self._lacking}:
            hint = "use a --machine that has them; shardviz measure matmul,copy -o FILE.toml measures one"
            raise QuestionError(f"the compute time is unknown: {self.lacking}", hint)

    @property
    def assumes(self) -> str:
        """The assumptions of a search's seconds (`direct_moves`), in a sentence."""
        return (
            "These times assume direct resharding; explain searches for the cheapest way, and XLA may choose "
            "another."
            + " A search may divide an optimizer's work over all axes, and gathers a parameter again for "
            "rematerialization; explain does neither."
            * (self.training is not None)
            + " Offloaded optimizer state goes to the device and back once a step; hosts have room for it."
            * (self.offload != "none")
        )

    @property
    def lacking(self) -> str:
        """``no peak in f32 is published for v5e``: why a part of the work takes no time, or ""."""
        return lacking_words([*self._lacking.values()], self.machine)

    @property
    def uncounted(self) -> str:
        """The work whose time is therefore not counted: ``arithmetic and communication``."""
        return " and ".join(self._lacking)

    @property
    def _lacking(self) -> dict[str, str]:
        device, dtype, family = self.machine.device, self.problem.result.dtype, self.machine.family
        lacking = {}
        if device.flops_per_second(dtype) is None:
            lacking["arithmetic"] = f"no peak in {dtype}"
        if device.hbm_bandwidth is None:
            lacking["memory traffic"] = "no HBM bandwidth"
        if family.lacks_links:
            lacking["communication"] = f"no bandwidth of {family.link_name}"
        return lacking

    @property
    def optimizer(self) -> Optimizer | None:
        return self.training and self.training.optimizer

    @cached_property
    def by_remat(self) -> tuple[SearchQuestion, ...]:
        """The question with each of the remat policies; itself where none is to be chosen."""
        if self.training is None or not self.remats:
            return (self,)
        return tuple(
            self._with(self.training._replace(remat=remat), f"remat {remat}", remats=())
            for remat in self.remats
        )

    @remembered
    def by_state(self, copies: tuple[str, ...]) -> tuple[SearchQuestion, ...]:
        """The question, and those whose optimizer's state takes less and less of a device: sharded over
        `copies` of parameters too (ZeRO-1), with moments of other dtypes, and in the host's memory."""
        training, optimizer = self.training, self.optimizer
        if training is None or optimizer is None:
            return (self,)
        sharded = training._replace(optimizer=optimizer._replace(over=optimizer.over or copies))
        found = [self] if sharded == training else [self, self._with(sharded)]
        if self.offload == "optimizer":
            # Each device moves its own part, whether memory asks for it or not.
            found = found[-1:]
        for dtype in self.moments if optimizer.rule == "adam" else ():
            small = optimizer._replace(over=optimizer.over or copies, moments=dtype)
            found.append(self._with(training._replace(optimizer=small), f"moments {dtype}"))
        if self.offload == "any" and self.machine.device.host:
            found.append(self._with(sharded, offload="optimizer"))
        return tuple(found)

    def _with(self, training: Training, *chosen: str, **changes: Any) -> SearchQuestion:
        return replace(self, training=training, chosen=(*self.chosen, *chosen), **changes)

    @property
    def named_axes(self) -> set[str]:
        """The axes that shardings which are fixed, and the optimizer, name."""
        specs = [array.spec for array in self.problem.arrays if array.spec is not None]
        named = {axis for spec in specs for axis in (*spec.axes, *spec.unreduced)}
        return named | {*(self.optimizer.over if self.optimizer else ())}

    def example_parts(self, mesh: Mesh) -> int:
        """The parts into which the axes of a mesh split the examples."""
        return prod(mesh.axis_size(axis.name) for axis in self.axes if axis.kind in COPYING)

    def parameter_bits(self, mesh: Mesh) -> float:
        """The bits of a device for an element of its parameters, with those of its gradient and its state."""
        dtype, optimizer = self.problem.result.dtype, self.optimizer
        assert optimizer is not None
        kept = () if self.offload == "optimizer" else optimizer.state_dtypes(dtype)
        scattered = sum(BITS[one] for one in (optimizer.gradients, *kept))
        return BITS[dtype] + scattered / mesh.group_size(optimizer.over)

    @cached_property
    def offloaded(self) -> frozenset[str]:
        """The optimizer's state that lies in the host's memory."""
        is_offloaded, parameters = self.offload == "optimizer", self.roles.parameters
        return frozenset(old for old, _ in self.step.updates if is_offloaded and old not in parameters)

    @cached_property
    def step(self) -> Problem:
        """All statements of a step, with the specs that are fixed alone."""
        if self.training is None:
            return self.problem
        # The gradient of a result is given as the result is split, which is not known yet.
        names = {*self.problem.results, *(argument.name for argument in self.problem.arguments)}
        arrays = (array for array in self.problem.arrays if array.name in names)
        whole = {array.name: PartitionSpec.replicated(array.rank) for array in arrays}
        fixed = {array.name: array.spec for array in self.problem.arrays if array.spec is not None}
        return _respecified(with_backward(_respecified(self.problem, whole), self.training), fixed)

    @cached_property
    def roles(self) -> Roles:
        return roles_of(self.step)

    @cached_property
    def other_kinds(self) -> tuple[SearchQuestion, ...]:
        """Those of `kinds` in the same step."""
        return tuple(replace(kind, training=self.training, offload=self.offload) for kind in self.kinds)

    @cached_property
    def own_ends(self) -> SearchQuestion | None:
        """The `ends` in the same step; nothing of them is computed again."""
        bare = self.training and self.training._replace(remat="none")
        return self.ends and replace(self.ends, training=bare, offload=self.offload)

    @remembered
    def of_kind(self, number: int, specs: tuple[tuple[str, PartitionSpec], ...]) -> SearchQuestion:
        """Layers of another kind, by its number, with the shardings of the arguments that both have."""
        kind, own = self.other_kinds[number], {array.name: array.shape for array in self.problem.arguments}
        arguments = kind.problem.arguments
        common = {array.name for array in arguments if own.get(array.name) == array.shape}
        given = {name: spec for name, spec in specs if name in common}
        return replace(kind, problem=_respecified(kind.problem, given))

    @cached_property
    def held(self) -> dict[str, float]:
        """The copies of an array that a device keeps through the step, by name: one for each layer, but of
        what is passed on and of the results' gradients one."""
        step, roles = self.step, self.roles
        passed = step.passed_on and step.passed_on.name
        layers = float(step.layers)
        late = {operand.name for part in step.parts if part.phase != "forward" for operand in part.operands}
        copies = {}
        for argument in step.arguments:
            one = argument.name in step.shared or (argument.name == passed and argument.name not in late)
            copies[argument.name] = 1.0 if one or argument.name in roles.given else layers
        for part in step.parts:
            name = part.result.name
            is_kept = part.phase == "forward" and name in late
            is_gradient = part.phase == "backward" and roles.leader(name) in roles.parameters
            if is_kept or is_gradient:
                copies[name] = layers
        for old, new in step.updates if step.training is None else ():
            # A cache is there once, before its update and after it.
            copies[new] = copies.pop(old)
        for kind in self.other_kinds:
            for name, more in kind.held.items():
                if copies.get(name, 0.0) >= layers and self.shapes[name] == kind.shapes[name]:
                    copies[name] += more
        return copies

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {array.name: array.shape for part in self.step.parts for array in part.arrays}

    @cached_property
    def activations(self) -> list[str]:
        """The arrays that are held which each example has its own part of."""
        arrays = {array.name: array for part in self.step.parts for array in part.arrays}
        return [name for name in self.held if self.roles.examples.intersection(arrays[name].dims)]

    @cached_property
    def flops(self) -> int:
        """The operations of a step on all devices, without those that are computed again."""
        own = self.step.layers * _flops(part for part in self.step.parts if part.phase != "recomputed")
        others = (*self.other_kinds, *([self.own_ends] if self.own_ends else []))
        return own + sum(other.flops for other in others)

    def on(self, mesh: Mesh, specs: dict[str, PartitionSpec], training: Training | None) -> Problem:
        """The step on a mesh, its forward arrays split as `specs` has them, with what was chosen of a train
        step."""
        forward = replace(_respecified(self.problem, specs), mesh=mesh)
        return forward if training is None else with_backward(forward, training)


def question_from_text(
    program: str,
    machine: Machine,
    axes: tuple[SearchAxis, ...],
    *,
    sizes: str = "",
    dtype: str = "bf16",
    keep: str = "",
    training: Training | None = None,
    overlap: Overlap = "parameters",
    microbatches: int | None = None,
    interleave: int | None = None,
    remats: tuple[Remat, ...] = (),
    moments: tuple[str, ...] = (),
    offload: Offload = "none",
) -> SearchQuestion:
    """The question that a user wrote: `program` as `problem_from_text` reads it; specs that split nothing are
    open, but for those in `keep` (``W1=_ tensor,X=data _``). Raises `QuestionError`."""
    mesh = Mesh(tuple(axis.name for axis in axes), (1,) * len(axes))
    problem = _in_pairs(problem_from_text(program, mesh=mesh, sizes=sizes, dtype=dtype, ranked=True))
    specs = {
        array.name: array.spec
        for array in problem.arrays
        if array.spec and (array.spec.axes or array.spec.unreduced)
    }
    if keep:
        kept = parse_named_specs(keep, mesh.shape, {array.name: array.rank for array in problem.arrays})
        specs |= {name: spec for name, spec in kept.items() if spec is not None}
    if elsewhere := next((name for name, spec in specs.items() if spec.devices), None):
        complaint = f"{elsewhere} is on other devices, but a search uses one mesh for all arrays"
        raise QuestionError(complaint, "keep the axes that split it")
    unnamed: frozenset[str] = frozenset()
    if is_program(text := split_layers(program).text):
        made = {part.result.name for part in problem.parts}
        unnamed = frozenset(made.difference(read_program(text, {}, None).named))
    choices = training, overlap, microbatches, interleave, remats, moments, offload
    return SearchQuestion(_respecified(problem, specs), machine, axes, *choices, unnamed=unnamed)


def _flops(parts: Iterable[Statement]) -> int:
    return sum(
        statement_flops(part, [operand.shape for operand in part.operands], part.result.shape)
        for part in parts
    )


def _in_pairs(problem: Problem) -> Problem:
    """The problem with products of three operands and more in the order that takes the fewest FLOPs."""
    parts: list[Statement] = []
    names = {array.name for array in problem.arrays}
    for whole in problem.parts:
        is_wide = len(whole.operands) > 2
        cheapest: Order = min(contraction_orders(whole, names), key=_flops) if is_wide else (whole,)
        parts += cheapest
        names.update(part.result.name for part in cheapest)
    return replace(problem, parts=tuple(parts))


def _respecified(problem: Problem, specs: dict[str, PartitionSpec]) -> Problem:
    """The problem with these specs where an array is an argument or is made, and none elsewhere."""
    given = {argument.name: specs.get(argument.name) for argument in problem.arguments}
    made = {part.result.name: specs.get(part.result.name) for part in problem.parts}
    return problem.with_arrays(lambda array: array.with_spec(given.get(array.name))).with_results(made)
