"""Plan against compiler: where they differ, and why. Of both sides' transfers equal ones are struck out; what
is left is explained by one rule after another, each striking out what it explains, from the most specific to
the plainest, in the order of `CAUSES`.

The rules of this file look at both sides as a whole, before any array: dtypes, how a compiler carries out
what it moves (in pieces, together, across slices, and when), what is equal, idle axes, the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product

from shardviz.compare import array_rules
from shardviz.compare.comparison import (
    AS_PLANNED,
    CAUSES,
    SAME_TRAFFIC,
    ArrayTransfer,
    Comparison,
    Difference,
    acts_on,
    arrays,
    compiled,
    does,
    elements_of,
    kinds,
    listed,
    over,
    planned,
    taken_apart,
    under_way,
    wire,
    with_article,
)
from shardviz.errors import plural
from shardviz.hlo import Collective
from shardviz.planner.plan import Plan
from shardviz.planner.states.moves import state_of
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS
from shardviz.sharding.axis_parts import whole_axis

__all__ = ["AS_PLANNED", "CAUSES", "SAME_TRAFFIC", "Difference", "differences"]


def packed_dtype(comparison: Comparison) -> None:
    """Several elements of the plan's in one integer of a wider dtype, as a TPU moves narrow ones: such a
    collective has as many bytes as the plan's, and is counted in the plan's elements from here on."""
    told: dict[str, str] = {}
    for number, one in enumerate(comparison.theirs):
        if one.dtype.startswith(("f", "bf", "c")):
            continue
        for mine in comparison.ours:
            is_same = (one.op, one.base_axes, one.bytes) == (mine.op, mine.base_axes, mine.bytes)
            is_wider = BITS.get(one.dtype, 0) > BITS[mine.dtype]
            if is_same and is_wider and one.may_share_array(mine):
                told[one.dtype] = mine.dtype
                comparison.theirs[number] = replace(one, dtype=mine.dtype, elements=mine.elements)
                break
    for wide, narrow in told.items():
        packs = f"{comparison.target} packs {BITS[wide] // BITS[narrow]} {narrow} into each {wide}"
        comparison.add("packed_dtype", f"{packs}; the bytes are the same.")


def other_dtypes(comparison: Comparison) -> None:
    """The dtype in which the plan moves an array is that of the array's own transfers, else its own, else the
    result's: a weight's gradient may have another than the weight, and tokens than what is looked up."""
    problem = comparison.plan.problem
    own = {array.name: array.dtype for array in problem.arguments}
    wider, narrower = [], []
    for one in comparison.theirs:
        known = (own[name] for name in one.arrays if name in own and not one.is_sum)
        moved = (mine for mine in comparison.ours if mine.shares_array(one) and mine.is_sum == one.is_sum)
        planned = next((mine.dtype for mine in moved), next(known, problem.forward[-1].result.dtype))
        # Signed numbers, floats and truth values in a wide u32 are packed, not computed with.
        if BITS.get(one.dtype, 0) > BITS[planned] and (one.dtype[0] != "u" or planned[0] == "u"):
            wider.append((one, planned))
        are_floats = all(dtype.startswith(("f", "bf")) for dtype in (one.dtype, planned))
        if are_floats and BITS[one.dtype] < BITS[planned] and one.pieces == 1:
            narrower.append((one, planned))
    for code, verb, casts in (("promoted_dtype", "computes", wider), ("narrowed_dtype", "moves", narrower)):
        if casts:
            one, planned = max(casts, key=lambda pair: pair[0].bytes)
            before = array_bytes((one.elements,), planned)
            ratio = one.bytes / before
            times = f", {'twice' if ratio == 2 else f'{ratio:g} times'} as many" if casts is wider else ""
            also = f" (and {len(casts) - 1} more)" if len(casts) > 1 else ""
            carries = f"its {one.op}{one.over} carries {one.bytes:,} bytes instead of {before:,}{times}{also}"
            comparison.add(code, f"{comparison.target} {verb} {planned} as {one.dtype}: {carries}.")


def collective_matmul(comparison: Comparison) -> None:
    for other in [one for one in comparison.theirs if one.taken_apart is not None]:
        same = [one for one in comparison.ours if one.is_like(other)]
        mine = next(iter([one for one in same if one.arrays == other.arrays] or same), None)
        matmul = other.taken_apart
        assert matmul is not None
        whose = "the plan's" if mine else "an" if other.op[0] == "a" else "a"
        permutes, runs = len(matmul.permutes), other.permute_runs
        often = f" ({runs:,} runs)" if runs not in (None, permutes) else ""
        message = (
            f"{comparison.target} takes {whose} {replace(other, runs=1)} apart, a collective matmul: "
            f"{plural(permutes, 'permute')}{often} {'both ways' if matmul.directions == 2 else 'one way'} "
            f"around the ring of {matmul.group_size} between "
            f"{plural(len(matmul.matmuls), 'partial matmul')}, which work on the pieces that are there"
        )
        if matmul.wire_bytes is not None:
            against = f"where the {other.op} sends {other.wire_bytes:,}"
            if matmul.wire_bytes == other.wire_bytes:
                against = f"as many as the {other.op}"
            message += f"; it sends {matmul.wire_bytes:,} bytes, {against}"
        comparison.add("collective_matmul", f"{message}.", *(([mine], [other]) if mine else ()))


def between_slices(comparison: Comparison) -> None:
    target = comparison.target
    for other in [one for one in comparison.theirs if one.between_slices]:
        way = f"send and recv over the data-center network, {other.wire_bytes:,} bytes sent by a device"
        moves = f"{with_article(other.op)}{other.over} of {other.bytes:,} bytes"
        along = (one for one in comparison.ours if one.base_axes & other.base_axes)
        near = [one for one in along if one.may_share_array(other)]
        if not near:
            message = f"{target} moves {arrays([other])} between slices, by {moves}: {way}."
            comparison.add("between_slices", message)
            continue
        same = [one for one in near if one.is_like(other)]
        mine = (same or near)[0]
        message = f"{target} carries the plan's {mine} between slices: {way}."
        inside: list[ArrayTransfer] = []
        if not same:
            among = [one for one in comparison.theirs if one is not other and one.may_share_array(mine)]
            inside = [one for one in among if not any(transfer.is_like(one) for transfer in comparison.ours)]
        if inside:
            message = f"{target} splits the plan's {mine}: inside each slice {listed(inside)}, between "
            message += f"slices {moves} by {way}."
        comparison.add("between_slices", message, [mine], [other, *inside])


def combined_collectives(comparison: Comparison) -> None:
    for other in [one for one in comparison.theirs if one.pieces > 1]:
        # As many as it has arrays, of the same kind, with as many elements together.
        same = [one for one in comparison.ours if (one.op, one.base_axes) == (other.op, other.base_axes)]
        for several in combinations(same[:8], other.pieces):
            if sum(one.elements for one in several) == other.elements:
                message = (
                    f"{comparison.target} carries {other.pieces} arrays in one {other}, for which the plan "
                    f"has {len(several)} collectives: {listed(several)}; the bytes are the same."
                )
                comparison.add("combined_collectives", message, several, [other])
                break


def fused_reduce_scatter(comparison: Comparison) -> None:
    before = [each for each in comparison.answer.partitioned or () if each.op == "all-reduce"]
    for one in [each for each in comparison.scheduled if each.op == "reduce-scatter"]:
        # It may be the second followed by a slice.
        same = (each for each in before if {*each.axes} == {*one.axes})
        reduced = next((each for each in same if elements_of(each) == elements_of(one)), None)
        if reduced is not None:
            comparison.add(
                "fused_reduce_scatter",
                f"{comparison.target} makes one reduce-scatter{over(one)} ({one.bytes:,} bytes) of the "
                f"partitioner's all-reduce and slice: it sends {one.wire_bytes:,} bytes, and the all-reduce "
                f"would send {reduced.wire_bytes * one.bytes // max(1, reduced.bytes):,}.",
            )


def overlapped(comparison: Comparison) -> None:
    under = [one for one in comparison.scheduled if one.is_async and one.overlapped]
    if not under:
        return
    told = [f"{one.op}{over(one)} ({one.bytes:,} bytes) under {under_way(one.overlapped)}" for one in under]
    also = f"; and {len(told) - 3:,} more" if len(told) > 3 else ""
    count = len([one for one in comparison.scheduled if one.op != "slice"])
    which = f"{len(under)} of its {count:,} collectives" if count > 1 else "its collective"
    words = "; ".join(told[:3])
    comparison.add("overlapped", f"{comparison.target} runs other work during {which}: {words}{also}.")


def strike_equal(comparison: Comparison) -> None:
    """Strike out what both sides have, of any dtype; first where the array is beyond doubt."""
    for is_sure, mine in product((True, False), list(comparison.ours)):
        same = (one for one in comparison.theirs if mine.is_like(one))
        other = next((one for one in same if one.arrays == mine.arrays or not is_sure), None)
        if other is not None and mine in comparison.ours:
            comparison.ours.remove(mine)
            comparison.theirs.remove(other)
            comparison.equal.append((mine, other))


def idle_axis(comparison: Comparison) -> None:
    mesh = comparison.plan.problem.mesh
    specs = [array.spec for array in comparison.plan.problem.arrays if array.spec is not None]
    used = {whole_axis(axis) for spec in specs for axis in (*spec.axes, *spec.unreduced)}
    idle = {*mesh.axis_names} - used
    moved = [one for one in comparison.theirs if one.base_axes & idle]
    if not moved:
        return
    touched = frozenset().union(*(one.base_axes for one in moved))
    names = ", ".join(axis for axis in mesh.axis_names if axis in touched & idle)
    names_moved = {name for one in moved for name in one.arrays}
    alone = len(moved) == len(comparison.theirs)
    replaced = [one for one in comparison.ours if alone or set(one.arrays) & names_moved]
    instead = f" and does {listed(replaced)} instead, sending {wire(replaced):,} bytes" if replaced else ""
    message = f"{comparison.target} also splits data over {names}, which no spec mentions, and moves it there"
    message += f": it {does(moved)}; the plan leaves {names} idle{instead}."
    comparison.add("idle_axis", message, replaced, moved)


def other_result(comparison: Comparison) -> None:
    chosen = comparison.answer.result_spec
    problem = comparison.plan.problem
    if problem.result.spec is not None or chosen is None:
        return
    if state_of(chosen, problem.mesh) == state_of(comparison.plan.result_spec, problem.mesh):
        return
    name = problem.result.name
    array = problem.result.with_spec(chosen)
    held = array_bytes(array.shard_shape(problem.mesh), array.dtype)
    ours, theirs = list(comparison.ours), list(comparison.theirs)
    is_alone = all(one.code in SAME_TRAFFIC for one in comparison.found)
    code, for_that = "other_result", ""
    if kinds(ours) != kinds(theirs):
        for_that = f"; for that it {does(theirs)} where the plan {does(ours)}"
    elif is_alone:
        code, for_that = "only_other_result", "; both move the same bytes"
        if ours:
            for_that = f"; it {acts_on(theirs)}, the plan {acts_on(ours)}{for_that}"
    message = (
        f"free to choose the result's sharding, {comparison.target} leaves {name} as {chosen} "
        f"({held:,} bytes a device), the plan as {comparison.plan.result_spec}{for_that}."
    )
    comparison.add(code, message, ours, theirs)


ALWAYS: tuple[Callable[[Comparison], None], ...] = (
    packed_dtype,
    other_dtypes,
    collective_matmul,
    between_slices,
    combined_collectives,
    fused_reduce_scatter,
    overlapped,
    strike_equal,
    idle_axis,
    other_result,
)
WHILE_SOMETHING_IS_LEFT: tuple[Callable[[Comparison], None], ...] = (
    array_rules.gathered_again,
    array_rules.summed_apart,
    array_rules.moved_elsewhere,
    array_rules.reordered_axes,
    array_rules.padded,
    array_rules.scatter_and_gather,
    array_rules.all_reduce_and_slice,
    array_rules.split_collective,
    array_rules.merged_collectives,
    array_rules.scattered_less,
    array_rules.gathered_more,
    array_rules.summed_first,
    array_rules.other_sums,
    array_rules.other_array,
    array_rules.other_split,
    array_rules.gathered_all,
    array_rules.other_route,
    array_rules.extra_collective,
    array_rules.avoided_collective,
)


def differences(plan: Plan, answer: TargetResult) -> tuple[Difference, ...]:
    """Every difference between the plan and a target's answer; nothing where there is no answer."""
    if answer.status != "ok":
        return ()
    collectives: Sequence[Collective] = answer.collectives
    combined: list[Collective] = []
    if not plan.problem.is_chain:
        collectives, combined = taken_apart(collectives, answer.partitioned)
    answered = compiled(collectives, plan.problem, answer.collective_matmuls)
    theirs, slices = ([one for one in answered if (one.op == "slice") is is_cut] for is_cut in (False, True))
    parts = {name for matmul in answer.collective_matmuls for name in matmul.permutes}
    scheduled = [one for one in collectives if one.name not in parts]
    comparison = Comparison(plan, answer, planned(plan), theirs, slices, scheduled)
    for one in combined:  # their pieces are compared one by one
        comparison.add(
            "combined_collectives",
            f"{answer.target} carries {one.arrays} arrays in one {one.op}{over(one)} ({one.bytes:,} bytes), "
            "which sends as many bytes as one for each of them.",
        )
    for rule in ALWAYS:
        rule(comparison)
    for rule in WHILE_SOMETHING_IS_LEFT:
        if comparison.ours or comparison.theirs:
            rule(comparison)
    return tuple(comparison.found)
