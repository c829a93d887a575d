"""Which case of the textbook a multiplication is, axis by axis.

They are the four of "How to Scale Your Model", part 3 (https://jax-ml.github.io/scaling-book/sharding).
"""

from __future__ import annotations

from shardviz.notation.einsum import Einsum
from shardviz.planner.moves import State

NO_CASE = "no textbook case"
CASES = {
    "case 1": "no axis splits a summed dimension; textbook: multiply",
    "case 2": "an axis splits a summed dimension in one operand only; textbook: gather it, then multiply",
    "case 3": "an axis splits a summed dimension alike; textbook: multiply, then add the partial sums",
    "case 4": "both operands use an axis for dimensions of their own; textbook: gather one, then multiply",
    NO_CASE: "an axis splits in a way that must be brought in line first, such as two orders or a diagonal",
}
"""What each case is, and what the textbook does; a plan departs from it where that sends less."""


def case_of(einsum: Einsum, starts: tuple[State, ...], axis_names: tuple[str, ...]) -> str:
    """Such as ``"case 3 over Y"``, ``"case 2 over X, case 4 over Y"``, or ``"case 1"``."""
    found: dict[str, list[str]] = {}
    for axis in axis_names:
        case = _case(einsum, starts, axis)
        if case != "case 1":
            found.setdefault(case, []).append(axis)
    if not found:
        return "case 1"
    return ", ".join(f"{case} over {', '.join(axes)}" for case, axes in sorted(found.items()))


def _case(einsum: Einsum, starts: tuple[State, ...], axis: str) -> str:
    places = [
        (dims, dim, axes)
        for dims, (placed, _) in zip(einsum.operands, starts, strict=True)
        for dim, axes in zip(dims, placed, strict=True)
        if axis in axes
    ]
    if any(dims.count(dim) > 1 for dims, dim, _ in places):
        return NO_CASE
    summed = [dim in einsum.contracted for _, dim, _ in places]
    if len(places) == 2 and places[0][1] == places[1][1]:
        if places[0][2] != places[1][2]:
            return NO_CASE
        return "case 3" if summed[0] else "case 1"
    if not any(summed):
        return "case 4" if len(places) == 2 else "case 1"
    alone = all(sum(dim in dims for dims in einsum.operands) == 1 for _, dim, _ in places)
    return "case 3" if alone else "case 2"
