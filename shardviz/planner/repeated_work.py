"""Work that a plan repeats on several devices although the specs divide it."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Statement
from shardviz.sharding.axis_parts import finest_parts, joined_parts, parts_within


@dataclass(frozen=True)
class RepeatedWork:
    """Statements, by their numbers, that devices along `axes` all compute alike, `factor` times in all."""

    factor: int
    axes: tuple[str, ...]
    parts: tuple[int, ...]


def repeated_work(plan: Plan) -> RepeatedWork | None:
    """The work that most devices repeat: of an einsum the axes that split its arrays as the problem gives
    and wants them, but none of its dimensions while the devices multiply. None where there is none."""
    found: dict[tuple[str, ...], list[int]] = {}
    for step in plan.steps:
        if step.op == "einsum":
            idle = _idle(plan, step, plan.problem.parts[step.part])
            if idle:
                found.setdefault(idle, []).append(step.part)
    if not found:
        return None
    mesh = plan.problem.mesh
    axes = max(found, key=mesh.group_size)
    return RepeatedWork(mesh.group_size(axes), joined_parts(axes, mesh.shape), tuple(found[axes]))


def _idle(plan: Plan, step: Step, part: Statement) -> tuple[str, ...]:
    """The axis parts that the specs of a statement use and its work does not."""
    mesh = plan.problem.mesh
    given = {
        axis for array in (*part.operands, part.result) if array.spec is not None for axis in array.spec.axes
    }
    used = {axis for spec in step.operand_specs if spec is not None for axis in spec.axes}
    finest = [name for own in finest_parts(mesh.shape, given | used).values() for name in own]
    divided = {name for axis in used for name in parts_within(axis, finest)}
    named = {name for axis in given for name in parts_within(axis, finest)}
    return tuple(name for name in finest if name in named - divided and mesh.axis_size(name) > 1)
