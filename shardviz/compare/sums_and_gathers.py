"""The rules for the sum of one array: in one collective, in two halves, or not scattered."""

from __future__ import annotations

from shardviz.compare.comparison import Comparison
from shardviz.compare.matching import first, later_gather, rest_of_gather
from shardviz.compare.transfer import Transfer
from shardviz.compare.wording import cheaper, does, done_too, in_dtype, listed_axes


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


def scattered_less(comparison: Comparison) -> None:
    """The sum of the same parts, scattered over fewer of their axes than in the plan."""
    for part in comparison.plan.problem.parts:
        name = part.result.name
        summed = comparison.summed_over(name)
        ours, theirs = ([one for one in side if one.arrays == (name,)] for side in comparison.sides)
        kept = _not_scattered(theirs) - _not_scattered(ours)
        if summed is not None and summed[0] == summed[1] and kept and any(one.is_sum for one in ours):
            over = listed_axes(kept, comparison.plan.problem.mesh)
            comparison.say(
                "scattered_less",
                f"{comparison.target} does not scatter the sum of {name} over {over}, as the plan does: it "
                f"{does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}.",
                ours,
                theirs,
            )


def _not_scattered(several: list[Transfer]) -> frozenset[str]:
    """The axes over which every device gets the whole sum."""
    return frozenset(axis for one in several if one.op == "all-reduce" for axis in one.base_axes)
