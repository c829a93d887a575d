"""The rules for what no other rule explains, by array."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.transfer import Transfer
from shardviz.compare.wording import acts, arrays, cheaper, does, in_dtype, listed, verb, wire, with_article


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
    here, there = ([one for one in side if one.is_sum] for side in (ours, theirs))
    if wire(theirs) < wire(ours):
        sums = [{one.op for one in side} for side in (here, there)]
        why = ", whose sum every device gets whole" if sums == [{"all-reduce"}, {"reduce-scatter"}] else ""
        return "fewer_bytes", f"with fewer bytes than the plan{why}"
    if here and there and there[0].elements > here[0].elements:
        return "summed_more", "before it is cut as far as in the plan"
    more = "more" if wire(theirs) > wire(ours) else "as many"
    way, wider = _other_way(ours, theirs), in_dtype(theirs[0], ours[0])
    return "other_route", f"{way}, which sends {more} bytes{wider}"


def _other_way(ours: list[Transfer], theirs: list[Transfer]) -> str:
    """What the target does with an array that the plan does not: the most telling of it."""
    here, there = (sorted(one.op for one in side) for side in (ours, theirs))
    is_added = [any(one.is_sum for one in side) for side in (ours, theirs)]
    if is_added == [False, True]:
        return "by adding up partial sums of it, which the plan does not have"
    if "all-gather" in there and "all-gather" not in here:
        return "by gathering it, where the plan gathers none of it"
    here_most, there_most = (max(one.elements for one in side) for side in (ours, theirs))
    if there_most > here_most:
        return "before it is cut as far as in the plan"
    if "collective-permute" in there and "collective-permute" not in here:
        return "by whole blocks to other devices, where the plan sends none"
    if here == there and [one.amount for one in ours] == [one.amount for one in theirs]:
        return "over other axes"
    return "by other collectives"


def extra(comparison: Comparison) -> None:
    """What the plan does not have."""
    for other in list(comparison.theirs):
        if other not in comparison.theirs:
            continue
        several = [one for one in comparison.theirs if one.arrays == other.arrays]
        message = (
            f"the plan sends nothing of {arrays(several)}{_unmoved(comparison, *other.arrays)}; "
            f"{comparison.target} {acts(several)}."
            if len(other.arrays) == 1 and not comparison.plans(other.arrays)
            else f"{comparison.target} has {with_article(listed(several))} that the plan does not need; it "
            f"sends {wire(several):,} bytes."
        )
        comparison.say("extra_collective", message, (), several)


def avoided(comparison: Comparison) -> None:
    """What the target does not have."""
    for names in dict.fromkeys(one.arrays for one in comparison.ours):
        mine = [one for one in comparison.ours if one.arrays == names]
        why = _unmoved(comparison, *names) if all(map(comparison.stays, names)) else ""
        comparison.say(
            "avoided_collective",
            f"{comparison.target} gets by without the plan's {listed(mine)} of {arrays(mine)}, which "
            f"{'sends' if len(mine) == 1 else 'send'} {wire(mine):,} bytes{why}.",
            mine,
        )


def _unmoved(comparison: Comparison, name: str) -> str:
    """How an array that no collective moves is there where it is used."""
    problem = comparison.plan.problem
    for array in problem.arguments:
        if array.name == name:
            return f": every device computes with what it holds of {name} by its spec, {array.decided_spec}"
    return f": {name} stays where its einsum makes it"
