"""A step of a plan as the question that `shardviz step` would ask about it, and its cost."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shardviz.collectives.operation import Operation
from shardviz.collectives.operations import AllGather, AllToAll, PMax, PPermute, PSum, PSumScatter
from shardviz.collectives.operations.several_dims import AllToAllOfSeveral, Places, PSumScatterOfSeveral
from shardviz.errors import QuestionError, joined
from shardviz.hardware.group_links import group_links
from shardviz.hardware.machine import PlacedMesh
from shardviz.hardware.topology import Torus
from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import finest_parts, in_parts
from shardviz.stepping.question import (
    CollectiveQuestion,
    check_size,
    counted_shards,
    schedule_for_operation,
    whole,
)


def collective_steps(plan: Plan) -> list[int]:
    return [number for number, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS]


def question_of_step(
    plan: Plan, number: int, algorithm: str | None = None, placed: PlacedMesh | None = None
) -> CollectiveQuestion:
    """The collective of step `number`, from 1, on arrays of the shape and dtype that the plan has, each
    device's addend of a pending sum its own. An `algorithm` of None is the usual one; on links of a `placed`
    mesh that close to a ring, it sends both ways around, as the plan's price has it. Raises `QuestionError`
    for a step that does not exist or sends nothing."""
    step = _collective(plan, number)
    mesh = plan.problem.mesh
    check_size(mesh)
    before = _before(plan, step)
    operation = _operation(step, before, mesh)
    operation.check(before.shard_shape, step.dtype, mesh.group_size(operation.axes))
    schedule = schedule_for_operation(operation, mesh, algorithm, None)
    if algorithm is None and placed is not None and schedule.algorithm == "ring":
        size = mesh.group_size(operation.axes)
        # Of an even ring the device opposite gets half of its part from either side.
        both = schedule_for_operation(operation, mesh, "bidirectional-ring", 2 - size % 2)
        sizes = operation.chunk_sizes(before.shard_shape, size, both.chunks)
        links = group_links(placed, operation.axes, schedule.pattern.dims).topology if size > 2 else None
        # Two by two of a torus are a ring of four as well.
        is_ring = isinstance(links, Torus) and links.dims == (size,) and links.wrap == (True,)
        schedule = both if is_ring and np.all(sizes) else schedule
    if algorithm is None:
        schedule = whole(schedule, before.shard_shape)
    shards = counted_shards(before, operation)
    final = _final(step, before)
    return CollectiveQuestion(
        operation, before, str(before.spec), schedule, shards, *final, counted=shards is not None
    )


def operation_of_step(plan: Plan, number: int) -> Operation:
    """The collective of step `number`, from 1, with JAX's parameters. Raises as `question_of_step`."""
    step = _collective(plan, number)
    return _operation(step, _before(plan, step), plan.problem.mesh)


def _collective(plan: Plan, number: int) -> Step:
    collectives = collective_steps(plan)
    if not 1 <= number <= len(plan.steps):
        missing = f"step {number} does not exist: the plan has {len(plan.steps)}"
        problem = missing if number else "no step of the plan is named"
        raise QuestionError(problem, _which(plan, collectives))
    step = plan.steps[number - 1]
    if number not in collectives:
        raise QuestionError(f"step {number} is {step.op}, which sends nothing", _which(plan, collectives))
    return step


def _before(plan: Plan, step: Step) -> Layout:
    mesh = plan.problem.mesh
    array = next(array for array in plan.problem.arrays if array.name == step.array).with_spec(step.from_spec)
    if step.is_beside:  # what each device sends as a vector
        count = math.prod(step.shape) * (mesh.group_size(step.axes) if step.op == "ppermute" else 1)
        spec = PartitionSpec(((),), step.axes) if step.op == "psum_scatter" else PartitionSpec((step.axes,))
        return Layout(ShardedArray(array.name, array.dims[:1], (count,), step.dtype, spec), mesh)
    # A plan pads a dimension that does not divide, as the compiler does.
    shape = tuple(
        size * parts for size, parts in zip(array.shard_shape(mesh), step.from_spec.parts(mesh), strict=True)
    )
    return Layout(ShardedArray(array.name, array.dims, shape, step.dtype, step.from_spec), mesh)


