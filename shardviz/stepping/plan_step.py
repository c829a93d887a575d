"""A step of a plan as the question that `shardviz step` would ask about it, and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.collectives.operations import AllGather, AllToAll, PMax, PPermute, PSum, PSumScatter
from shardviz.errors import QuestionError
from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.sharding import Layout, ShardedArray
from shardviz.sharding.axis_parts import finest_parts, parts_within
from shardviz.stepping.question import (
    CollectiveQuestion,
    check_size,
    counted_shards,
    schedule_for_operation,
    whole,
)

if TYPE_CHECKING:
    from shardviz.collectives import Operation
    from shardviz.sharding import Mesh


def collective_steps(plan: Plan) -> list[int]:
    """The numbers, from 1, of the steps that send anything."""
    return [number for number, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS]


def question_of_step(plan: Plan, number: int, algorithm: str | None = None) -> CollectiveQuestion:
    """The collective of step `number`, from 1, on arrays of the shape and dtype that the plan has.

    Each device's addend of a pending sum is its own. An `algorithm` of None is the usual one. Raises
    `QuestionError` for a step that does not exist or sends nothing.
    """
    step = _collective(plan, number)
    mesh = plan.problem.mesh
    check_size(mesh)
    before = _before(plan, step)
    operation = _operation(step, before)
    operation.check(before.shard_shape, step.dtype, mesh.group_size(step.axes))
    schedule = schedule_for_operation(operation, mesh, algorithm, None)
    if algorithm is None:
        schedule = whole(schedule, before.shard_shape)
    shards = counted_shards(before, operation)
    final = _final(step, before)
    counted = shards is not None
    return CollectiveQuestion(
        operation, before, str(step.from_spec), schedule, shards, *final, counted=counted
    )


def operation_of_step(plan: Plan, number: int) -> Operation:
    """The collective of step `number`, from 1, with JAX's parameters. Raises as `question_of_step`."""
    step = _collective(plan, number)
    return _operation(step, _before(plan, step))


@dataclass(frozen=True)
class StepCost:
    """Rounds, and the bytes that the device which sends most sends over all of them: by `algorithm`, and at
    least (`shardviz.collectives.lower_bound`)."""

    algorithm: str
    rounds: int
    wire_bytes: int
    least_rounds: int
    least_wire_bytes: int


def step_cost(plan: Plan, number: int) -> StepCost:
    """The cost of step `number`, from 1. Raises `QuestionError` for a local step and one too large."""
    from shardviz.hardware.machine import assumed_machine
    from shardviz.hardware.mesh_placement import place_mesh
    from shardviz.stepping.collective_run import run_on

    step = plan.steps[number - 1]
    if step.op == "ppermute":
        # Each device has one message; who sends to whom takes long to find on a large mesh.
        return StepCost("direct", 1, step.wire_bytes, 1, step.wire_bytes)
    question = question_of_step(plan, number)
    schedule = question.schedule
    # What is sent does not depend on the links.
    run = run_on(question, place_mesh(assumed_machine(), plan.problem.mesh))
    sent, bound = run.timeline.device_bytes, run.bound
    return StepCost(schedule.algorithm, schedule.rounds, sent, bound.rounds, bound.wire_bytes)


def _collective(plan: Plan, number: int) -> Step:
    """The step with that number, which sends something."""
    collectives = collective_steps(plan)
    if not 1 <= number <= len(plan.steps):
        raise QuestionError(
            f"the plan has no step {number}: it has {len(plan.steps)}", _which(plan, collectives)
        )
    step = plan.steps[number - 1]
    if number not in collectives:
        raise QuestionError(f"step {number} is {step.op}, which sends nothing", _which(plan, collectives))
    if step.from_spec.devices:
        raise QuestionError(
            f"step {number} brings {step.array} from another order of the devices, and no collective "
            "of the mesh does that",
            "jax.device_put does it; its bytes and its time are in the plan",
        )
    return step


