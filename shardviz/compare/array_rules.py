"""The rules for how one array is moved: its axes in another order or in turn, its sum in halves, more of it
gathered, and, by array, what no other rule explains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from shardviz.compare.comparison import Comparison
from shardviz.compare.transfer import ArrayTransfer
from shardviz.compare.wording import (
    acts,
    against,
    arrays,
    cheaper,
    does,
    done_too,
    in_dtype,
    listed,
    listed_axes,
    one_of,
    verb,
    wire,
    with_article,
)
from shardviz.sharding import Mesh

_MOST_SPLIT = 4
"""Into how many parts a split or merged collective is looked for."""
_MOST_PADDED = 1.5
"""A collective of so many times as many elements is not a padded one."""


def gathered_again(comparison: Comparison) -> None:
    """An array that both sides gather, by one of them once more for another statement."""
    for side, again in ((comparison.theirs, True), (comparison.ours, False)):
        for one in [each for each in side if each.op == "all-gather"]:
            same = next((pair for pair in comparison.equal if _is_same_gather(one, pair[0])), None)
            if same is None or one not in side:
                continue
            several = [each for each in side if _is_same_gather(each, same[0])]
            name, often = arrays([same[0]]), "again" if len(several) == 1 else f"{len(several)} times more"
            who, other = (comparison.target, "the plan") if again else ("the plan", comparison.target)
            comparison.add(
                "gathered_again",
                f"{who} gathers {name}{one.over} {often} for other statements that take it, sending "
                f"{wire(several):,} bytes more; {other} keeps the copy.",
                [] if again else several,
                several if again else [],
            )


def _is_same_gather(one: ArrayTransfer, other: ArrayTransfer) -> bool:
    return one.kind == other.kind and one.op == "all-gather" and one.shares_array(other)


def reordered(comparison: Comparison) -> None:
    """The devices of an axis taken in another order."""
    mesh = comparison.plan.problem.mesh
    for mine in list(comparison.ours):
        other = next((one for one in comparison.theirs if _in_parts(one, mine, mesh)), None)
        if other is not None:
            comparison.add(
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
        several = _covering(mine, comparison.theirs, comparison.plan.problem.mesh)
        if several and not _permuted(comparison.theirs, mine):
            comparison.add(
                "split_collective",
                f"{comparison.target} splits the plan's {mine} into {len(several)}: {listed(several)}.",
                [mine],
                several,
            )


def merged(comparison: Comparison) -> None:
    """Several collectives of the plan as one."""
    for other in list(comparison.theirs):
        several = _covering(other, comparison.ours, comparison.plan.problem.mesh)
        if several and not _permuted(comparison.theirs, several[0]):
            comparison.add(
                "merged_collectives",
                f"{comparison.target} does in one {other} what the plan does in {len(several)} steps: "
                f"{listed(several)}; {against(other.wire_bytes, wire(several))}.",
                several,
                [other],
            )


def scatter_and_gather(comparison: Comparison) -> None:
    """A sum in one collective on one side, in two halves on the other."""
    for mine in [one for one in comparison.ours if one.op == "all-reduce"]:
        scatter = _first(comparison.theirs, "reduce-scatter", mine)
        gather = _later_gather(comparison.theirs, mine, comparison.ours)
        if scatter is not None and gather is not None:
            partner = _rest_of_gather(gather, mine, comparison.ours)
            comparison.add(
                "scatter_and_gather",
                f"{comparison.target} writes the plan's psum{mine.over}{done_too(partner)} as two halves, a "
                f"{scatter} and an {gather}.",
                [mine, *partner],
                [scatter, gather],
            )
    for other in [one for one in comparison.theirs if one.op == "all-reduce"]:
        scatter = _first(comparison.ours, "reduce-scatter", other)
        gather = _later_gather(comparison.ours, other, comparison.theirs)
        if scatter is not None and gather is not None:
            partner = _rest_of_gather(gather, other, comparison.theirs)
            comparison.add(
                "scatter_and_gather",
                f"{comparison.target} adds the partial sums in one {other}{done_too(partner)}; the plan does "
                f"it in two halves, a {scatter} and later an {gather}.",
                [scatter, gather],
                [other, *partner],
            )


def all_reduce_and_slice(comparison: Comparison) -> None:
    """An all-reduce where the plan has a psum_scatter."""
    for mine in [one for one in comparison.ours if one.op == "reduce-scatter"]:
        other = _first(comparison.theirs, "all-reduce", mine)
        if other is not None:
            is_cut = any(
                one.base_axes & other.base_axes and one.shares_array(other) for one in comparison.slices
            )
            comparison.add(
                "all_reduce_and_slice",
                f"{comparison.target} does not scatter the sum{_of_which(comparison, mine)}: its "
                f"all-reduce{other.over} of "
                f"{other.bytes:,} bytes{in_dtype(other, mine)} gives every device the whole of it, "
                f"{'of which a device keeps a slice' if is_cut else 'where the plan scatters it'}; it sends "
                f"{other.wire_bytes:,} bytes, and scattering the sum would send half of them.",
                [mine],
                [other],
            )


def _of_which(comparison: Comparison, sum_: ArrayTransfer) -> str:
    """The array whose sum it is, in a program of many."""
    return "" if comparison.plan.problem.is_chain else f" of {arrays([sum_])}"


def scattered_less(comparison: Comparison) -> None:
    """The sum of the same parts, scattered over fewer of their axes than in the plan."""
    for part in comparison.plan.problem.parts:
        name = part.result.name
        summed = comparison.summed_over(name)
        ours, theirs = ([one for one in side if one.arrays == (name,)] for side in comparison.sides)
        kept = _not_scattered(theirs) - _not_scattered(ours)
        if summed is not None and summed[0] == summed[1] and kept and any(one.is_sum for one in ours):
            over = listed_axes(kept, comparison.plan.problem.mesh)
            comparison.add(
                "scattered_less",
                f"{comparison.target} does not scatter the sum of {name} over {over}, as the plan does: it "
                f"{does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}.",
                ours,
                theirs,
            )


def _not_scattered(several: list[ArrayTransfer]) -> frozenset[str]:
    """The axes over which every device gets the whole sum."""
    return frozenset(axis for one in several if one.op == "all-reduce" for axis in one.base_axes)


def padded(comparison: Comparison) -> None:
    """The target pads an array so that its pieces suit the hardware, and moves what is then misplaced."""
    for mine in [one for one in comparison.ours if one.op in ("reduce-scatter", "all-to-all", "all-gather")]:
        same = [one for one in comparison.theirs if (one.op, one.base_axes) == (mine.op, mine.base_axes)]
        same = [one for one in same if mine.elements < one.elements < _MOST_PADDED * mine.elements]
        other = next((one for one in same if one.may_share_array(mine)), None)
        if other is None:
            continue
        mending = [
            one
            for one in comparison.theirs
            if one.op == "collective-permute"
            and one.base_axes <= mine.base_axes
            and one.may_share_array(mine)
        ]
        also = f", and puts its pieces right by {listed(mending)}" if mending else ""
        comparison.add(
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
            comparison.add(
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
        alone = [one for one in comparison.theirs if one.shares_array(other)] == [other]
        if ours and alone and all(one.elements < other.elements for one in ours):
            comparison.add(
                "gathered_more",
                f"{_gathers(comparison, other)}; the plan {does(ours)}.",
                ours,
                [other],
            )


def _cuts_first(comparison: Comparison, mine: ArrayTransfer) -> str:
    """That the plan slices the array before it gathers it, where it does."""
    before = comparison.plan.steps[: comparison.plan.steps.index(comparison.plan.collectives[mine.place])]
    is_cut = any((step.op, step.array) == ("slice", *mine.arrays) for step in before)
    return "slices it first and " if is_cut else ""


def _elements(one: ArrayTransfer, other: ArrayTransfer) -> str:
    """The number of elements, where the sides' dtypes differ and their bytes cannot be compared."""
    return f", {one.elements:,} elements in {one.dtype}" if one.dtype != other.dtype else ""


