"""`shardviz.inspect`: the collectives in a program of the user's own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.api.meshes import JaxMesh
from shardviz.api.program import compiled_program
from shardviz.api.report import Report
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.hlo import Collective


def inspect(program: Any, /, *args: Any, **kwargs: Any) -> Report:
    """The collectives that XLA put into a program, with the mesh's own axis names and device ids.

    `program` is a jitted function with its arguments (arrays or `jax.ShapeDtypeStruct`s with shardings; it
    is compiled, not run), a plain function, which is jitted as it stands, or what `lower` or `compile`
    returned. The mesh is that of the arguments' and results' shardings; without one, axes are inferred from
    the devices that take part in each collective.

    Raises `QuestionError` for what is no program; what JAX raises comes through.
    """
    from shardviz.hlo import HloModule
    from shardviz.hlo import read_hlo as read

    compiled = compiled_program(program, args, kwargs)
    modules: list[HloModule] = []
    notes = []
    for mesh in compiled.meshes:
        try:
            module = read(compiled.text, mesh.mesh(), slices=mesh.slices)
        except QuestionError as error:
            notes.append(f"axes are not named after the mesh {_written(mesh)}: {error.message}")
        else:
            modules.append(replace(module, collectives=_with_ids(module.collectives, mesh.ids)))
    if not modules:
        module = read(compiled.text, infer=True)
        return Report(module, None, compiled.text, tuple(notes))
    best = max(modules, key=lambda module: sum(bool(each.axes) for each in module.collectives))
    if len(compiled.meshes) > 1:
        meshes = " and ".join(map(_written, compiled.meshes))
        notes.append(f"this program has several meshes: {meshes}; axes are named after {best.mesh}")
    return Report(best, best.mesh, compiled.text, tuple(notes))


def _written(mesh: JaxMesh) -> str:
    return ",".join(f"{name}={size}" for name, size in zip(mesh.axis_names, mesh.axis_sizes, strict=True))


def _with_ids(collectives: Sequence[Collective], ids: Sequence[int] | None) -> tuple[Collective, ...]:
    """Groups in the ids of the devices, which were numbered from 0 in the order of these."""
    number = sorted(ids or ())
    if number == [*range(len(number))]:
        return tuple(collectives)
    return tuple(
        each
        if each.groups is None
        else replace(each, groups=tuple(tuple(number[i] for i in group) for group in each.groups))
        for each in collectives
    )
