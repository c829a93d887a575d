"""The rules in the order in which they are tried: from the most specific to the plainest."""

from __future__ import annotations

from collections.abc import Callable

from shardviz.compare import (
    axes_taken,
    extra_elements,
    remainder,
    schedule,
    sums_and_gathers,
    whole_answer,
    work_split,
)
from shardviz.compare.comparison import Comparison

ALWAYS: tuple[Callable[[Comparison], None], ...] = (
    whole_answer.packed,
    whole_answer.promoted,
    whole_answer.narrowed,
    schedule.collective_matmul,
    schedule.between_slices,
    schedule.combined,
    schedule.fused_reduce_scatter,
    schedule.overlapped,
    whole_answer.strike_equal,
    whole_answer.idle_axis,
    whole_answer.other_result,
)
WHILE_SOMETHING_IS_LEFT: tuple[Callable[[Comparison], None], ...] = (
    work_split.moved_elsewhere,
    axes_taken.reordered,
    extra_elements.padded,
    sums_and_gathers.scatter_and_gather,
    sums_and_gathers.all_reduce_and_slice,
    axes_taken.split,
    axes_taken.merged,
    sums_and_gathers.scattered_less,
    extra_elements.gathered_more,
    work_split.summed_first,
    work_split.other_sums,
    work_split.other_array,
    work_split.other_split,
    extra_elements.gathered_all,
    remainder.other_route,
    remainder.extra,
    remainder.avoided,
)


def explain(comparison: Comparison) -> None:
    """Explain every transfer of both sides once."""
    for rule in ALWAYS:
        rule(comparison)
    for rule in WHILE_SOMETHING_IS_LEFT:
        if comparison.ours or comparison.theirs:
            rule(comparison)