def _before(plan: Plan, step: Step) -> Layout:
    """The layout of the array before the step."""
    mesh = plan.problem.mesh
    array = next(
        array
        for part in plan.problem.parts
        for array in (*part.operands, part.result)
        if array.name == step.array
    ).with_spec(step.from_spec)
    # A plan pads a dimension that does not divide, as the compiler does.
    shape = tuple(
        size * parts for size, parts in zip(array.shard_shape(mesh), step.from_spec.parts(mesh), strict=True)
    )
    return Layout(ShardedArray(array.name, array.dims, shape, step.dtype, step.from_spec), mesh)


def _final(step: Step, before: Layout) -> tuple[str, tuple[int, ...]]:
    """The spec after the step, and the holders of its parts in order: where dimension 0 alone has parts."""
    is_stacked = step.op == "all_gather" and not _ends(step, before.mesh).is_of_one_dim
    if any(step.to_spec.dims[1:]) or step.to_spec.unreduced or is_stacked:
        return "", ()
    after = Layout(before.array.with_spec(step.to_spec), before.mesh)
    first: dict[int, int] = {}
    for position, number in enumerate(after.shards().tolist()):
        first.setdefault(number, position)
    return str(step.to_spec), tuple(position for _, position in sorted(first.items()))


def _which(plan: Plan, collectives: list[int]) -> str:
    if not collectives:
        return "this plan has no collective"
    named = [f"{place} ({plan.steps[place - 1].op})" for place in collectives]
    if len(named) == 1:
        return f"its collective is step {named[0]}"
    return f"its collectives are steps {', '.join(named[:-1])} and {named[-1]}"


def _operation(step: Step, before: Layout) -> Operation:
    if step.op == "psum":
        return PSum(step.axes)
    if step.op == "pmax":
        return PMax(step.axes)
    if step.op == "ppermute":
        return PPermute(step.axes, _permutation(step, before))
    ends = _ends(step, before.mesh)
    if step.op == "all_gather":
        if ends.is_of_one_dim:
            return AllGather(step.axes, axis=ends.removed_from[0])
        # The pieces stand one after the other before each device puts them together.
        return AllGather(step.axes, axis=0, tiled=False)
    if not ends.is_of_one_dim:
        raise QuestionError(
            f"{step.op} of {step.array} moves axes between several dimensions at once and has no rounds to "
            "step through",
            "its bytes and its time are in the plan",
        )
    if step.op == "psum_scatter":
        return PSumScatter(step.axes, scatter_dimension=ends.appended_to[0])
    return AllToAll(step.axes, split_axis=ends.appended_to[0], concat_axis=ends.removed_from[0])


@dataclass(frozen=True)
class _Ends:
    """The dimensions that a step takes axes from, and those that it appends axes to.

    `is_of_one_dim`: one of each at most, with the axes in the order of the groups, so that JAX's own
    parameters say the collective.
    """

    removed_from: tuple[int, ...]
    appended_to: tuple[int, ...]
    is_of_one_dim: bool


def _ends(step: Step, mesh: Mesh) -> _Ends:
    named = [*step.from_spec.axes, *step.to_spec.axes, *step.axes]
    finest = [part for parts in finest_parts(mesh.shape, named).values() for part in parts]

    def in_parts(axes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(part for axis in axes for part in parts_within(axis, finest))

    dims = [tuple(map(in_parts, pair)) for pair in zip(step.from_spec.dims, step.to_spec.dims, strict=True)]
    removed = {dim: old[len(new) :] for dim, (old, new) in enumerate(dims) if len(old) > len(new)}
    appended = {dim: new[len(old) :] for dim, (old, new) in enumerate(dims) if len(new) > len(old)}
    group = in_parts(step.axes)
    is_of_one_dim = all([*side.values()] in ([], [group]) for side in (removed, appended))
    return _Ends(tuple(removed), tuple(appended), is_of_one_dim)


def _permutation(step: Step, before: Layout) -> tuple[tuple[int, int], ...]:
    """Every member of a group gets the block that it should hold, from a member that has it: in all groups
    the same ones, since groups differ in axes that stay."""
    mesh = before.mesh
    after = Layout(before.array.with_spec(step.to_spec), mesh)
    group = mesh.groups(step.axes)[0]
    senders: dict[tuple[int, ...], list[int]] = {}
    for member, position in enumerate(group):
        senders.setdefault(before.block(position), []).append(member)
    return tuple((senders[after.block(position)].pop(0), member) for member, position in enumerate(group))
