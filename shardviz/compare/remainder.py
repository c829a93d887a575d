"""The rules for what no other rule explains: by array, and at last one by one."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.wording import arrays, does, with_article


def other_route(comparison: Comparison) -> None:
    """The same array brought to its sharding by other moves."""
    for mine in list(comparison.ours):
        if mine not in comparison.ours:
            continue
        theirs = [one for one in comparison.theirs if set(one.arrays) & set(mine.arrays)]
        if theirs:
            ours = [one for one in comparison.ours if set(one.arrays) & set(mine.arrays)]
            certain = any(one.arrays == mine.arrays for one in theirs)
            names = arrays([mine] if certain else theirs)
            comparison.say(
                "other_route",
                f"{comparison.target} moves {names} another way: it {does(theirs)}; the plan {does(ours)}.",
                ours,
                theirs,
            )


def other_array(comparison: Comparison) -> None:
    """The plan moves one array, the target another."""
    if comparison.ours and comparison.theirs:
        comparison.say(
            "other_array",
            f"{comparison.target} moves {arrays(comparison.theirs)} where the plan moves "
            f"{arrays(comparison.ours)}: it {does(comparison.theirs)}; the plan {does(comparison.ours)}.",
            list(comparison.ours),
            list(comparison.theirs),
        )


def extra(comparison: Comparison) -> None:
    """What the plan does not have."""
    for other in list(comparison.theirs):
        comparison.say(
            "extra_collective",
            f"{comparison.target} has {with_article(str(other))} that the plan does not need; it sends "
            f"{other.wire_bytes:,} bytes.",
            (),
            [other],
        )


def avoided(comparison: Comparison) -> None:
    """What the target does not have."""
    for mine in list(comparison.ours):
        comparison.say(
            "avoided_collective",
            f"{comparison.target} gets by without the plan's {mine}, which sends {mine.wire_bytes:,} bytes.",
            [mine],
        )
