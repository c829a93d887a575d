"""Hardware that is not here: its devices as JAX describes them, and a mesh of them as JAX would place it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies

from shardviz.compiler.child.program import axis_types
from shardviz.compiler.messages import CompileModule, Question
from shardviz.errors import TargetError
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import machine_of
from shardviz.hardware.mesh_placement import not_placed
from shardviz.hardware.torus_order import parts_by_slice
from shardviz.sharding import Mesh
from shardviz.targets.described_hardware import TopologyRequest, target_config


def described_devices(request: TopologyRequest) -> list[Any]:
    """The devices in the order of their ids; their positions here are the ids that shardviz shows."""
    options = dict(request.options)
    if request.platform == "cuda":
        options = {"topology": request.topology, "target_config": target_config(options["gpu"])}
        found = topologies.get_topology_desc("any", platform="cuda", **options)
    else:
        found = topologies.get_topology_desc(request.topology, platform=request.platform, **options)
    # On several slices the ids leave gaps.
    return sorted(found.devices, key=lambda device: (_slice(device), device.id))


def described_mesh(question: Question | CompileModule, devices: list[Any]) -> Any:
    """A JAX mesh of the devices; `TargetError` where JAX does not place one of these sizes on them."""
    mesh = question.mesh
    if mesh.device_order is not None:
        in_order = [devices[id_] for id_ in mesh.device_order]
        placed = np.array(in_order, dtype=object)
    else:
        placed = _placed(question, devices)
    return jax.sharding.Mesh(placed.reshape(mesh.jax_sizes), mesh.jax_names, axis_types=axis_types(mesh))


def places(mesh: Any, devices: list[Any]) -> tuple[tuple[int, tuple[int, ...], int, int], ...]:
    """Of the device at each mesh position: id, coordinates, core, slice; of a GPU: id, (), number, node."""
    ids = {device: id_ for id_, device in enumerate(devices)}
    first_of_node: dict[int, int] = {}
    for id_, device in enumerate(devices):
        first_of_node.setdefault(device.process_index, id_)
    found = []
    for device in mesh.devices.flat:
        id_ = ids[device]
        if device.platform == "tpu":
            found.append((id_, tuple(device.coords), device.core_on_chip, _slice(device)))
        else:
            found.append((id_, (), id_ - first_of_node[device.process_index], device.process_index))
    return tuple(found)


def _placed(question: Question | CompileModule, devices: list[Any]) -> Any:
    sizes = question.mesh.axis_sizes
    try:
        return _place(sizes, devices)
    except NotImplementedError as error:
        cluster = parse_cluster(question.target)
        assert cluster is not None
        mesh = Mesh(question.mesh.axis_names, sizes)
        raise TargetError(*not_placed(machine_of(cluster), mesh)) from error


def _place(sizes: tuple[int, ...], devices: list[Any]) -> Any:
    """The devices as `jax.make_mesh` places them; across slices, as `create_hybrid_device_mesh` does with the
    leading axes. Raises `NotImplementedError`."""
    slices = len({_slice(device) for device in devices})
    if slices == 1:
        names = tuple(f"a{axis}" for axis in range(len(sizes)))
        return jax.make_mesh(sizes, names, devices=devices).devices
    within, across = parts_by_slice(sizes, slices)
    # The condition of jax.make_mesh.
    split = devices[0].device_kind in ("TPU v5 lite", "TPU v5e")
    return mesh_utils.create_hybrid_device_mesh(within, across, devices, allow_split_physical_axes=split)


def _slice(device: Any) -> int:
    index: int = getattr(device, "slice_index", 0)
    return index
