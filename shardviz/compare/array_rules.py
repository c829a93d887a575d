"""The rules for how arrays are moved: one array's axes in another order or in turn, its sum in halves, more
of it gathered; then one einsum whose arrays the two sides do not bring together in the same way, since
they split the multiplication otherwise; and, by array, what no other rule explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from math import prod

from shardviz.compare.comparison import (
    ArrayTransfer,
    Comparison,
    acts,
    acts_on,
    against,
    arrays,
    cheaper,
    does,
    in_dtype,
    kinds,
    listed,
    listed_axes,
    one_of,
    verb,
    wire,
    with_article,
)
from shardviz.compare.moved_arrays import summed_operands
from shardviz.planner.problem import Statement
from shardviz.sharding import Mesh


def gathered_again(comparison: Comparison) -> None:
    target = comparison.target
    for side, again in ((comparison.theirs, True), (comparison.ours, False)):
        for one in _by(side, "all-gather"):
            same = next((pair for pair in comparison.equal if _is_same_gather(one, pair[0])), None)
            if same is None or one not in side:
                continue
            several = [transfer for transfer in side if _is_same_gather(transfer, same[0])]
            name, often = arrays([same[0]]), "again" if len(several) == 1 else f"{len(several)} times more"
            who, other = (target, "the plan") if again else ("the plan", target)
            message = f"{who} gathers {name}{one.over} {often} for other statements that take it, sending "
            message += f"{wire(several):,} bytes more; {other} keeps the copy."
            comparison.add("gathered_again", message, [] if again else several, several if again else [])


def _is_same_gather(one: ArrayTransfer, other: ArrayTransfer) -> bool:
    return one.kind == other.kind and one.op == "all-gather" and one.shares_array(other)


def reordered_axes(comparison: Comparison) -> None:
    """The devices of an axis taken in another order."""
    mesh = comparison.plan.problem.mesh
    for mine in list(comparison.ours):
        if other := _first(comparison.theirs, mine.op, mine, mesh):
            order = f"the devices of {', '.join(mine.axes)} in another order ({', '.join(other.axes)})"
            where = f"in its {other.op} of {other.bytes:,} bytes"
            sent = against(other.wire_bytes, mine.wire_bytes)
            message = f"{comparison.target} takes {order} {where}; {sent}."
            comparison.add("sub_axes", message, [mine], [other])


def split_collective(comparison: Comparison) -> None:
    for mine in list(comparison.ours):
        several = _covering(mine, comparison.theirs, comparison.plan.problem.mesh)
        if several and not _permuted(comparison.theirs, mine):
            message = f"{comparison.target} splits the plan's {mine} into {len(several)}: {listed(several)}."
            comparison.add("split_collective", message, [mine], several)


def merged_collectives(comparison: Comparison) -> None:
    for other in list(comparison.theirs):
        several = _covering(other, comparison.ours, comparison.plan.problem.mesh)
        if several and not _permuted(comparison.theirs, several[0]):
            message = f"{comparison.target} does in one {other} what the plan does in {len(several)} steps: "
            message += f"{listed(several)}; {against(other.wire_bytes, wire(several))}."
            comparison.add("merged_collectives", message, several, [other])


def scatter_and_gather(comparison: Comparison) -> None:
    target = comparison.target
    for whole_side, side in (comparison.sides, comparison.sides[::-1]):
        for whole in _by(whole_side, "all-reduce"):
            scatter = _first(side, "reduce-scatter", whole)
            gather, partner = _later_gather(side, whole, whole_side)
            if scatter is None or gather is None:
                continue
            sides, halves = ([whole, *partner], [scatter, gather]), f"two halves, a {scatter} and"
            too = f", besides {listed(partner)}" if partner else ""
            message = f"{target} writes the plan's psum{whole.over}{too} as {halves} an {gather}."
            if side is comparison.ours:
                sides = sides[::-1]
                message = f"{target} adds the partial sums in one {whole}{too}; the plan does it in {halves} "
                message += f"later an {gather}."
            comparison.add("scatter_and_gather", message, *sides)


def all_reduce_and_slice(comparison: Comparison) -> None:
    for mine in _by(comparison.ours, "reduce-scatter"):
        other = _first(comparison.theirs, "all-reduce", mine)
        if other is not None:
            slices = (one for one in comparison.slices if one.shares_array(other))
            is_cut = any(one.base_axes & other.base_axes for one in slices)
            whose = "" if comparison.plan.problem.is_chain else f" of {arrays([mine])}"
            message = (
                f"{comparison.target} does not scatter the sum{whose}: its all-reduce{other.over} of "
                f"{other.bytes:,} bytes{in_dtype(other, mine)} gives every device the whole of it, "
                f"{'of which a device keeps a slice' if is_cut else 'where the plan scatters it'}; it sends "
                f"{other.wire_bytes:,} bytes, and scattering the sum would send half of them."
            )
            comparison.add("all_reduce_and_slice", message, [mine], [other])


def scattered_less(comparison: Comparison) -> None:
    for part in comparison.plan.problem.parts:
        name = part.result.name
        summed = comparison.summed_over(name)
        ours, theirs = ([one for one in side if one.arrays == (name,)] for side in comparison.sides)
        # The axes over which every device gets the whole sum.
        here, there = (
            {axis for one in _by(side, "all-reduce") for axis in one.base_axes} for side in (ours, theirs)
        )
        kept = frozenset(there - here)
        if summed is not None and summed[0] == summed[1] and kept and any(one.is_sum for one in ours):
            over = listed_axes(kept, comparison.plan.problem.mesh)
            message = f"{comparison.target} does not scatter the sum of {name} over {over}, as the plan "
            message += f"does: it {does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}."
            comparison.add("scattered_less", message, ours, theirs)


def padded(comparison: Comparison) -> None:
    for mine in _by(comparison.ours, "reduce-scatter", "all-to-all", "all-gather"):
        among = [one for one in comparison.theirs if one.may_share_array(mine)]
        same = (one for one in _by(among, mine.op) if one.base_axes == mine.base_axes)
        wider = (one for one in same if mine.elements < one.elements < 1.5 * mine.elements)
        if (other := next(wider, None)) is None:
            continue
        mending = [one for one in _by(among, "collective-permute") if one.base_axes <= mine.base_axes]
        also = f", and puts its pieces right by {listed(mending)}" if mending else ""
        message = (
            f"{comparison.target} pads {arrays([mine])} for its {other.op}{other.over}, from {mine.bytes:,} "
            f"bytes to {other.bytes:,}{also}; {against(wire([other, *mending]), mine.wire_bytes)}."
        )
        comparison.add("padded", message, [mine], [other, *mending])


def gathered_more(comparison: Comparison) -> None:
    for mine in _by(comparison.ours, "all-gather"):
        same = [one for one in _by(comparison.theirs, "all-gather") if one.arrays == mine.arrays]
        other = next((one for one in same if one.base_axes == mine.base_axes), None)
        planned, _ = comparison.whole_route(mine.arrays)
        if other is None or any(one.elements >= other.elements for one in planned):
            continue
        before = [one for one in planned if one.place < mine.place and one in comparison.ours]
        steps, gather = comparison.plan.steps, comparison.plan.collectives[mine.place]
        earlier = steps[: steps.index(gather)]
        is_cut = any((step.op, step.array) == ("slice", *mine.arrays) for step in earlier)
        first = f"does {listed(before)}, then " if before else ""
        message = (
            f"{_gathers(comparison, other)}{_elements(other, mine)}; the plan "
            f"{'slices it first and ' if is_cut else ''}{first}gathers only {mine.bytes:,} bytes "
            f"({wire([*before, mine]):,} sent{' in all' if before else ''}){_elements(mine, other)}."
        )
        comparison.add("gathered_more", message, [*before, mine], [other])


def gathered_all(comparison: Comparison) -> None:
    """The target gathers more of an array, over other axes, where the plan only moves pieces of it."""
    for other in [one for one in _by(comparison.theirs, "all-gather") if len(one.arrays) == 1]:
        ours = [one for one in comparison.ours if one.arrays == other.arrays]
        alone = [one for one in comparison.theirs if one.shares_array(other)] == [other]
        if ours and alone and all(one.elements < other.elements for one in ours):
            message = f"{_gathers(comparison, other)}; the plan {does(ours)}."
            comparison.add("gathered_more", message, ours, [other])


def _elements(one: ArrayTransfer, other: ArrayTransfer) -> str:
    """The number of elements, where the sides' dtypes differ and their bytes cannot be compared."""
    return f", {one.elements:,} elements in {one.dtype}" if one.dtype != other.dtype else ""


