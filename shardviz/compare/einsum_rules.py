"""The rules for one einsum whose arrays the two sides do not bring together in the same way, since they split
the multiplication otherwise: what is left of all its arrays is told in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardviz.compare.comparison import (
    ArrayTransfer,
    Comparison,
    acts,
    acts_on,
    against,
    arrays,
    cheaper,
    kinds,
    listed,
    listed_axes,
    verb,
    wire,
)
from shardviz.compare.moved_arrays import summed_operands
from shardviz.planner.problem import Statement


def moved_elsewhere(comparison: Comparison) -> None:
    chains = [comparison.of_einsum(part) for part in comparison.plan.problem.parts]
    for ours, theirs in (
        *(_on_one_side(*sides) for sides in chains),
        *chains,
        (comparison.ours, comparison.theirs),
    ):
        is_left = {*ours} <= {*comparison.ours} and {*theirs} <= {*comparison.theirs}
        if ours and is_left and kinds(ours) == kinds(theirs):
            message = f"{comparison.target} {acts_on(theirs)} where the plan {acts_on(ours)}: the same "
            message += f"collectives; {against(wire(theirs), wire(ours))}."
            comparison.add("moved_elsewhere", message, [*ours], [*theirs])


def summed_first(comparison: Comparison) -> None:
    for part in comparison.plan.problem.parts:
        ours, theirs = comparison.of_einsum(part)
        moved = {name for one in theirs for name in one.arrays}
        sums = [array.name for array in summed_operands(part).values() if array.name in moved]
        if sums:
            message = f"{comparison.target} multiplies by {' and '.join(sums)}, where the plan adds up while "
            message += f"it multiplies: {_both(theirs, ours)}."
            comparison.add("summed_first", message, ours, theirs)


def summed_apart(comparison: Comparison) -> None:
    made = {part.result.name: part for part in comparison.plan.problem.parts}
    for mine in [one for one in comparison.ours if one.is_sum and len(one.arrays) == 1]:
        summands = _summands(mine.arrays[0], made)
        sums = [one for one in comparison.theirs if one.is_sum and one.base_axes == mine.base_axes]
        several = [one for one in sums if one.arrays and summands.issuperset(one.arrays)]
        if len(several) == 1 and several[0].kind == mine.kind:
            # The addition went in front of it, and it still has a summand's name.
            comparison.equal.append((mine, several[0]))
            comparison.ours.remove(mine)
            comparison.theirs.remove(several[0])
        elif summands and several:
            message = (
                f"{comparison.target} adds up the summands of {mine.arrays[0]} each by itself, by "
                f"{listed(several)}; the plan adds them on every device first, and then over devices by one "
                f"{mine}; {against(wire(several), mine.wire_bytes)}."
            )
            comparison.add("summed_apart", message, [mine], several)


def _summands(name: str, made: Mapping[str, Statement]) -> set[str]:
    """The arrays that are added to make one, all that are summands of these included."""
    part = made.get(name)
    if part is None or part.function != "add":
        return set()
    operands = {operand.name for operand in part.operands}
    return operands.union(*(_summands(operand, made) for operand in operands))


def other_sums(comparison: Comparison) -> None:
    mesh, target = comparison.plan.problem.mesh, comparison.target
    for part in comparison.plan.problem.parts:
        result = part.result.name
        summed = comparison.summed_over(result)
        ours, theirs = comparison.of_einsum(part)
        if summed is None or summed[0] == summed[1]:
            continue
        planned, added = summed
        here, there = _moved_before(ours, part), _moved_before(theirs, part)
        here, there = _instead(here, there, added - planned), _instead(there, here, planned - added)
        if (here and added > planned) or (there and added < planned):
            is_reduced = added > planned
            code = "reduced_not_gathered" if is_reduced else "gathered_not_reduced"
            who, other = ("the plan", target) if is_reduced else (target, "the plan")
            lead = (
                f"{who} {_prepares(here if is_reduced else there)} before {_work(part)}, {other} "
                f"{'multiplies' if _work(part) == 'multiplying' else 'works on'} the pieces "
                f"and adds partial sums of {result} over {listed_axes(added ^ planned, mesh)}"
            )
        elif not ours or not theirs:
            continue
        else:
            code = "other_sums"
            here_over, there_over = (listed_axes(axes, mesh) or "no axis" for axes in summed)
            lead = (
                f"{target} splits the {_name(part)} otherwise, with partial sums of {result} "
                f"over {there_over}, the plan over {here_over}"
            )
        comparison.add(code, f"{lead}: {_both(theirs, ours)}.", ours, theirs)


def other_array(comparison: Comparison) -> None:
    """One side moves an operand and the other another one, or the result after multiplying."""
    for part in comparison.plan.problem.parts:
        ours, theirs = _on_one_side(*comparison.of_einsum(part))
        here, there = _moved_before(ours, part), _moved_before(theirs, part)
        if not ours or not theirs or not (here or there):
            continue
        first, second = ("the plan", here), (comparison.target, there or theirs)
        code, after = "result_not_operand", " after it"
        if here and there:
            is_gathered = {one.op for one in (*here, *there)} == {"all-gather"}
            code, after = "gathered_other_operand" if is_gathered else "other_operand", ""
        elif there:
            first, second, code = (comparison.target, there), ("the plan", ours), "operand_not_result"
        lead = f"{first[0]} {_prepares(first[1])} before {_work(part)}, "
        lead += f"{second[0]} {_prepares(second[1])}{after}"
        comparison.add(code, f"{lead}: {_both(theirs, ours)}.", ours, theirs)


def other_split(comparison: Comparison) -> None:
    for part in comparison.plan.problem.parts:
        ours, theirs = comparison.of_einsum(part)
        alone = _on_one_side(ours, theirs)
        if any(alone) and len({one.arrays for one in (*ours, *theirs)}) > 1:
            names = " and ".join(operand.name for operand in part.operands)
            message = f"{comparison.target} splits the {_name(part)} of {names} otherwise: "
            comparison.add("other_split", f"{message}{_both(theirs, ours)}.", ours, theirs)


def _name(part: Statement) -> str:
    """The name of a statement's work: one operand is not multiplied by anything."""
    if part.function != "multiply":
        return part.function
    return "multiplication" if len(part.operands) > 1 else "einsum"


