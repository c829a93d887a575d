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
    other_result              with the result its choice, the compiler chose another sharding
    only_other_result         that alone: the same collectives, and as many bytes
    moved_elsewhere           the same collectives, and as many bytes, of another array
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

from collections.abc import Sequence
from typing import Protocol

from shardviz.compare.comparison import Comparison
from shardviz.compare.difference import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.compare.rules import explain
from shardviz.compare.transfer import compiled, planned
from shardviz.hlo import Collective, CollectiveMatmul
from shardviz.planner import Plan
from shardviz.sharding import PartitionSpec

__all__ = ["AS_PLANNED", "SAME_TRAFFIC", "Difference", "compare", "differences"]


class Answer(Protocol):
    """What is compared of a target's answer: `shardviz.compiler.TargetResult` has it."""

    @property
    def target(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def collectives(self) -> Sequence[Collective]: ...
    @property
    def result_spec(self) -> PartitionSpec | None: ...
    @property
    def partitioned(self) -> Sequence[Collective] | None: ...
    @property
    def collective_matmuls(self) -> Sequence[CollectiveMatmul]: ...


def differences(plan: Plan, answer: Answer) -> tuple[Difference, ...]:
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
    answered = compiled(collectives, plan.problem, collective_matmuls)
    slices = [one for one in answered if one.op == "slice"]
    theirs = [one for one in answered if one.op != "slice"]
    parts = {name for matmul in collective_matmuls for name in matmul.permutes}
    scheduled = [one for one in collectives if one.name not in parts]
    comparison = Comparison(plan, target, ours, theirs, slices, result_spec, scheduled, partitioned)
    explain(comparison)
    return tuple(comparison.found)