def _gathers(comparison: Comparison, one: ArrayTransfer) -> str:
    whole = f"{arrays([one])}{one.over} to {one.bytes:,} bytes ({one.wire_bytes:,} sent)"
    return f"{comparison.target} gathers {whole}"


def other_route(comparison: Comparison) -> None:
    for one in [*comparison.ours, *comparison.theirs]:
        ours, theirs = comparison.whole_route(one.arrays)
        if not ours or not theirs or one not in (*comparison.ours, *comparison.theirs):
            continue
        both = f"it {does(theirs)}; the plan {does(ours)}{cheaper(theirs, ours)}"
        name = one_of(min((transfer.arrays for transfer in (*ours, *theirs)), key=len))
        code, how = _how(ours, theirs, [each for each in comparison.slices if each.shares_array(one)])
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
    if any(one.is_sum for one in theirs) and not any(one.is_sum for one in ours):
        return "by adding up partial sums of it, which the plan does not have"
    if "all-gather" in there and "all-gather" not in here:
        return "by gathering it, where the plan gathers none of it"
    if max(one.elements for one in theirs) > max(one.elements for one in ours):
        return "before it is cut as far as in the plan"
    if "collective-permute" in there and "collective-permute" not in here:
        return "by whole blocks to other devices, where the plan sends none"
    if here == there and [one.amount for one in ours] == [one.amount for one in theirs]:
        return "over other axes"
    return "by other collectives"


