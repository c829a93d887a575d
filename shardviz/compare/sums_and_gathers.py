"""The rules for partial sums and the gathers that avoid them or put them together."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.matching import (
    first,
    later_gather,
    rest_of_gather,
    rest_of_sum,
    sharing_axes,
)
from shardviz.compare.wording import arrays, done_too, in_dtype, with_article


def scatter_and_gather(comparison: Comparison) -> None:
    """A sum in one collective on one side, in two halves on the other."""
    for mine in [one for one in comparison.ours if one.op == "all-reduce"]:
        scatter = first(comparison.theirs, "reduce-scatter", mine)
        gather = later_gather(comparison.theirs, mine, comparison.ours)
        if scatter is not None and gather is not None:
            partner = rest_of_gather(gather, mine, comparison.ours)
            comparison.say(
                "scatter_and_gather",
                f"{comparison.target} writes the plan's psum{mine.over}{done_too(partner)} as two halves, a "
                f"{scatter} and an {gather}.",
                [mine, *partner],
                [scatter, gather],
            )
    for other in [one for one in comparison.theirs if one.op == "all-reduce"]:
        scatter = first(comparison.ours, "reduce-scatter", other)
        gather = later_gather(comparison.ours, other, comparison.theirs)
        if scatter is not None and gather is not None:
            partner = rest_of_gather(gather, other, comparison.theirs)
            comparison.say(
                "scatter_and_gather",
                f"{comparison.target} adds the partial sums in one {other}{done_too(partner)}; the plan does "
                f"it in two halves, a {scatter} and later an {gather}.",
                [scatter, gather],
                [other, *partner],
            )


def all_reduce_and_slice(comparison: Comparison) -> None:
    """An all-reduce where the plan has a psum_scatter."""
    for mine in [one for one in comparison.ours if one.op == "reduce-scatter"]:
        other = first(comparison.theirs, "all-reduce", mine)
        if other is not None:
            is_cut = any(
                one.base_axes & other.base_axes and set(one.arrays) & set(other.arrays)
                for one in comparison.slices
            )
            comparison.say(
                "all_reduce_and_slice",
                f"{comparison.target} does not scatter the sum: its all-reduce{other.over} of "
                f"{other.bytes:,} bytes{in_dtype(other, mine)} gives every device the whole of it, "
                f"{'of which a device keeps a slice' if is_cut else 'where the plan scatters it'}; it sends "
                f"{other.wire_bytes:,} bytes, and scattering the sum would send half of them.",
                [mine],
                [other],
            )


def other_operand(comparison: Comparison) -> None:
    """The plan gathers one operand of an einsum, the target the other."""
    for mine in [one for one in comparison.ours if one.op == "all-gather"]:
        if mine not in comparison.ours:
            continue
        (name,) = mine.arrays
        beside = comparison.beside(name)
        gathers = [one for one in comparison.theirs if one.op == "all-gather"]
        own = any(name in one.arrays and one.base_axes >= mine.base_axes for one in gathers)
        others = [one for one in gathers if beside & set(one.arrays) and name not in one.arrays]
        other = next(iter(others), None)
        if other is not None and not own:
            comparison.say_instead(
                "gathered_other_operand",
                f"the plan gathers {name}{mine.over} ({mine.wire_bytes:,} bytes sent); {comparison.target} "
                f"gathers {arrays([other])}{other.over} instead ({other.wire_bytes:,} bytes sent)",
                [mine],
                [other],
            )


def reduced_not_gathered(comparison: Comparison) -> None:
    """The plan gathers an operand, the target adds partial sums of the result."""
    for mine in [one for one in comparison.ours if one.op == "all-gather"]:
        if mine not in comparison.ours:
            continue
        (name,) = mine.arrays
        sums = [one for one in comparison.theirs if any(comparison.takes(each, name) for each in one.arrays)]
        other = sharing_axes(sums, ("all-reduce", "reduce-scatter"), mine)
        if other is not None:
            partner = rest_of_sum(other, mine, comparison.ours)
            also = rest_of_gather(mine, other, comparison.theirs)
            comparison.say_instead(
                "reduced_not_gathered",
                f"the plan gathers {name}{mine.over} before multiplying "
                f"({mine.wire_bytes:,} bytes sent){done_too(partner)}; {comparison.target} multiplies the "
                f"pieces and adds partial sums by {with_article(other.op)}{other.over} of "
                f"{other.bytes:,} bytes ({other.wire_bytes:,} sent){done_too(also)}",
                [mine, *partner],
                [other, *also],
            )


def gathered_not_reduced(comparison: Comparison) -> None:
    """The reverse."""
    for mine in [one for one in comparison.ours if one.op in ("all-reduce", "reduce-scatter")]:
        if mine not in comparison.ours:
            continue
        (name,) = mine.arrays
        gathers = [
            one for one in comparison.theirs if any(comparison.takes(name, each) for each in one.arrays)
        ]
        other = sharing_axes(gathers, ("all-gather",), mine)
        if other is not None:
            partner = rest_of_gather(other, mine, comparison.ours)
            comparison.say_instead(
                "gathered_not_reduced",
                f"the plan multiplies the pieces and adds partial sums by {with_article(mine.op)}"
                f"{mine.over} ({mine.wire_bytes:,} bytes sent){done_too(partner)}; {comparison.target} "
                f"gathers {arrays([other])}{other.over} instead ({other.wire_bytes:,} bytes sent)",
                [mine, *partner],
                [other],
            )
