"""Plans: their collectives, for which einsum, their bytes, and FLOPs against bytes."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import BYTES, COLLECTIVES, NUMBER, AnswerKind, ComputedAnswer, Sent
from shardviz.lessons.measures.subject import walk_of
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.plan import Plan

LONGER = ("multiplying", "sending", "both the same")
OPS = ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute")
"""The collectives of plans."""


def sent_by(plan: Plan) -> tuple[Sent, ...]:
    """The collectives of a plan, in order; axes of one device are left out."""
    shape = plan.problem.mesh.shape
    return tuple(
        (step.op, step.array, tuple(sorted(axis for axis in step.axes if shape[axis] > 1)))
        for step in plan.collectives
    )


def collectives(resolved: ResolvedProblem) -> ComputedAnswer:
    """The collectives of the plan, in order."""
    return COLLECTIVES.answer(sent_by(resolved.plan))


def count(resolved: ResolvedProblem, op: str) -> ComputedAnswer:
    """The number of collectives of a kind in the plan."""
    _check_op(op)
    return NUMBER.answer(sum(step.op == op for step in resolved.plan.collectives))


def case(resolved: ResolvedProblem) -> ComputedAnswer:
    """The number of the case, of four, that a matmul is."""
    match = re.fullmatch(r"case (\d)(?: over [^,]+(?:, \w+)*)?", resolved.plan.cases[0])
    if match is None or len(resolved.plan.cases) > 1 or ", case" in resolved.plan.cases[0]:
        several = "; ".join(resolved.plan.cases)
        raise QuestionError(f"this is not one case alone, but {several}", "take one einsum that is one case")
    return NUMBER.answer(int(match[1]))


def line(resolved: ResolvedProblem, op: str) -> ComputedAnswer:
    """The einsum of a chain, from 1, with the first collective of a kind: sums belong to the einsum that
    leaves them, any other collective to the einsum that uses the array next, if one does."""
    _check_op(op)
    done = 0
    for step in resolved.plan.steps:
        done += step.op == "einsum"
        if step.op == op:
            made_here = op in ("psum", "psum_scatter") or done == len(resolved.problem.parts)
            return NUMBER.answer(done if made_here else done + 1)
    raise QuestionError(f"the plan has no {op}", "ask for another operation, or another problem")


def sent(resolved: ResolvedProblem) -> ComputedAnswer:
    """The bytes that one device sends: for the form's collective those of the device that sends most, by
    its algorithm; for a plan the lower bound."""
    if resolved.collective is not None:
        return BYTES.answer(int(walk_of(resolved).timeline.device_bytes))
    return BYTES.answer(resolved.plan.wire_bytes)


def longer(resolved: ResolvedProblem, flops: str, bandwidth: str) -> ComputedAnswer:
    """The larger of a device's two times, of the FLOPs and of the bytes sent, both at so many a second: the
    two sides of the roofline, without latency."""
    work = flops_of(resolved.plan) / _per_second(flops)
    wire = resolved.plan.wire_bytes / _per_second(bandwidth)
    return _LONGER.answer(LONGER[0] if work > wire else LONGER[1] if work < wire else LONGER[2])


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


def _check_op(op: str) -> None:
    if op not in OPS:
        raise QuestionError(f"no plan has {quote(op, 30)}", closest(op, OPS))


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


_LONGER = AnswerKind(_read, str)
