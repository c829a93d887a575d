"""Plan against compiler: where they differ, and why. `rules.py` lists the causes."""

from __future__ import annotations

from collections.abc import Sequence

from shardviz.compare import execution_rules
from shardviz.compare.comparison import Comparison
from shardviz.compare.comparison import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.compare.rules import explain
from shardviz.compare.transfer import compiled, planned, taken_apart
from shardviz.hlo import Collective, CollectiveMatmul
from shardviz.planner import Plan
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import PartitionSpec

__all__ = ["AS_PLANNED", "SAME_TRAFFIC", "Difference", "compare", "differences"]


def differences(plan: Plan, answer: TargetResult) -> tuple[Difference, ...]:
    """Where an answer differs from the plan; nothing where there is no answer."""
    if answer.status != "ok":
        return ()
    return compare(
        plan,
        answer.target,
        answer.collectives,
        answer.result_spec,
        answer.collective_matmuls,
        answer.partitioned,
    )


def compare(
    plan: Plan,
    target: str,
    collectives: Sequence[Collective],
    result_spec: PartitionSpec | None,
    collective_matmuls: Sequence[CollectiveMatmul] = (),
    partitioned: Sequence[Collective] | None = None,
) -> tuple[Difference, ...]:
    """Every difference between the plan and what a target inserted, most specific explanation first.

    `result_spec` is the sharding that the target gave the result, if known. The permutes of
    `collective_matmuls` are among the `collectives`. `partitioned` are those right after partitioning.
    """
    ours = planned(plan)
    combined: list[Collective] = []
    if not plan.problem.is_chain:
        collectives, combined = taken_apart(collectives, partitioned)
    answered = compiled(collectives, plan.problem, collective_matmuls)
    slices = [one for one in answered if one.op == "slice"]
    theirs = [one for one in answered if one.op != "slice"]
    parts = {name for matmul in collective_matmuls for name in matmul.permutes}
    scheduled = [one for one in collectives if one.name not in parts]
    comparison = Comparison(plan, target, ours, theirs, slices, result_spec, scheduled, partitioned)
    for each in combined:
        execution_rules.carries_together(comparison, each)
    explain(comparison)
    return tuple(comparison.found)
