"""Parts of a mesh axis, such as ``X:(2)8``, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardviz.hlo import Collective
from shardviz.sharding import Mesh

_PART = re.compile(r"(.+):\((\d+)\)(\d+)")
MAX_TOLD = 3


def parts_of_axes(collectives: Iterable[Collective], mesh: Mesh | None) -> list[str]:
    """A sentence on each part of an axis that collectives run along, as far as they are few."""
    names = dict.fromkeys(axis for each in collectives for axis in each.axes)
    return [words for name in names if mesh and (words := part_of_axis(name, mesh))][:MAX_TOLD]


def part_of_axis(axis: str, mesh: Mesh) -> str:
    """``X:(2)8 is a part of X: X=16 is 2×8, and 8 is its inner factor``; "" for a whole axis."""
    part = _PART.fullmatch(axis)
    if part is None or part[1] not in mesh.axis_names:
        return ""
    name, above, size = part[1], int(part[2]), int(part[3])
    whole = mesh.axis_sizes[mesh.axis_names.index(name)]
    below = whole // (above * size)
    factors = "×".join(str(factor) for factor in (above, size, below) if factor > 1)
    place = "outer" if above == 1 else "inner" if below == 1 else "middle"
    return f"{axis} is a part of {name}: {name}={whole} is {factors}, and {size} its {place} factor"
