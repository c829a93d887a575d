"""Plan against compiler: where they differ, and why.

Both sides become lists of transfers, each of one array: its operand is followed back to the arguments. Equal
ones are struck out; what is left is explained by one rule after another, each striking out what it explains,
from the most specific to the plainest:

    packed_dtype              the same collective, several elements in one of a wider dtype
    promoted_dtype            the same collective on a wider dtype
    narrowed_dtype            the same collective on a narrower dtype
    collective_matmul         a gather or a scatter as permutes between partial matmuls
    between_slices            a collective that leaves the TPU slice, as a send and a recv
    combined_collectives      several collectives of the plan as one with several arrays
    fused_reduce_scatter      a reduce-scatter made of the partitioner's all-reduce and slice
    overlapped                other work runs while collectives are under way
    idle_axis                 data moved over a mesh axis that no spec mentions
    other_result              free to choose the result's sharding, the compiler chose another
    only_other_result         that alone: the same collectives, and as many bytes
    moved_elsewhere           the same collectives, and as many bytes, of another array
    gathered_again            an array gathered once more for another statement, where the other side keeps it
    summed_apart              the summands of an addition added up over devices each by itself
    scatter_and_gather        a reduce-scatter and an all-gather where the plan has a psum, or the reverse
    all_reduce_and_slice      an all-reduce where the plan has a psum_scatter
    scattered_less            a sum scattered over fewer axes than in the plan
    split_collective          one collective of the plan as several
    merged_collectives        several collectives of the plan as one
    padded                    the same collective on a padded array
    gathered_more             the compiler gathers more of an array than the plan
    summed_first              an operand's own dimensions added up before multiplying, not while multiplying
    gathered_not_reduced      an operand gathered or moved, where the plan adds partial sums
    reduced_not_gathered      the reverse
    other_sums                partial sums over other axes than the plan's
    gathered_other_operand    the plan gathers one operand, the compiler another
    other_operand             the plan moves one operand, the compiler another
    operand_not_result        the plan moves a result, the compiler an operand before
    result_not_operand        the plan moves an operand, the compiler the result after
    other_split               the compiler leaves an array in place that the plan moves, or the reverse, and
                              moves others otherwise
    sub_axes                  data moved over parts of a mesh axis, or over all its parts in another order
    fewer_bytes               the same array moved with fewer bytes than in the plan
    summed_more               the partial sums of more of an array added up than in the plan
    other_route               the same array moved by other collectives
    extra_collective          a collective that the plan does not have
    avoided_collective        one that the plan has and the compiler does not
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardviz.compare import answer_rules, array_rules, einsum_rules
from shardviz.compare.comparison import AS_PLANNED, SAME_TRAFFIC, Comparison, Difference
from shardviz.compare.transfer import compiled, over, planned, taken_apart
from shardviz.hlo import Collective
from shardviz.planner.plan import Plan
from shardviz.reports.target_result import TargetResult

__all__ = ["AS_PLANNED", "SAME_TRAFFIC", "Difference", "differences"]

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
    einsum_rules.summed_apart,
    einsum_rules.moved_elsewhere,
    array_rules.reordered_axes,
    array_rules.padded,
    array_rules.scatter_and_gather,
    array_rules.all_reduce_and_slice,
    array_rules.split_collective,
    array_rules.merged_collectives,
    array_rules.scattered_less,
    array_rules.gathered_more,
    einsum_rules.summed_first,
    einsum_rules.other_sums,
    einsum_rules.other_array,
    einsum_rules.other_split,
    array_rules.gathered_all,
    array_rules.other_route,
    array_rules.extra_collective,
    array_rules.avoided_collective,
)


def differences(plan: Plan, answer: TargetResult) -> tuple[Difference, ...]:
    """Every difference between the plan and a target's answer: both sides' transfers are explained once, most
    specific explanation first; nothing where there is no answer."""
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
