"""The arrays of a plan, their blocks numbered: the number gives a block its colour and glyph in all views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from shardviz.planner.plan import Parts, Plan, decided_parts
from shardviz.sharding import Layout

Numbered = tuple[Layout, int]
"""A layout and the number of its first block."""


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