def _work(part: Statement) -> str:
    return "multiplying" if _name(part) == "multiplication" else f"its {_name(part)}"


def _both(theirs: Sequence[ArrayTransfer], ours: Sequence[ArrayTransfer]) -> str:
    return f"it {acts(theirs)}; the plan {acts(ours)}{cheaper(theirs, ours)}"


def _prepares(several: Sequence[ArrayTransfer]) -> str:
    """Such as "gathers A", "moves A and W"."""
    gathers = {one.op for one in several} == {"all-gather"}
    return f"{'gathers' if gathers else verb(several)} {arrays(several)}"


def _moved_before(several: Sequence[ArrayTransfer], part: Statement) -> list[ArrayTransfer]:
    names = {array.name for array in part.operands}
    return [one for one in several if names.issuperset(one.arrays)]


def _instead(
    several: Sequence[ArrayTransfer], others: Sequence[ArrayTransfer], axes: frozenset[str]
) -> list[ArrayTransfer]:
    """Those of arrays that the others leave as they are, at least over the axes."""

    def is_left(one: ArrayTransfer) -> bool:
        alike = [other for other in others if one.shares_array(other)]
        along = any(other.base_axes & axes for other in alike)
        return not alike or (bool(one.base_axes & axes) and not along)

    return [one for one in several if is_left(one)]


def _on_one_side(
    ours: Sequence[ArrayTransfer], theirs: Sequence[ArrayTransfer]
) -> tuple[list[ArrayTransfer], list[ArrayTransfer]]:
    mine, others = ({name for one in side for name in one.arrays} for side in (ours, theirs))
    alone = [one for one in ours if not others & {*one.arrays}]
    return alone, [one for one in theirs if not mine & {*one.arrays}]
