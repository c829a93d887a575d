"""The places of the mesh's devices on the machine and on the targets' hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.render.layouts.layout_view import DevicePlacement

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.placement import Placement


def device_placements(resolved: ResolvedProblem) -> list[DevicePlacement]:
    """The mesh on the machine that is named, and on the hardware of each target of its size, where JAX places
    it there."""
    mesh = resolved.problem.mesh
    found: dict[str, Placement] = {}
    if resolved.named is not None and resolved.named.placement is not None:
        found[resolved.named.machine.name] = resolved.named.placement
    for target in resolved.targets:
        if target.machine is None or target.machine.devices != mesh.size or target.name in found:
            continue
        # Only now: most problems ask no hardware.
        from shardviz.hardware.machine import place_mesh

        try:
            placement = place_mesh(target.machine, mesh).placement
        except QuestionError:
            continue
        if placement is not None:
            found[target.name] = placement
    return [DevicePlacement(name, placement) for name, placement in found.items()]
