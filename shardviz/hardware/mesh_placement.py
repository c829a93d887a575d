"""The place of each mesh axis on a machine: where `jax.make_mesh` puts it, in pure Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural
from shardviz.hardware.clusters import Fault, mesh_of_size, parse_cluster, times
from shardviz.hardware.machine import Machine, PlacedMesh, on_assumed_machine
from shardviz.hardware.placement import Placement

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

SUGGESTED = 4
"""Meshes that a hint names."""
MAX_TRIED = 200
"""Meshes that are tried for it."""


def place_mesh(
    machine: Machine, mesh: Mesh, placement: Placement | None = None, *, of_program: bool = False
) -> PlacedMesh:
    """The mesh on the machine: as `placement` has it, else in the mesh's own device order, else as JAX places
    it. One `of_program` is compiled for so many devices, and the hint does not tell to resize it.

    Raises `QuestionError` for a mesh of another size than the machine, and for one that JAX does not place.
    """
    if machine.assumed:
        return on_assumed_machine(machine, mesh)
    family = machine.family
    if placement is not None:
        return PlacedMesh(machine, family.levels_of_places(mesh, placement), placement)
    if mesh.size != machine.devices:
        raise _another_size(machine, mesh, of_program)
    order = family.jax_order(mesh.axis_sizes) if mesh.device_order is None else mesh.device_order
    if order is None:
        raise QuestionError(*not_placed(machine, mesh))
    if isinstance(order, list):
        return PlacedMesh(
            machine, family.levels_of_parts(mesh, order), family.placement(family.ids_of(order))
        )
    placement = family.placement(order)
    return PlacedMesh(machine, family.levels_of_places(mesh, placement), placement)


def is_placed(machine: Machine, sizes: Sequence[int]) -> bool:
    """Return whether JAX places a mesh of these sizes, which multiply to the machine's devices."""
    return machine.family.jax_order(sizes) is not None


def not_placed(machine: Machine, mesh: Mesh) -> tuple[str, str]:
    """The error and the hint for a mesh that `jax.make_mesh` does not place."""
    fitting = _fitting(machine, mesh.axis_sizes)
    meshes = (",".join(map("{}={}".format, mesh.axis_names, other)) for other in fitting)
    where = "use --device-order row-major to place it by the ids"
    return (
        f"jax.make_mesh does not place a mesh of {times(mesh.axis_sizes)} on {machine.name}: "
        "no axis of the torus may be split between two axes of the mesh",
        f"{where}; these it places: {'; '.join(meshes)}" if fitting else where,
    )


def _fitting(machine: Machine, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Meshes of as many axes that JAX places on the machine, the most similar first."""
    count = machine.devices
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    majors = product(divisors, repeat=len(sizes) - 1)
    candidates = [(*major, count // math.prod(major)) for major in majors if count % math.prod(major) == 0]

    def distance(other: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(other, sizes, strict=True))

    placed: list[tuple[int, ...]] = []
    for other in sorted(candidates, key=distance)[:MAX_TRIED]:
        if is_placed(machine, other):
            placed.append(other)
        if len(placed) == SUGGESTED:
            break
    return placed


def _another_size(machine: Machine, mesh: Mesh, of_program: bool) -> QuestionError:
    hints = []
    try:
        cluster = parse_cluster(machine.name)
    except Fault:
        cluster = None
    if cluster is not None and (fitting := cluster.of_size(mesh.size)):
        hints.append(f"--machine {' or '.join(fitting)}")
    if not of_program:
        hints.append(f"--mesh {mesh_of_size(mesh, machine.devices)}")
    made_of = "" if cluster is None else cluster.made_of
    return QuestionError(
        f"{machine.name} has {plural(machine.devices, 'device')}{made_of}, but the mesh {mesh} has "
        f"{mesh.size:,}",
        f"use {', or '.join(hints) or f'a machine of {mesh.size:,}'}",
    )
