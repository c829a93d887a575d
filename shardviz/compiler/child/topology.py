"""Hardware that is not here: its devices as JAX describes them, and a mesh of them as JAX would place it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies

from shardviz.compiler.child.program import axis_types
from shardviz.compiler.described_hardware import target_config
from shardviz.compiler.messages import Question, TopologyRequest
from shardviz.errors import TargetError
from shardviz.hardware.clusters import parts_by_slice

SUGGESTED = 4
"""Meshes that a hint names."""
MAX_TRIED = 200
"""Meshes that are tried for it."""


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


def described_mesh(question: Question, devices: list[Any]) -> Any:
    """A JAX mesh of the devices; `TargetError` where JAX does not place one of these sizes on them."""
    mesh = question.mesh
    if mesh.device_order is not None:
        in_order = [devices[id_] for id_ in mesh.device_order]
        placed = np.array(in_order, dtype=object).reshape(mesh.axis_sizes)
    else:
        placed = _placed(question, devices)
    return jax.sharding.Mesh(placed, mesh.axis_names, axis_types=axis_types(mesh))


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


def _placed(question: Question, devices: list[Any]) -> Any:
    sizes = question.mesh.axis_sizes
    try:
        return _place(sizes, devices)
    except NotImplementedError as error:
        fitting = _fitting(sizes, devices)
        meshes = (",".join(map("{}={}".format, question.mesh.axis_names, each)) for each in fitting)
        where = "use --device-order row-major to place it by the ids"
        raise TargetError(
            f"jax.make_mesh does not place a mesh of {_times(sizes)} on {question.target}: "
            "no axis of the torus may be split between two axes of the mesh",
            f"{where}; these it places: {'; '.join(meshes)}" if fitting else where,
        ) from error


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


def _fitting(sizes: tuple[int, ...], devices: list[Any]) -> list[tuple[int, ...]]:
    """Meshes of as many axes that JAX places on these devices, the most similar first."""
    count = len(devices)
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    others = (each for each in product(divisors, repeat=len(sizes) - 1) if count % math.prod(each) == 0)
    candidates = [(*each, count // math.prod(each)) for each in others]

    def distance(each: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(each, sizes, strict=True))

    found: list[tuple[int, ...]] = []
    for each in sorted(candidates, key=distance)[:MAX_TRIED]:
        try:
            _place(each, devices)
        except NotImplementedError:
            continue
        found.append(each)
        if len(found) == SUGGESTED:
            break
    return found


def _slice(device: Any) -> int:
    index: int = getattr(device, "slice_index", 0)
    return index


def _times(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
