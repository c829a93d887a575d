"""The placement of the mesh's devices on the targets' clusters, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shardviz.render.layouts.cell_details import DevicePlacement

if TYPE_CHECKING:
    from shardviz.compiler import Target
    from shardviz.hardware import Placement
    from shardviz.sharding import Mesh
    from shardviz.tui.target_answers import ShownAnswer


def device_placements(
    targets: Iterable[Target], answers: Mapping[str, ShownAnswer], mesh: Mesh
) -> list[DevicePlacement]:
    """As the compilers have placed the mesh; on GPUs, whose order JAX leaves as it is, before they answer."""
    found = []
    for target in targets:
        answer = answers.get(target.name)
        compiled = answer.compiled if answer is not None else None
        placement = compiled.placement if compiled is not None else None
        if placement is None and target.process == "cuda":
            placement = _on_gpus(target, mesh)
        # An answer may be to the problem before.
        if placement is not None and len(placement.ids) == mesh.size:
            found.append(DevicePlacement(target.name, placement))
    return found


def unplaced_targets(
    targets: Iterable[Target],
    answers: Mapping[str, ShownAnswer],
    placements: Iterable[DevicePlacement],
    mesh: Mesh,
) -> list[str]:
    """The targets that place the mesh once they have answered."""
    over = {placement.target for placement in placements}
    over |= {name for name, answer in answers.items() if answer.compiled is not None}
    return [
        each.name
        for each in targets
        if each.cluster is not None and each.max_devices == mesh.size and each.name not in over
    ]


def _on_gpus(target: Target, mesh: Mesh) -> Placement | None:
    from shardviz.hardware.clusters import GpuNodes
    from shardviz.hardware.placement import DeviceCoords, Placement

    cluster = target.cluster
    if not isinstance(cluster, GpuNodes) or cluster.devices != mesh.size:
        return None
    ids = tuple(map(mesh.device_id, range(mesh.size)))
    return Placement(ids, tuple(DeviceCoords((), id_ % cluster.gpus, id_ // cluster.gpus) for id_ in ids))
