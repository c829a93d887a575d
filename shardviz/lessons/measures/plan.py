"""Plans: what they compute and send, for which einsum; their seconds and bytes on a machine, what bounds
them, what overlap hides, the best mesh, what the memory is for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import SECONDS, AnswerKind, ComputedAnswer, Sent, check
from shardviz.lessons.measures.subject import resolve_once, walk_of
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.pricing.priced_plan import COMPUTE, HBM, LATENCY, PricedStep
from shardviz.planner.problem import Phase

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.costs import PlanCost

LONGER = ("multiplying", "sending", "both the same")
OPS = ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute")
"""The collectives of plans."""
PHASES: tuple[Phase, ...] = get_args(Phase)
PARTS = ("einsum", *OPS, *PHASES)
"""The steps of a plan that have a time of their own: by operation, or by phase of a train step."""
BOUNDS = ("compute", "memory", "network", "latency")
PURPOSES = ("parameters", "gradients", "optimizer", "activations")


def sent_by(plan: Plan) -> tuple[Sent, ...]:
    """The collectives of a plan, in order; axes of one device are left out."""
    shape = plan.problem.mesh.shape
    return tuple(
        (step.op, step.array, tuple(sorted(axis for axis in step.axes if shape[axis] > 1)))
        for step in plan.collectives
    )


def count(resolved: ResolvedProblem, op: str) -> int:
    check(op, OPS, "no plan has {}")
    return sum(step.op == op for step in resolved.plan.collectives)


def case(resolved: ResolvedProblem) -> int:
    """The number of the case, of four, that a matmul is."""
    match = re.fullmatch(r"case (\d)(?: over [^,]+(?:, \w+)*)?", resolved.plan.cases[0])
    if match is None or len(resolved.plan.cases) > 1 or ", case" in resolved.plan.cases[0]:
        several = "; ".join(resolved.plan.cases)
        raise QuestionError(f"this is not one case alone, but {several}", "take one einsum that is one case")
    return int(match[1])


def line(resolved: ResolvedProblem, op: str) -> int:
    """The einsum of a chain, from 1, with the first collective of a kind: sums belong to the einsum that
    leaves them, any other collective to the einsum that uses the array next, if one does."""
    check(op, OPS, "no plan has {}")
    done = 0
    for step in resolved.plan.steps:
        done += step.op == "einsum"
        if step.op == op:
            made_here = op in ("psum", "psum_scatter") or done == len(resolved.problem.parts)
            return done if made_here else done + 1
    raise QuestionError(f"the plan has no {op}", "ask for another operation, or another problem")


def sent(resolved: ResolvedProblem) -> int:
    """The bytes that one device sends: for the form's collective those of the device that sends most, by
    its algorithm; for a plan the lower bound."""
    if resolved.collective is not None:
        return int(walk_of(resolved).timeline.device_bytes)
    return resolved.plan.wire_bytes


def longer(resolved: ResolvedProblem, flops: str, bandwidth: str) -> str:
    """The larger of a device's two times, of FLOPs and of bytes sent, both at so many a second."""
    work = sum(row.flops for row in _steps_of(resolved.cost, "einsum")) / _per_second(flops)
    wire = resolved.plan.wire_bytes / _per_second(bandwidth)
    return LONGER[0] if work > wire else LONGER[1] if work < wire else LONGER[2]


def _per_second(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise QuestionError(f"{quote(text, 30)} is not a number per second", "write for example 197e12")
    return rate


def seconds(resolved: ResolvedProblem, part: str = "") -> float:
    """The time of the form's collective, by its algorithm; else of the plan in all its layers, one step after
    the other: of all its steps, or of those of an operation or a phase."""
    if resolved.collective is not None and not part:
        return walk_of(resolved).timeline.seconds
    cost = priced(resolved)
    taken = math.fsum(row.seconds or 0.0 for row in _steps_of(cost, part))
    return taken * cost.layers


def flops(resolved: ResolvedProblem, part: str = "") -> float:
    """The FLOPs of a device in all layers, or in some steps: two for each product that is added up."""
    cost = resolved.cost
    return sum(row.flops for row in _steps_of(cost, part)) * cost.layers


def _steps_of(cost: PlanCost, part: str) -> Iterator[PricedStep]:
    check(part, ("", *PARTS), "a plan has no steps {}")
    parts = cost.plan.problem.parts
    for row in cost.steps:
        if part in ("", row.step.op) or (part in PHASES and parts[row.step.part].phase == part):
            yield row


def overlapped(resolved: ResolvedProblem) -> float:
    """The longer of computing and sending, in a train step of each pass: one hides most of the other."""
    return priced(resolved).overlapped_seconds * resolved.cost.layers


def step(resolved: ResolvedProblem) -> float:
    """The time where only what parameters and their gradients send overlaps, as `search` has it."""
    return priced(resolved).step_seconds * resolved.cost.layers


def exposed(resolved: ResolvedProblem) -> float:
    """The time by which sending takes longer than computing, so that no overlap hides it."""
    return overlapped(resolved) - resolved.cost.compute_seconds * resolved.cost.layers


def bound(resolved: ResolvedProblem) -> str:
    """The bound of the plan's longest step of the longer side: `BOUNDS`."""
    own, resource = {COMPUTE: "compute", HBM: "memory", LATENCY: "latency"}, priced(resolved).bound
    return own.get(resource, "network")


def threshold(resolved: ResolvedProblem, dim: str) -> int:
    """The least size of a dimension with which every step of the plan is compute bound."""
    known = {entry.dim: entry for entry in priced(resolved).thresholds}
    check(dim, known, "dimension {} has no threshold")
    least = known[dim].least
    if least is None:
        raise QuestionError(f"the plan is not compute-bound at any size of {dim}", "take another problem")
    return least


def fastest(resolved: ResolvedProblem, *meshes: str) -> ComputedAnswer:
    """The mesh, of some, on which the plan takes the least time; a train step has its overlap."""
    if len(meshes) < 2:
        raise QuestionError("fastest compares meshes", "write for example fastest X=4,Y=2 X=2,Y=4")
    drafts = [resolve_once(replace(resolved.draft, mesh=mesh)) for mesh in meshes]
    times = [seconds(each) if each.problem.training is None else step(each) for each in drafts]
    values = [SECONDS.read(SECONDS.write(time)) for time in times]
    best = min(values)
    if values.count(best) > 1:
        raise QuestionError("several meshes take the same time", "take other meshes")
    # With axes of one device: they tell what was chosen.
    kind = AnswerKind(
        lambda text: tuple(parse_mesh(text).shape.items()),
        lambda axes: ", ".join(f"{name}={size}" for name, size in axes),
    )
    return kind.answer(kind.read(meshes[values.index(best)]))


def memory(resolved: ResolvedProblem, purpose: str) -> int:
    """Bytes of a device in a train step that serve one of `PURPOSES`."""
    check(purpose, PURPOSES, "no memory is for {}")
    training_memory = resolved.cost.training_memory
    if training_memory is None:
        raise QuestionError("only a train step has this memory", 'write backward = "yes" in the setup')
    return int(getattr(training_memory, purpose))


def priced(resolved: ResolvedProblem) -> PlanCost:
    """The plan with its cost on the problem's machine. Raises `QuestionError` where that is not known."""
    cost = resolved.cost
    if cost.unknown:
        raise QuestionError(cost.missing_figure, "take another machine, or another dtype")
    return cost
