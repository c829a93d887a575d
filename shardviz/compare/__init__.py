"""Plan against compiler: where they differ, and why.

Both sides become lists of transfers. Equal ones are struck out; what is left is explained by one rule after
another, each striking out what it explains, from the most specific to the plainest:

    promoted_dtype            the same collective on a wider dtype
    idle_axis                 data moved over a mesh axis that no spec mentions
    other_result              with the result its choice, the compiler chose another sharding
    scatter_and_gather        a reduce-scatter and an all-gather where the plan has a psum, or the reverse
    all_reduce_and_slice      an all-reduce where the plan has a psum_scatter
    split_collective          one collective of the plan as several
    merged_collectives        several collectives of the plan as one
    gathered_other_operand    the plan gathers one operand, the compiler another
    reduced_not_gathered      the plan gathers an operand, the compiler slices and adds partial sums
    gathered_not_reduced      the reverse
    sub_axes                  data moved over parts of a mesh axis, or over all its parts in another order
    other_route               the same array brought to its sharding by other moves
    other_array               the plan moves one array, the compiler another
    extra_collective          a collective that the plan does not have
    avoided_collective        one that the plan has and the compiler does not
"""

from __future__ import annotations

from collections.abc import Sequence

from shardviz.compare.comparison import Comparison
from shardviz.compare.difference import Difference
from shardviz.compare.rules import explain
from shardviz.compare.transfer import compiled, planned
from shardviz.hlo import Collective
from shardviz.planner import Plan
from shardviz.sharding import PartitionSpec

__all__ = ["Difference", "compare"]


def compare(
    plan: Plan, target: str, collectives: Sequence[Collective], result_spec: PartitionSpec | None
) -> tuple[Difference, ...]:
    """Every difference between the plan and what a target inserted, most specific explanation first.

    `result_spec` is the sharding that the target gave the result, if known.
    """
    ours = [planned(step) for step in plan.collectives if step.wire_bytes]
    answered = compiled(collectives, plan.problem)
    slices = [one for one in answered if one.op == "slice"]
    theirs = [one for one in answered if one.op != "slice"]
    comparison = Comparison(plan, target, ours, theirs, slices, result_spec)
    explain(comparison)
    return tuple(comparison.found)
