"""The rules for one move along the same axes, taken together, in turn or in another order."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.matching import covering, in_parts, permuted
from shardviz.compare.wording import against, listed, wire


def reordered(comparison: Comparison) -> None:
    """The devices of an axis taken in another order."""
    mesh = comparison.plan.problem.mesh
    for mine in list(comparison.ours):
        other = next((one for one in comparison.theirs if in_parts(one, mine, mesh)), None)
        if other is not None:
            comparison.say(
                "sub_axes",
                f"{comparison.target} takes the devices of {', '.join(mine.axes)} in another order "
                f"({', '.join(other.axes)}) in its {other.op} of {other.bytes:,} bytes; "
                f"{against(other.wire_bytes, mine.wire_bytes)}.",
                [mine],
                [other],
            )


def split(comparison: Comparison) -> None:
    """One collective of the plan as several."""
    for mine in list(comparison.ours):
        several = covering(mine, comparison.theirs, comparison.plan.problem.mesh)
        if several and not permuted(comparison.theirs, mine):
            comparison.say(
                "split_collective",
                f"{comparison.target} splits the plan's {mine} into {len(several)}: {listed(several)}.",
                [mine],
                several,
            )


def merged(comparison: Comparison) -> None:
    """Several collectives of the plan as one."""
    for other in list(comparison.theirs):
        several = covering(other, comparison.ours, comparison.plan.problem.mesh)
        if several and not permuted(comparison.theirs, several[0]):
            comparison.say(
                "merged_collectives",
                f"{comparison.target} does in one {other} what the plan does in {len(several)} steps: "
                f"{listed(several)}; {against(other.wire_bytes, wire(several))}.",
                several,
                [other],
            )
