"""The rules for how a compiler carries out what it moves: in pieces, together, across slices, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from shardviz.compare.comparison import Comparison
from shardviz.compare.transfer import ArrayTransfer
from shardviz.compare.wording import arrays, listed, under_way, with_article
from shardviz.errors import plural
from shardviz.hlo import Collective
from shardviz.sharding.array import BITS

_MOST_COMBINED = 8
"""Of how many collectives of the plan a combined one is looked for."""
_MOST_TOLD = 3
"""Overlapped collectives that are told one by one."""


def collective_matmul(comparison: Comparison) -> None:
    """A gather or a scatter taken apart into permutes between partial matmuls."""
    for other in [one for one in comparison.theirs if one.taken_apart is not None]:
        same = [one for one in comparison.ours if one.is_like(other)]
        mine = next(iter([one for one in same if one.arrays == other.arrays] or same), None)
        matmul = other.taken_apart
        assert matmul is not None
        whose = "the plan's" if mine else "an" if other.op[0] == "a" else "a"
        way = "both ways" if matmul.directions == 2 else "one way"
        sent, runs = matmul.wire_bytes, other.permute_runs
        often = f" ({runs:,} runs)" if runs is not None and runs != len(matmul.permutes) else ""
        comparison.add(
            "collective_matmul",
            f"{comparison.target} takes {whose} {replace(other, runs=1)} apart, a collective matmul: "
            f"{plural(len(matmul.permutes), 'permute')}{often} {way} around the ring of {matmul.group_size} "
            f"between {plural(len(matmul.matmuls), 'partial matmul')}, which work on the pieces that are "
            "there" + ("." if sent is None else f"; it sends {sent:,} bytes, {_against(sent, other)}."),
            [mine] if mine else [],
            [other] if mine else [],
        )


def combined(comparison: Comparison) -> None:
    """Several collectives of the plan as one with several arrays."""
    for other in [one for one in comparison.theirs if one.pieces > 1]:
        several = _together(other, comparison.ours)
        if several:
            comparison.add(
                "combined_collectives",
                f"{comparison.target} carries {other.pieces} arrays in one {other}, for which the plan has "
                f"{len(several)} collectives: {listed(several)}; the bytes are the same.",
                several,
                [other],
            )


def carries_together(comparison: Comparison, one: Collective) -> None:
    """Several collectives of a program as one, whose pieces are compared one by one."""
    over = f" over {', '.join(one.axes)}" if one.axes else ""
    comparison.add(
        "combined_collectives",
        f"{comparison.target} carries {one.arrays} arrays in one {one.op}{over} ({one.bytes:,} bytes), which "
        "sends as many bytes as one for each of them.",
    )


def between_slices(comparison: Comparison) -> None:
    """Transfers that leave a TPU slice, as a send and a recv, with what is done inside the slices."""
    for other in [one for one in comparison.theirs if one.between_slices]:
        way = f"send and recv over the data-center network, {other.wire_bytes:,} bytes sent by a device"
        near = [
            one for one in comparison.ours if one.base_axes & other.base_axes and one.may_share_array(other)
        ]
        same = [one for one in near if one.is_like(other)]
        if not near:
            comparison.add(
                "between_slices",
                f"{comparison.target} moves {arrays([other])} between slices, by {with_article(other.op)}"
                f"{other.over} of {other.bytes:,} bytes: {way}.",
            )
            continue
        mine = next(iter(same or near))
        message = f"{comparison.target} carries the plan's {mine} between slices: {way}."
        inside = [] if same else _inside(comparison, mine, other)
        if inside:
            message = (
                f"{comparison.target} splits the plan's {mine}: inside each slice {listed(inside)}, between "
                f"slices {with_article(other.op)}{other.over} of {other.bytes:,} bytes by {way}."
            )
        comparison.add("between_slices", message, [mine], [other, *inside])


def fused_reduce_scatter(comparison: Comparison) -> None:
    """A reduce-scatter that the compiler made of the partitioner's all-reduce and slice."""
    before = comparison.partitioned or ()
    for one in comparison.scheduled:
        reduced = next((each for each in before if each.op == "all-reduce" and _is_sum_of(one, each)), None)
        if one.op == "reduce-scatter" and reduced is not None:
            comparison.add(
                "fused_reduce_scatter",
                f"{comparison.target} makes one reduce-scatter{_over(one)} ({one.bytes:,} bytes) of the "
                f"partitioner's all-reduce and slice: it sends {one.wire_bytes:,} bytes, and the all-reduce "
                f"would send {reduced.wire_bytes * one.bytes // max(1, reduced.bytes):,}.",
            )


def overlapped(comparison: Comparison) -> None:
    """Collectives that are under way while other work runs, all at once."""
    under = [one for one in comparison.scheduled if one.is_async and one.overlapped]
    if not under:
        return
    told = [f"{one.op}{_over(one)} ({one.bytes:,} bytes) under {under_way(one.overlapped)}" for one in under]
    more = len(told) - _MOST_TOLD
    also = f"; and {more:,} more" if more > 0 else ""
    count = len([one for one in comparison.scheduled if one.op != "slice"])
    which = f"{len(under)} of its {count:,} collectives" if count > 1 else "its collective"
    comparison.add(
        "overlapped",
        f"{comparison.target} runs other work during {which}: {'; '.join(told[:_MOST_TOLD])}{also}.",
    )


def _inside(comparison: Comparison, mine: ArrayTransfer, across: ArrayTransfer) -> list[ArrayTransfer]:
    """The target's transfers within its slices for a collective of the plan that crosses them."""
    found = [one for one in comparison.theirs if one is not across and one.may_share_array(mine)]
    return [one for one in found if not any(each.is_like(one) for each in comparison.ours)]


def _against(sent: int, other: ArrayTransfer) -> str:
    if sent == other.wire_bytes:
        return f"as many as the {other.op}"
    return f"where the {other.op} sends {other.wire_bytes:,}"


def _together(one: ArrayTransfer, among: Sequence[ArrayTransfer]) -> list[ArrayTransfer]:
    """As many transfers as `one` has arrays, of the same kind, with as many elements together."""
    same = [other for other in among if (other.op, other.base_axes) == (one.op, one.base_axes)]
    for several in combinations(same[:_MOST_COMBINED], one.pieces):
        if sum(other.elements for other in several) == one.elements:
            return list(several)
    return []


def _is_sum_of(scattered: Collective, reduced: Collective) -> bool:
    """The first may be the second followed by a slice."""
    elements = [each.bytes * 8 // max(1, BITS.get(each.dtype, 8)) for each in (scattered, reduced)]
    return frozenset(scattered.axes) == frozenset(reduced.axes) and elements[0] == elements[1]


def _over(one: Collective) -> str:
    return f" over {', '.join(one.axes)}" if one.axes else ""
