"""The rules for what no other rule explains, by array."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.transfer import Transfer
from shardviz.compare.wording import acts, arrays, cheaper, does, listed, verb, wire, with_article


def other_route(comparison: Comparison) -> None:
    """The same array brought to its sharding by other moves: all that either side does with it."""
    for one in [*comparison.ours, *comparison.theirs]:
        ours, theirs = comparison.whole_route(one.arrays)
        if not ours or not theirs or one not in (*comparison.ours, *comparison.theirs):
            continue
        both = f"it {does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}"
        certain = min((each.arrays for each in (*ours, *theirs)), key=len)
        name = " or ".join(certain)
        cut = [each for each in comparison.slices if {*each.arrays} & {*one.arrays}]
        code, how = _how(ours, theirs, cut)
        comparison.say(
            code,
            f"{comparison.target} {verb(theirs)} {name} {how}: {both}.",
            [each for each in ours if each in comparison.ours],
            [each for each in theirs if each in comparison.theirs],
        )


def _how(ours: list[Transfer], theirs: list[Transfer], cut: list[Transfer]) -> tuple[str, str]:
    """The code of what sets the two ways apart, and its words; `cut` are the target's slices of the array."""
    parts = dict.fromkeys(axis for one in (*theirs, *cut) for axis in one.axes if ":" in axis)
    if parts:
        return "sub_axes", f"over parts of a mesh axis ({', '.join(parts)}), the plan over whole axes"
    if wire(theirs) < wire(ours):
        return "fewer_bytes", "with fewer bytes than the plan"
    here, there = ([one for one in side if one.is_sum] for side in (ours, theirs))
    if here and there and there[0].elements > here[0].elements:
        return "summed_more", "before it is cut as far as in the plan"
    more = "more" if wire(theirs) > wire(ours) else "as many"
    return "other_route", f"by other collectives, which send {more} bytes"


def extra(comparison: Comparison) -> None:
    """What the plan does not have."""
    for other in list(comparison.theirs):
        if other not in comparison.theirs:
            continue
        several = [one for one in comparison.theirs if one.arrays == other.arrays]
        message = (
            f"the plan sends nothing of {arrays(several)}; {comparison.target} {acts(several)}."
            if len(other.arrays) == 1 and not comparison.plans(other.arrays)
            else f"{comparison.target} has {with_article(listed(several))} that the plan does not need; it "
            f"sends {wire(several):,} bytes."
        )
        comparison.say("extra_collective", message, (), several)


def avoided(comparison: Comparison) -> None:
    """What the target does not have."""
    for names in dict.fromkeys(one.arrays for one in comparison.ours):
        mine = [one for one in comparison.ours if one.arrays == names]
        comparison.say(
            "avoided_collective",
            f"{comparison.target} gets by without the plan's {listed(mine)} of {arrays(mine)}, which "
            f"{'sends' if len(mine) == 1 else 'send'} {wire(mine):,} bytes.",
            mine,
        )
