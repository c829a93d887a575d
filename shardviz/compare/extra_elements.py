"""The rules for the same collective of the same array on more elements than the plan's."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.matching import of_one_array
from shardviz.compare.transfer import Transfer
from shardviz.compare.wording import against, arrays, does, listed, wire

_MOST_PADDED = 1.5
"""A collective of so many times as many elements is no padded one."""


def padded(comparison: Comparison) -> None:
    """The target pads an array so that its pieces suit the hardware, and moves what is then misplaced."""
    for mine in [one for one in comparison.ours if one.op in ("reduce-scatter", "all-to-all", "all-gather")]:
        same = [one for one in comparison.theirs if (one.op, one.base_axes) == (mine.op, mine.base_axes)]
        same = [one for one in same if mine.elements < one.elements < _MOST_PADDED * mine.elements]
        other = next((one for one in same if of_one_array(one, mine)), None)
        if other is None:
            continue
        mending = [
            one
            for one in comparison.theirs
            if one.op == "collective-permute" and one.base_axes <= mine.base_axes and of_one_array(one, mine)
        ]
        also = f", and puts its pieces right by {listed(mending)}" if mending else ""
        comparison.say(
            "padded",
            f"{comparison.target} pads {arrays([mine])} for its {other.op}{other.over}, from {mine.bytes:,} "
            f"bytes to {other.bytes:,}{also}; {against(wire([other, *mending]), mine.wire_bytes)}.",
            [mine],
            [other, *mending],
        )


def gathered_more(comparison: Comparison) -> None:
    """The target gathers more of an array over the same axes, where the plan slices it first."""
    for mine in [one for one in comparison.ours if one.op == "all-gather"]:
        same = [one for one in comparison.theirs if (one.op, one.arrays) == (mine.op, mine.arrays)]
        other = next((one for one in same if one.base_axes == mine.base_axes), None)
        planned, _ = comparison.whole_route(mine.arrays)
        if other is not None and all(one.elements < other.elements for one in planned):
            before = [one for one in planned if one.place < mine.place and one in comparison.ours]
            also = f"does {listed(before)}, then " if before else ""
            comparison.say(
                "gathered_more",
                f"{_gathers(comparison, other)}{_elements(other, mine)}; the plan "
                f"{_cuts_first(comparison, mine)}{also}gathers only {mine.bytes:,} bytes "
                f"({wire([*before, mine]):,} sent{' in all' if before else ''}){_elements(mine, other)}.",
                [*before, mine],
                [other],
            )


def gathered_all(comparison: Comparison) -> None:
    """The target gathers more of an array, over other axes, where the plan only moves pieces of it."""
    for other in [one for one in comparison.theirs if one.op == "all-gather" and len(one.arrays) == 1]:
        ours = [one for one in comparison.ours if one.arrays == other.arrays]
        alone = [one for one in comparison.theirs if set(one.arrays) & set(other.arrays)] == [other]
        if ours and alone and all(one.elements < other.elements for one in ours):
            comparison.say(
                "gathered_more",
                f"{_gathers(comparison, other)}; the plan {does(ours)}.",
                ours,
                [other],
            )


def _cuts_first(comparison: Comparison, mine: Transfer) -> str:
    """That the plan slices the array before it gathers it, where it does."""
    before = comparison.plan.steps[: comparison.plan.steps.index(comparison.plan.collectives[mine.place])]
    is_cut = any((step.op, step.array) == ("slice", *mine.arrays) for step in before)
    return "slices it first and " if is_cut else ""


def _elements(one: Transfer, other: Transfer) -> str:
    """How many elements that is, where the two sides' bytes tell nothing."""
    return f", {one.elements:,} elements in {one.dtype}" if one.dtype != other.dtype else ""


def _gathers(comparison: Comparison, one: Transfer) -> str:
    whole = f"{arrays([one])}{one.over} to {one.bytes:,} bytes ({one.wire_bytes:,} sent)"
    return f"{comparison.target} gathers {whole}"
