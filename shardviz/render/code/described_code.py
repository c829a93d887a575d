"""A mesh of TPUs or GPUs that are not here, described to their compiler."""

from __future__ import annotations

from shardviz.compiler.child.gpu_configs import target_config
from shardviz.compiler.machines import GpuNodes, Machines, TpuSlices
from shardviz.compiler.slices import parts_by_slice
from shardviz.render.code.spelling import mesh_code, placed_mesh_code, tuple_code
from shardviz.sharding import Mesh

_TOPOLOGIES = "from jax.experimental import topologies"
_XLA = "XLA for "
"""How the description of a target begins."""
_SPLIT = ("v5e",)
"""Chips of which `jax.make_mesh` splits an axis of the torus between two of the mesh."""


def described_mesh_code(machines: Machines, mesh: Mesh, axis_types: str) -> tuple[list[str], list[str]]:
    """Lines that describe the hardware and place the mesh on it as JAX would; the imports they need."""
    lines = _gpus(machines) if isinstance(machines, GpuNodes) else _tpus(machines)
    lines = ['jax.config.update("jax_platforms", "cpu")', "", *lines]
    if mesh.device_order is None and isinstance(machines, TpuSlices) and machines.slices > 1:
        helper = "from jax.experimental import mesh_utils, topologies"
        return [*lines, *_over_slices(machines, mesh, axis_types)], [helper]
    return [*lines, *mesh_code(mesh, axis_types, "devices")], [_TOPOLOGIES]


def _tpus(machines: TpuSlices) -> list[str]:
    machine = machines.machine
    options = "".join(f", {name}={_quoted(value)}" for name, value in machine.options)
    key = "(device.slice_index, device.id)" if machines.slices > 1 else "device.id"
    return [
        f"# {machines.description.removeprefix(_XLA)}, which need not be here: libtpu compiles for them.",
        f'found = topologies.get_topology_desc("{machine.topology}", platform="tpu"{options})',
        f"devices = sorted(found.devices, key=lambda device: {key})",
    ]


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _gpus(machines: GpuNodes) -> list[str]:
    return [
        f"# {machines.description.removeprefix(_XLA)}, which need not be here: their compiler is told of one",
        "# what follows.",
        f'GPU = """{target_config(machines.chip.name)}"""',
        "found = topologies.get_topology_desc(",
        f'    "any", platform="cuda", topology="{machines.machine.topology}", target_config=GPU',
        ")",
        "devices = sorted(found.devices, key=lambda device: device.id)",
    ]


def _over_slices(machines: TpuSlices, mesh: Mesh, axis_types: str) -> list[str]:
    within, across = parts_by_slice(mesh.axis_sizes, machines.slices)
    split = f"allow_split_physical_axes={machines.chip.name in _SPLIT}"
    return [
        "# The leading axes run across the slices, over the data-center network.",
        "placed = mesh_utils.create_hybrid_device_mesh(",
        f"    {tuple_code(within)}, {tuple_code(across)}, devices, {split}",
        ")",
        placed_mesh_code(mesh, axis_types),
    ]