def extra_collective(comparison: Comparison) -> None:
    for names in dict.fromkeys(one.arrays for one in comparison.theirs):
        several = [one for one in comparison.theirs if one.arrays == names]
        message = (
            f"the plan sends nothing of {arrays(several)}{_unmoved(comparison, *names)}; "
            f"{comparison.target} {acts(several)}."
            if len(names) == 1 and not comparison.plans(names)
            else f"{comparison.target} has {with_article(listed(several))} that the plan does not need; it "
            f"sends {wire(several):,} bytes."
        )
        comparison.add("extra_collective", message, (), several)


def avoided_collective(comparison: Comparison) -> None:
    for names in dict.fromkeys(one.arrays for one in comparison.ours):
        mine = [one for one in comparison.ours if one.arrays == names]
        why = _unmoved(comparison, *names) if all(map(comparison.stays, names)) else ""
        message = (
            f"{comparison.target} gets by without the plan's {listed(mine)} of {arrays(mine)}, which "
            f"{'sends' if len(mine) == 1 else 'send'} {wire(mine):,} bytes{why}."
        )
        comparison.add("avoided_collective", message, mine)


def _unmoved(comparison: Comparison, name: str) -> str:
    for array in comparison.plan.problem.arguments:
        if array.name == name:
            return f": every device computes with what it holds of {name} by its spec, {array.decided_spec}"
    return f": {name} stays where its einsum makes it"


def _by(among: Sequence[ArrayTransfer], *ops: str) -> list[ArrayTransfer]:
    return [one for one in among if one.op in ops]


def _first(
    among: Sequence[ArrayTransfer], op: str, like: ArrayTransfer, mesh: Mesh | None = None
) -> ArrayTransfer | None:
    """One of kind `op` over the same axes of the same array, with as many elements; with a mesh it may have
    its axes in parts, in another order, of as many devices."""
    for one in _by(among, op):
        is_same = (one.base_axes, one.amount) == (like.base_axes, like.amount) and one.may_share_array(like)
        if is_same and (mesh is None or _devices([one], mesh) == _devices([like], mesh)):
            return one
    return None


def _devices(several: Sequence[ArrayTransfer], mesh: Mesh) -> int:
    return prod(mesh.group_size(one.axes) for one in several)


def _permuted(among: Sequence[ArrayTransfer], like: ArrayTransfer) -> bool:
    return any(one.shares_array(like) for one in _by(among, "collective-permute"))


def _later_gather(
    among: list[ArrayTransfer], reduced: ArrayTransfer, others: list[ArrayTransfer]
) -> tuple[ArrayTransfer | None, list[ArrayTransfer]]:
    """An all-gather that puts back together what a reduce-scatter in place of `reduced` would cut: alone, or
    together with axes of the same array that the other side gathers by itself, which follows."""
    for one in _by(among, "all-gather"):
        if one.base_axes >= reduced.base_axes and one.shares_array(reduced):
            rest = one.base_axes - reduced.base_axes
            same = (each for each in _by(others, "all-gather") if rest and each.base_axes == rest)
            partner = [*islice((each for each in same if each.shares_array(one)), 1)]
            if partner or not rest:
                return one, partner
    return None, []


def _covering(one: ArrayTransfer, among: Sequence[ArrayTransfer], mesh: Mesh) -> list[ArrayTransfer]:
    """Two or more transfers of the same kind that share out the axes of `one` between them, if any do."""
    within = (each for each in _by(among, one.op) if each.base_axes <= one.base_axes)
    same = [each for each in within if each.shares_array(one)]
    for count in range(2, min(4, len(same)) + 1):
        for several in combinations(same, count):
            covered = frozenset().union(*(other.base_axes for other in several))
            largest = max(other.elements for other in several)
            same_size = _devices(several, mesh) == _devices([one], mesh)
            if same_size and (covered, largest) == (one.base_axes, one.elements):
                return list(several)
    return []


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
