"""The rules for what no other rule explains: by array, and at last one by one."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.wording import arrays, does, listed, wire, with_article


def moved_operand_or_result(comparison: Comparison) -> None:
    """The plan moves the result of an einsum and the target its operands before it, or the reverse."""
    for part in comparison.plan.problem.parts:
        operands, result = {array.name for array in part.operands}, {part.result.name}
        for code, mine, other in (
            ("operand_not_result", result, operands),
            ("result_not_operand", operands, result),
        ):
            ours = [one for one in comparison.ours if set(one.arrays) <= mine]
            theirs = [one for one in comparison.theirs if one.arrays and set(one.arrays) <= other]
            if not ours or not theirs:
                continue
            when = ("after", "before") if mine is result else ("before", "after")
            comparison.say(
                code,
                f"the plan moves {arrays(ours)} {when[0]} multiplying: it {does(ours)}; {comparison.target} "
                f"moves {arrays(theirs)} {when[1]} it instead: it {does(theirs)}.",
                ours,
                theirs,
            )


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
    mine = list(comparison.ours)
    if mine:
        comparison.say(
            "avoided_collective",
            f"{comparison.target} gets by without the plan's {listed(mine)}, which "
            f"{'sends' if len(mine) == 1 else 'send'} {wire(mine):,} bytes.",
            mine,
        )
