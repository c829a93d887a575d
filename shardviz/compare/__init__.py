"""Plan against compiler: where they differ, and why. Of both sides' transfers equal ones are struck out; what
is left is explained by one rule after another, each striking out what it explains, from the most specific to
the plainest, in the order of `CAUSES`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardviz.compare import answer_rules, array_rules
from shardviz.compare.comparison import AS_PLANNED, CAUSES, SAME_TRAFFIC, Comparison, Difference
from shardviz.compare.comparison import compiled, over, planned, taken_apart
from shardviz.hlo import Collective
from shardviz.planner.plan import Plan
from shardviz.reports.target_result import TargetResult

__all__ = ["AS_PLANNED", "CAUSES", "SAME_TRAFFIC", "Difference", "differences"]

ALWAYS: tuple[Callable[[Comparison], None], ...] = (
    answer_rules.packed_dtype,
    answer_rules.other_dtypes,
    answer_rules.collective_matmul,
    answer_rules.between_slices,
    answer_rules.combined_collectives,
    answer_rules.fused_reduce_scatter,
    answer_rules.overlapped,
    answer_rules.strike_equal,
    answer_rules.idle_axis,
    answer_rules.other_result,
)
WHILE_SOMETHING_IS_LEFT: tuple[Callable[[Comparison], None], ...] = (
    array_rules.gathered_again,
    array_rules.summed_apart,
    array_rules.moved_elsewhere,
    array_rules.reordered_axes,
    array_rules.padded,
    array_rules.scatter_and_gather,
    array_rules.all_reduce_and_slice,
    array_rules.split_collective,
    array_rules.merged_collectives,
    array_rules.scattered_less,
    array_rules.gathered_more,
    array_rules.summed_first,
    array_rules.other_sums,
    array_rules.other_array,
    array_rules.other_split,
    array_rules.gathered_all,
    array_rules.other_route,
    array_rules.extra_collective,
    array_rules.avoided_collective,
)


def differences(plan: Plan, answer: TargetResult) -> tuple[Difference, ...]:
    """Every difference between the plan and a target's answer; nothing where there is no answer."""
    if answer.status != "ok":
        return ()
    collectives: Sequence[Collective] = answer.collectives
    combined: list[Collective] = []
    if not plan.problem.is_chain:
        collectives, combined = taken_apart(collectives, answer.partitioned)
    answered = compiled(collectives, plan.problem, answer.collective_matmuls)
    theirs, slices = ([one for one in answered if (one.op == "slice") is is_cut] for is_cut in (False, True))
    parts = {name for matmul in answer.collective_matmuls for name in matmul.permutes}
    scheduled = [one for one in collectives if one.name not in parts]
    comparison = Comparison(plan, answer, planned(plan), theirs, slices, scheduled)
    for one in combined:  # their pieces are compared one by one
        comparison.add(
            "combined_collectives",
            f"{answer.target} carries {one.arrays} arrays in one {one.op}{over(one)} ({one.bytes:,} bytes), "
            "which sends as many bytes as one for each of them.",
        )
    for rule in ALWAYS:
        rule(comparison)
    for rule in WHILE_SOMETHING_IS_LEFT:
        if comparison.ours or comparison.theirs:
            rule(comparison)
    return tuple(comparison.found)
