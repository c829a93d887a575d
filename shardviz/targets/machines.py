"""The machine that prices an answer: the one that is named, else the first hardware target, else an assumed
one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.machine import (
    Machine,
    PlacedMesh,
    assumed_machine,
    machine_of,
    on_assumed_machine,
)

if TYPE_CHECKING:
    from shardviz.sharding import Mesh
    from shardviz.targets import Target


def machine_for(named: str | Machine | None, targets: Iterable[Target], mesh: Mesh) -> Machine:
    """The machine of `--machine`; where nothing is `named`, the first TPU or GPU target of the mesh's size;
    without one, v5e chips of which every mesh axis is a ring (`Machine.assumed`).

    Raises `QuestionError` for a machine that does not exist or has a bad file.
    """
    if isinstance(named, Machine):
        return named
    if named is not None and named.strip():
        # With TOML, which nothing else here needs.
        from shardviz.hardware.machine_file import named_machine

        return named_machine(named)
    for target in targets:
        if target.cluster is not None and target.cluster.devices == mesh.size:
            return machine_of(target.cluster)
    return assumed_machine()


def placed_for(named: str | Machine | None, targets: Iterable[Target], mesh: Mesh) -> PlacedMesh:
    """The mesh on the machine that prices it, where JAX places it.

    A target on which JAX places no such mesh says so in its answer, and is not the machine. Raises
    `QuestionError` as `machine_for` does, and for a named machine of another size, or on which JAX does not
    place the mesh.
    """
    machine = machine_for(named, targets, mesh)
    if machine.assumed:
        return on_assumed_machine(machine, mesh)
    # The rules by which JAX places a mesh are loaded where there is somewhere to place it.
    from shardviz.hardware.mesh_placement import place_mesh

    try:
        return place_mesh(machine, mesh)
    except QuestionError:
        if named:
            raise
        return on_assumed_machine(assumed_machine(), mesh)