def _gathers(comparison: Comparison, one: ArrayTransfer) -> str:
    whole = f"{arrays([one])}{one.over} to {one.bytes:,} bytes ({one.wire_bytes:,} sent)"
    return f"{comparison.target} gathers {whole}"


def other_route(comparison: Comparison) -> None:
    """The same array brought to its sharding by other moves: all that either side does with it."""
    for one in [*comparison.ours, *comparison.theirs]:
        ours, theirs = comparison.whole_route(one.arrays)
        if not ours or not theirs or one not in (*comparison.ours, *comparison.theirs):
            continue
        both = f"it {does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}"
        name = one_of(min((each.arrays for each in (*ours, *theirs)), key=len))
        cut = [each for each in comparison.slices if each.shares_array(one)]
        code, how = _how(ours, theirs, cut)
        comparison.add(
            code,
            f"{comparison.target} {verb(theirs)} {name} {how}: {both}.",
            [each for each in ours if each in comparison.ours],
            [each for each in theirs if each in comparison.theirs],
        )


def _how(ours: list[ArrayTransfer], theirs: list[ArrayTransfer], cut: list[ArrayTransfer]) -> tuple[str, str]:
    """The code of what sets the two ways apart, and its words; `cut` are the target's slices of the array."""
    parts = dict.fromkeys(axis for one in (*theirs, *cut) for axis in one.axes if ":" in axis)
    if parts and not any(":" in axis for one in ours for axis in one.axes):
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


