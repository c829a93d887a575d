"""Problems and their plans with what they cost; rankings, costs over sizes, and searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import KINDS, Beside, Document, late, one_of

if TYPE_CHECKING:
    from shardviz.models.serving import ServedMesh
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.priced_plan import PricedPlan
    from shardviz.planner.ranking import Candidate
    from shardviz.planner.search.mesh_ranking import MeshRanking
    from shardviz.reports.trials import CompiledSharding

PHASES = ("forward", "recomputed", "backward", "optimizer")


def ranking_document(candidates: Sequence[Candidate]) -> Document:
    """Every candidate of a ranking, in order."""
    first = candidates[0].plan.problem if candidates else None
    einsum, mesh = (first.text, first.mesh) if first else ("", None)
    return KINDS["ranking"].document(einsum=einsum, mesh=mesh, candidates=candidates)


def search_document(
    answer: MeshRanking, compiled: Sequence[CompiledSharding] | None = None, served: Sequence[ServedMesh] = ()
) -> Document:
    """All meshes with their figures, those `compiled`, and those `served` with whole models."""
    rows = None
    if compiled is not None:
        rows = [Beside(sharding, row=answer.found.index(sharding.found) + 1) for sharding in compiled]
    return KINDS["search"].document(answer, compiled=rows, served=served)


def _found(answer: MeshRanking) -> Iterator[Beside]:
    from shardviz.planner.search.meshes import with_order

    for sharding in answer.found:
        time, is_known = sharding.time, not sharding.lacks_links
        optimizer = sharding.optimizer
        yield Beside(
            sharding,
            problem_mesh=with_order(answer.question.machine, sharding.mesh),
            communication=[(axes, seconds if is_known else None) for axes, seconds in time.communication],
            exposed=time.exposed if is_known else None,
            utilisation=sharding.utilisation if is_known else None,
            remat=sharding.training.remat if sharding.training and answer.question.remats else None,
            over=optimizer.over if optimizer else (),
            moments=optimizer.moments if optimizer and optimizer.rule == "adam" else None,
            microbatches=None if sharding.stage is None else sharding.stage.microbatches,
            interleave=None if sharding.stage is None else sharding.stage.interleave,
        )


def _arrays(plan: Plan) -> Iterator[Beside]:
    """Arguments, intermediates of a chain, and the result, each once; `asked_spec` is what was asked."""
    from shardviz.planner.plan import decided_parts

    problem, parts = plan.problem, decided_parts(plan)
    asked = {array.name: array.spec for array in problem.arrays if array.spec is not None}
    listed: set[str] = set()
    for index, (operands, result) in enumerate(parts):
        last = "result" if index == len(parts) - 1 else "intermediate"
        for array, role in [*((operand, "operand") for operand in operands), (result, last)]:
            if array.name not in listed:
                listed.add(array.name)
                yield Beside(array, role=role, mesh=problem.mesh, asked_spec=asked.get(array.name))


def _unsaid(cost: PricedPlan) -> set[tuple[str, ...]]:
    """The axes of collectives that take nobody knows how long."""
    return {step.step.axes for step in cost.unknown if step.is_collective}


_notices, _plan = late("shardviz.planner.problem", "notices"), late("shardviz.planner.planner", "plan")
TYPES = {"phase": lambda: one_of(PHASES)}
SOURCES = {
    "notices": lambda plan: _notices(plan.problem),
    "arrays": _arrays,
    "training": lambda plan: plan.problem if plan.problem.training else None,
    "optimizer": lambda problem: str(problem.training.optimizer or ""),
    "steps": lambda plan: [Beside(step, phase=plan.problem.parts[step.part].phase) for step in plan.steps],
    "repeated_work": late("shardviz.planner.plan", "repeated_work"),
    "steps_of_unknown_time": lambda cost: [
        number for number, step in enumerate(cost.steps, 1) if step.bound == "unknown"
    ],
    "communication_seconds": lambda cost: None if _unsaid(cost) else cost.communication_seconds,
    "communication_by_axes": lambda cost: [
        (axes, None if axes in _unsaid(cost) else seconds)
        for axes, seconds in cost.communication_by_axes.items()
    ],
    "peak_memory_step": lambda cost: cost.steps.index(cost.peak_step) + 1,
    "itself": lambda cost: cost,
    "overlapped_seconds": lambda cost: cost.overlapped_seconds * cost.layers,
    "step_seconds": lambda cost: cost.step_seconds * cost.layers,
    "flops": lambda cost: cost.flops * cost.layers,
    "wire_bytes": lambda cost: cost.wire_bytes * cost.layers,
    "candidate_arrays": lambda candidate: _arrays(candidate.plan),
    "problem": lambda sweep: _plan(sweep.problem),
    "points": lambda sweep: zip(sweep.sizes, sweep.costs, strict=True),
    "longer": lambda crossing: "compute" if crossing.compute_grows else "communication",
    "found": _found,
    "is_train_step": lambda answer: answer.question.training is not None,
}
