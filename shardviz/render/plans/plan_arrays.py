"""The arrays of a plan, every sharding decided, and numbers for their blocks.

All views draw a block in the colour and glyph of its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from shardviz.planner.plan import Plan
from shardviz.sharding import Layout, ShardedArray

Numbered = tuple[Layout, int]
"""A layout and the number of its first block."""
Parts = list[tuple[tuple[ShardedArray, ...], ShardedArray]]
"""Operands and result of every part of a chain."""


def einsum_parts(plan: Plan) -> Parts:
    """The operands as each einsum takes them, and its result as it leaves it, often as partial sums."""
    specs = {array.name: array.spec for part in plan.problem.parts for array in part.operands}
    taken: Parts = []
    for step in plan.steps:
        if step.op == "einsum":
            part = plan.problem.parts[len(taken)]
            operands = tuple(
                operand if spec is None else operand.with_spec(spec)
                for operand, spec in ((each, specs[each.name]) for each in part.operands)
            )
            taken.append((operands, part.result.with_spec(step.to_spec)))
        specs[step.array] = step.to_spec
    return taken


def decided_parts(plan: Plan) -> Parts:
    """Operands and result of every part, with the plan's spec wherever the compiler may choose.

    A result is shown as its einsum and the reduction after it leave it.
    """
    made: list[ShardedArray] = []
    parts = plan.problem.parts
    for step in plan.steps:
        if step.op == "einsum":
            made.append(parts[len(made)].result.with_spec(step.to_spec))
        elif made and step.array == made[-1].name and step.op in ("psum", "psum_scatter"):
            made[-1] = made[-1].with_spec(step.to_spec)
    made[-1] = made[-1].with_spec(plan.result_spec)
    shown = []
    for number, part in enumerate(parts):
        operands = [
            operand if operand.spec is not None else operand.with_spec(made[number - 1].spec)
            for operand in part.operands
        ]
        result = made[number] if part.result.spec is None else part.result
        shown.append((tuple(operands), result))
    return shown


def numbered_parts(plan: Plan, parts_of: Callable[[Plan], Parts] = decided_parts) -> list[list[Numbered]]:
    """For every part of the chain the layouts of its operands and its result, each with its first number.

    `parts_of` says how they are sharded: as the problem has them, or as the einsum does (`einsum_parts`).
    An intermediate keeps its numbers where the next part uses it: it is the same data. The partial sums of
    a block share its number.
    """
    first = 0
    seen: dict[str, int] = {}
    parts = []
    for operands, result in parts_of(plan):
        part = []
        for array in (*operands, result):
            layout = Layout(array, plan.problem.mesh)
            key = f"{array.name} {layout.spec}"
            if key not in seen:
                seen[key] = first
                first += layout.num_shards // plan.problem.mesh.group_size(layout.spec.unreduced)
            part.append((layout, seen[key]))
        parts.append(part)
    return parts


def count_of(parts: Iterable[Sequence[Numbered]]) -> int:
    """The number of blocks that are numbered."""
    return max(first + math.prod(layout.parts) for part in parts for layout, first in part)