def _other_way(ours: list[ArrayTransfer], theirs: list[ArrayTransfer]) -> str:
    """The most telling thing that the target does with an array and the plan does not."""
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
    """Collectives that the plan does not have."""
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
        comparison.add("extra_collective", message, (), several)


def avoided(comparison: Comparison) -> None:
    """Collectives that the target does not have."""
    for names in dict.fromkeys(one.arrays for one in comparison.ours):
        mine = [one for one in comparison.ours if one.arrays == names]
        why = _unmoved(comparison, *names) if all(map(comparison.stays, names)) else ""
        comparison.add(
            "avoided_collective",
            f"{comparison.target} gets by without the plan's {listed(mine)} of {arrays(mine)}, which "
            f"{'sends' if len(mine) == 1 else 'send'} {wire(mine):,} bytes{why}.",
            mine,
        )


def _unmoved(comparison: Comparison, name: str) -> str:
    """The reason why an array needs no collective."""
    problem = comparison.plan.problem
    for array in problem.arguments:
        if array.name == name:
            return f": every device computes with what it holds of {name} by its spec, {array.decided_spec}"
    return f": {name} stays where its einsum makes it"


def _in_parts(one: ArrayTransfer, other: ArrayTransfer, mesh: Mesh) -> bool:
    """`one` is `other` with its axes cut into parts that are ordered in another way."""
    same = (one.op, one.base_axes, one.amount) == (other.op, other.base_axes, other.amount)
    return same and one.may_share_array(other) and _devices([one], mesh) == _devices([other], mesh)


def _devices(several: Sequence[ArrayTransfer], mesh: Mesh) -> int:
    """Devices along all axes and sub-axes of some transfers."""
    return prod(mesh.group_size(one.axes) for one in several)


def _permuted(among: list[ArrayTransfer], like: ArrayTransfer) -> bool:
    """A permute of the same array prepares or mends the other transfers."""
    return any(one.op == "collective-permute" and one.shares_array(like) for one in among)


def _first(among: list[ArrayTransfer], op: str, like: ArrayTransfer) -> ArrayTransfer | None:
    """One of kind `op` over the same axes of the same array, with as many elements."""
    wanted = (op, like.base_axes, like.amount)
    same = (one for one in among if (one.op, one.base_axes, one.amount) == wanted)
    return next((one for one in same if one.may_share_array(like)), None)


def _later_gather(
    among: list[ArrayTransfer], reduced: ArrayTransfer, others: list[ArrayTransfer]
) -> ArrayTransfer | None:
    """An all-gather that puts back together what a reduce-scatter in place of `reduced` would cut, alone or
    together with axes that the other side gathers by themselves."""
    for one in among:
        if one.op == "all-gather" and one.base_axes >= reduced.base_axes and one.shares_array(reduced):
            alone = one.base_axes == reduced.base_axes
            if alone or _rest_of_gather(one, reduced, others):
                return one
    return None


def _rest_of_gather(
    gather: ArrayTransfer, reduced: ArrayTransfer, others: list[ArrayTransfer]
) -> list[ArrayTransfer]:
    """The other side's all-gather of the same array over the axes of `gather` that `reduced` does not have,
    if there is one."""
    rest = gather.base_axes - reduced.base_axes
    same = [
        one for one in others if one.op == "all-gather" and one.base_axes == rest and one.shares_array(gather)
    ]
    return same[:1] if rest else []


def _covering(one: ArrayTransfer, among: list[ArrayTransfer], mesh: Mesh) -> list[ArrayTransfer]:
    """Two or more transfers of the same kind that share out the axes of `one` between them, if any do."""
    same = [
        other
        for other in among
        if other.op == one.op and other.base_axes <= one.base_axes and other.shares_array(one)
    ]
    for count in range(2, min(_MOST_SPLIT, len(same)) + 1):
        for several in combinations(same, count):
            covered = frozenset().union(*(other.base_axes for other in several))
            largest = max(other.elements for other in several)
            same_size = _devices(several, mesh) == _devices([one], mesh)
            if same_size and (covered, largest) == (one.base_axes, one.elements):
                return list(several)
    return []
