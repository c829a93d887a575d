"""Which devices of a group are linked where a target has placed the mesh."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.hardware import Placement, Topology
    from shardviz.sharding import Mesh


def placed_topology(placement: Placement, mesh: Mesh, axes: Sequence[str]) -> Topology | None:
    """The links between the members of a group along `axes`, as their chips have them.

    A grid that closes along the axes that close there, or a switch where the group is in one node of GPUs.
    None where neighbours are not next to one another: on other slices or nodes, further away, or two cores
    of one chip.
    """
    from shardviz.hardware.placement import axis_runs
    from shardviz.hardware.topology import Switch, Torus

    runs = {run.axis: run for run in axis_runs(placement, mesh)}
    chosen = [runs[axis] for axis in axes]
    sizes = tuple(map(mesh.axis_size, axes))
    if any(run.hops != 1 for run, size in zip(chosen, sizes, strict=True) if size > 1):
        return None
    if not placement.torus:
        return Switch(math.prod(sizes))
    return Torus(sizes, tuple(run.is_ring for run in chosen))
