"""What takes time: multiplications against bytes on the wire, and how far messages go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answer import Answer
from shardviz.lessons.measures.kinds import NUMBER, Kind
from shardviz.lessons.measures.subject import walk_of

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.planner import Plan

LONGER = ("multiplying", "sending", "both alike")


def longer(scene: ResolvedProblem, flops: str, bandwidth: str) -> Answer:
    """What takes a device longer: its FLOPs, at so many a second, or the bytes that it sends at least, at so
    many a second: the two sides of the roofline, without latency."""
    work = flops_of(scene.plan) / _per_second(flops)
    wire = scene.plan.wire_bytes / _per_second(bandwidth)
    return _LONGER.answer(LONGER[0] if work > wire else LONGER[1] if work < wire else LONGER[2])


def hops(scene: ResolvedProblem) -> Answer:
    """How many links the message crosses that goes farthest, where every axis of a group is a ring."""
    import numpy as np

    schedule = walk_of(scene).schedule
    dims = schedule.pattern.dims
    farthest = 0
    for number in range(1, schedule.rounds + 1):
        sends = schedule.round(number)
        ends = zip(np.unravel_index(sends.src, dims), np.unravel_index(sends.dst, dims), dims, strict=True)
        crossed = sum(np.minimum((dst - src) % size, (src - dst) % size) for src, dst, size in ends)
        farthest = max(farthest, int(np.max(crossed, initial=0)))
    return NUMBER.answer(farthest)


def flops_of(plan: Plan) -> int:
    """FLOPs of each device in all einsums of a plan: two for each product that is added up."""
    problem = plan.problem
    held = {array.name: array.decided_spec for array in problem.arguments}
    size = {
        dim: extent
        for part in problem.parts
        for array in part.operands
        for dim, extent in zip(array.dims, array.shape, strict=True)
    }
    total = 0
    for step in plan.steps:
        if step.einsum is not None:
            local = dict(size)
            for name, dims in zip(step.operands, step.einsum.operands, strict=True):
                for dim, axes in zip(dims, held[name], strict=True):
                    local[dim] = min(local[dim], -(-size[dim] // problem.mesh.group_size(axes)))
            used = {dim for dims in step.einsum.operands for dim in dims}
            total += 2 * math.prod(local[dim] for dim in used)
        held[step.array] = step.to_spec
    return total


def _per_second(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise QuestionError(f"{quote(text, 30)} is not a number a second", "write for example 197e12")
    return found


def _read(text: str) -> str:
    found = text.strip().lower()
    if found not in LONGER:
        raise QuestionError(f"{quote(text, 30)} is not an answer", f"it is one of {', '.join(LONGER)}")
    return found


_LONGER = Kind(_read, str)
