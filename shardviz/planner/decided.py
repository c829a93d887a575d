"""The arrays of a plan with every sharding decided, where the problem may leave some open."""

from __future__ import annotations

from shardviz.planner.plan import Plan
from shardviz.sharding import ShardedArray

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