def _final(step: Step, before: Layout) -> tuple[str, tuple[int, ...]]:
    """The spec after the step, and the holders of its parts in order: where dimension 0 alone has parts."""
    is_stacked = step.op == "all_gather" and not moved_axes(step, before.mesh).is_of_one_dim
    if step.is_beside or any(step.to_spec.dims[1:]) or step.to_spec.unreduced or is_stacked:
        return "", ()
    after = Layout(before.array.with_spec(step.to_spec), before.mesh)
    first: dict[int, int] = {}
    for position, number in enumerate(after.shards().tolist()):
        first.setdefault(number, position)
    return str(step.to_spec), tuple(position for _, position in sorted(first.items()))


def _which(plan: Plan, collectives: list[int]) -> str:
    if not collectives:
        return "this plan has no collective"
    named = [f"{collective} ({plan.steps[collective - 1].op})" for collective in collectives]
    are = "collective is step" if len(named) == 1 else "collectives are steps"
    return f"its {are} {joined(named)}"


def _operation(step: Step, before: Layout, mesh: Mesh) -> Operation:
    if step.op == "psum":
        return PSum(step.axes)
    if step.op == "pmax":
        return PMax(step.axes)
    if step.is_beside and step.op == "psum_scatter":
        return PSumScatter(step.axes, scatter_dimension=0)
    if step.is_beside:
        pairs = pairwise(range(mesh.group_size(step.axes)))
        return AllGather(step.axes, axis=0) if step.op == "all_gather" else PPermute(step.axes, tuple(pairs))
    if step.op == "ppermute":
        return PPermute(step.axes, _permutation(step, before, mesh))
    moved = moved_axes(step, mesh)
    if step.op == "all_gather":
        if moved.is_of_one_dim:
            return AllGather(step.axes, axis=_only(moved.removed))
        # The pieces stand one after the other before each device puts them together.
        return AllGather(step.axes, axis=0, tiled=False)
    sizes = tuple(map(mesh.axis_size, moved.group))
    if step.op == "psum_scatter":
        if not moved.is_of_one_dim:
            return PSumScatterOfSeveral(moved.group, sizes=sizes, split=moved.appended)
        return PSumScatter(step.axes, scatter_dimension=_only(moved.appended))
    if not moved.is_of_one_dim:
        return AllToAllOfSeveral(moved.group, sizes=sizes, split=moved.appended, joined=moved.removed)
    return AllToAll(step.axes, split_axis=_only(moved.appended), concat_axis=_only(moved.removed))


def _only(places: Places) -> int:
    return next(dim for dim, own in enumerate(places) if own)


class MovedAxes(NamedTuple):
    """The axes that a step takes from the minor end of each dimension, and those that it appends there: by
    their places in the `group`, the step's axes or the parts of them that go to different dimensions."""

    group: tuple[str, ...]
    removed: Places
    appended: Places

    @property
    def is_of_one_dim(self) -> bool:
        """JAX's own parameters say the collective: it has one dimension at most, the axes in its order."""
        everything = [tuple(range(len(self.group)))]
        return all([*filter(None, side)] in ([], everything) for side in (self.removed, self.appended))


def moved_axes(step: Step, mesh: Mesh) -> MovedAxes:
    finest = finest_parts(mesh.shape, [*step.from_spec.axes, *step.to_spec.axes, *step.axes])
    group = in_parts(step.axes, finest)
    dims = [
        (in_parts(old, finest), in_parts(new, finest))
        for old, new in zip(step.from_spec.dims, step.to_spec.dims, strict=True)
    ]

    def places(longer: tuple[str, ...], shorter: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(map(group.index, longer[len(shorter) :]))

    removed = tuple(places(old, new) for old, new in dims)
    return MovedAxes(group, removed, tuple(places(new, old) for old, new in dims))


def _permutation(step: Step, before: Layout, mesh: Mesh) -> tuple[tuple[int, int], ...]:
    """Every member of a group gets the block that it should hold, from a member that has it, itself if it
    does: in all groups the same ones, since groups differ in axes that stay."""
    after = Layout(before.array.with_spec(step.to_spec), mesh)
    group = mesh.groups(step.axes)[0]
    has = [before.block(position) for position in group]
    wants = [after.block(position) for position in group]
    senders: dict[tuple[int, ...], list[int]] = {}
    for member, block in enumerate(has):
        if wants[member] != block:
            senders.setdefault(block, []).append(member)
    return tuple(
        (member if has[member] == block else senders[block].pop(0), member)
        for member, block in enumerate(wants)
    )
