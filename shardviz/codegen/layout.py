"""One array's layout as a JAX program: who holds what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import devices_code, mesh_code, program_text, spec_code
from shardviz.errors import QuestionError
from shardviz.targets import MAX_CPU_DEVICES

if TYPE_CHECKING:
    from shardviz.sharding import Layout


def layout_code(layout: Layout) -> str:
    """A complete program that asks JAX what every device holds, and makes no array for that.

    Raises `QuestionError` for what JAX cannot say: uneven parts, pending sums, too many devices.
    """
    mesh, array = layout.mesh, layout.array
    if mesh.size > MAX_CPU_DEVICES:
        raise QuestionError(
            f"{mesh.size:,} devices are too many to simulate", f"use up to {MAX_CPU_DEVICES:,} devices"
        )
    if layout.uneven:
        raise QuestionError(
            "JAX places no array that its axes do not divide", "give sizes that are multiples of their parts"
        )
    if layout.spec.unreduced:
        raise QuestionError("JAX cannot say who holds which addend", "leave the pending sum out of the spec")
    if layout.spec.only_device is not None:
        raise QuestionError(
            "a NamedSharding is over all devices of its mesh, and one device holds this array",
            f"jax.sharding.SingleDeviceSharding(jax.devices()[{layout.spec.only_device}]) says it",
        )
    shape = "×".join(map(str, array.shape)) or "One number"
    numpy = ["import numpy as np"] if mesh.device_order is not None else []
    parts = [
        [f'"""{shape}, split as {spec_code(layout.spec)} on the mesh {mesh}."""', ""],
        ["import jax", *numpy, "from jax.sharding import AxisType, NamedSharding"],
        ["from jax.sharding import PartitionSpec as P", ""],
        [*devices_code(mesh.size, ""), ""],
        [*mesh_code(mesh, "Auto"), f"sharding = NamedSharding(mesh, {spec_code(layout.spec)})", ""],
        [
            f"shape = {array.shape}",
            'print("a device holds", sharding.shard_shape(shape))',
            "for device, index in sharding.devices_indices_map(shape).items():",
            "    bounds = [part.indices(size)[:2] for part, size in zip(index, shape)]",
            '    print(f"device {device.id}:", ", ".join(f"{start}:{stop}" for start, stop in bounds))',
        ],
    ]
    return program_text(parts)
