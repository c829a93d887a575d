"""Plans written down move by move: what is compared must not depend on how well the planner plans."""

from __future__ import annotations

from shardviz.compare import Difference, differences
from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Problem
from shardviz.planner.states.moves import wire_bytes_of
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import PartitionSpec, array_bytes


def by_hand(problem: Problem, *moves: str) -> Plan:
    """``by_hand(problem, "all_gather A X,Y 24,48")``: JAX's name, the array, axes, the larger shape."""
    steps = []
    for move in moves:
        op, array, axes, sizes = move.split()
        shape = tuple(map(int, sizes.split(",")))
        nothing = PartitionSpec.replicated(len(shape))
        dtype = problem.result.dtype
        size = array_bytes(shape, dtype)
        sent = wire_bytes_of(op, size, problem.mesh.group_size(axes.split(",")))
        steps.append(
            Step(op, array, tuple(axes.split(",")), None, nothing, nothing, shape, dtype, size, sent, "")
        )
    result = problem.result.spec or PartitionSpec.replicated(problem.result.rank)
    return Plan(problem, tuple(steps), result, ("",) * len(problem.parts))


def compare(plan: Plan, target: str, collectives, spec, **more) -> tuple[Difference, ...]:
    """The differences from an answer with these collectives, and this sharding of the result."""
    return differences(plan, TargetResult(target, "ok", tuple(collectives), spec, **more))
