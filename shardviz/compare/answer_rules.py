"""The rules that look at both sides as a whole: dtypes, what is equal, idle axes, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from shardviz.compare.comparison import SAME_TRAFFIC, Comparison
from shardviz.compare.transfer import ArrayTransfer, kinds
from shardviz.compare.wording import acts_on, does, listed, wire
from shardviz.planner import Problem
from shardviz.planner.states.moves import state_of
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS
from shardviz.sharding.axis_parts import whole_axis


def packed(comparison: Comparison) -> None:
    """Several elements of the plan's in one integer of a wider dtype, as a TPU moves narrow ones.

    Such a collective has as many bytes as the plan's, and is counted in the plan's elements from here on.
    """
    told: dict[str, tuple[str, int]] = {}
    for number, one in enumerate(comparison.theirs):
        mine = next((each for each in comparison.ours if _holds(one, each)), None)
        if mine is not None:
            told[one.dtype] = mine.dtype, BITS[one.dtype] // BITS[mine.dtype]
            comparison.theirs[number] = replace(one, dtype=mine.dtype, elements=mine.elements)
    for wide, (narrow, count) in told.items():
        message = f"{comparison.target} packs {count} {narrow} into each {wide}; the bytes are the same."
        comparison.add("packed_dtype", message)


def _holds(packed: ArrayTransfer, plain: ArrayTransfer) -> bool:
    same = packed.op == plain.op and packed.base_axes == plain.base_axes and packed.bytes == plain.bytes
    wider = BITS.get(packed.dtype, 0) > BITS[plain.dtype]
    return same and wider and not packed.dtype.startswith(("f", "bf", "c")) and packed.may_share_array(plain)


def promoted(comparison: Comparison) -> None:
    """Say once that the target computes in a wider dtype, by its largest collective."""
    wider = [
        (one, planned)
        for one, planned in _with_planned_dtypes(comparison)
        # Signed numbers, floats and truth values in a wide u32 are packed, not computed with.
        if BITS.get(one.dtype, 0) > BITS[planned] and (one.dtype[0] != "u" or planned[0] == "u")
    ]
    if wider:
        words, ratio, also = _in_another_dtype(wider)
        times = "twice" if ratio == 2 else f"{ratio:g} times"
        comparison.add("promoted_dtype", f"{comparison.target} computes {words}, {times} as many{also}.")


def narrowed(comparison: Comparison) -> None:
    """Say once that the target moves floats in a narrower dtype, by its largest collective."""
    narrower = [
        (one, planned)
        for one, planned in _with_planned_dtypes(comparison)
        if _is_float(one.dtype) and _is_float(planned) and BITS[one.dtype] < BITS[planned] and one.pieces == 1
    ]
    if narrower:
        words, _, also = _in_another_dtype(narrower)
        comparison.add("narrowed_dtype", f"{comparison.target} moves {words}{also}.")


def _with_planned_dtypes(comparison: Comparison) -> list[tuple[ArrayTransfer, str]]:
    """The target's transfers, each with the dtype in which the plan moves that array, else its own, else the
    result's.

    A weight's gradient may have another one than the weight, and tokens have another than what is looked up.
    """
    problem = comparison.plan.problem
    own = {array.name: array.dtype for array in problem.arguments}

    def planned(one: ArrayTransfer) -> str:
        moved = [mine for mine in comparison.ours if mine.shares_array(one)]
        known = (own[name] for name in one.arrays if name in own and not one.is_sum)
        usual = next(known, problem.result.dtype)
        return next((mine.dtype for mine in moved if mine.is_sum == one.is_sum), usual)

    return [(one, planned(one)) for one in comparison.theirs]


def _in_another_dtype(moved: Sequence[tuple[ArrayTransfer, str]]) -> tuple[str, float, str]:
    """The largest transfer in words, its bytes over the planned, and how many more there are."""
    one, planned = max(moved, key=lambda each: each[0].bytes)
    before = array_bytes((one.elements,), planned)
    words = (
        f"{planned} as {one.dtype}: its {one.op}{one.over} carries {one.bytes:,} bytes instead of {before:,}"
    )
    return words, one.bytes / before, f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


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
    """Data moved over a mesh axis that no spec mentions, and what of the plan it replaces."""
    mesh = comparison.plan.problem.mesh
    idle = frozenset(mesh.axis_names) - _mentioned(comparison.plan.problem)
    moved = [one for one in comparison.theirs if one.base_axes & idle]
    if not moved:
        return
    touched = frozenset().union(*(one.base_axes for one in moved))
    names = ", ".join(axis for axis in mesh.axis_names if axis in touched & idle)
    names_moved = {name for one in moved for name in one.arrays}
    alone = len(moved) == len(comparison.theirs)
    replaced = [one for one in comparison.ours if alone or set(one.arrays) & names_moved]
    instead = f" and does {listed(replaced)} instead, sending {wire(replaced):,} bytes" if replaced else ""
    comparison.add(
        "idle_axis",
        f"{comparison.target} also splits data over {names}, which no spec mentions, and moves it there: "
        f"it {does(moved)}; the plan leaves {names} idle{instead}.",
        replaced,
        moved,
    )


def other_result(comparison: Comparison) -> None:
    """Free to choose the result's sharding, the target chose another."""
    chosen = comparison.result_spec
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
    comparison.add(
        code,
        f"free to choose the result's sharding, {comparison.target} leaves {name} as {chosen} "
        f"({held:,} bytes a device), the plan as {comparison.plan.result_spec}{for_that}.",
        ours,
        theirs,
    )


def _mentioned(problem: Problem) -> frozenset[str]:
    """The mesh axes that some spec of the problem names."""
    specs = [
        array.spec
        for part in problem.parts
        for array in (*part.operands, part.result)
        if array.spec is not None
    ]
    return frozenset(whole_axis(axis) for spec in specs for axis in (*spec.axes, *spec.unreduced))
