"""Hardware that is not here: its devices as JAX describes them, and a mesh of them as JAX would place it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies

from shardviz.compiler.child.program import axis_types
from shardviz.compiler.messages import TargetMesh
from shardviz.devices.found_hardware import found_placement, slice_of
from shardviz.errors import TargetError
from shardviz.hardware.chip_torus import parts_by_slice
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import not_placed
from shardviz.hardware.placement import Placement
from shardviz.targets.hardware import TopologyRequest, target_config


def described_mesh(mesh: TargetMesh) -> tuple[Any, Placement]:
    """A JAX mesh of the devices that a target's topology describes, and where they stand.

    Raises `TargetError` where JAX does not place a mesh of these sizes on them.
    """
    machine = parse_cluster(mesh.target)
    assert mesh.topology is not None
    assert machine is not None
    devices = described_devices(mesh.topology)
    if mesh.mesh.device_order is not None:
        placed = np.array([devices[id_] for id_ in mesh.mesh.device_order], dtype=object)
    else:
        try:
            placed = _place(mesh.mesh.axis_sizes, devices)
        except NotImplementedError as error:
            raise TargetError(*not_placed(machine, mesh.mesh)) from error
    jax_mesh = jax.sharding.Mesh(placed.reshape(mesh.jax_sizes), mesh.jax_names, axis_types=axis_types(mesh))
    return jax_mesh, found_placement(machine.family, [*jax_mesh.devices.flat])


def described_devices(request: TopologyRequest) -> list[Any]:
    """The devices in the order of their ids; their positions here are the ids that shardviz shows."""
    options = dict(request.options)
    if request.platform == "cuda":
        options = {"topology": request.topology, "target_config": target_config(options["gpu"])}
        found = topologies.get_topology_desc("any", platform="cuda", **options)
    else:
        found = topologies.get_topology_desc(request.topology, platform=request.platform, **options)
    # On several slices the ids leave gaps.
    return sorted(found.devices, key=lambda device: (slice_of(device), device.id))


def _place(sizes: tuple[int, ...], devices: list[Any]) -> Any:
    """The devices as `jax.make_mesh` places them; across slices, as `create_hybrid_device_mesh` does with the
    leading axes. Raises `NotImplementedError`."""
    slices = len({slice_of(device) for device in devices})
    if slices == 1:
        names = tuple(f"a{axis}" for axis in range(len(sizes)))
        return jax.make_mesh(sizes, names, devices=devices).devices
    within, across = parts_by_slice(sizes, slices)
    # The condition of jax.make_mesh.
    split = devices[0].device_kind in ("TPU v5 lite", "TPU v5e")
    return mesh_utils.create_hybrid_device_mesh(within, across, devices, allow_split_physical_axes=split)
