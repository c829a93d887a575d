"""`shardviz.inspect`: the collectives in a program of the user's own process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.api.meshes import JaxMesh
from shardviz.api.program import compiled_program
from shardviz.api.report import Report
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.hlo import Collective

_FLOAT = re.compile(r"\b(bf16|f\d\w*)\[")


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
    named = max(modules, key=lambda module: sum(bool(each.axes) for each in module.collectives), default=None)
    if named is not None and len(compiled.meshes) > 1:
        meshes = " and ".join(map(_written, compiled.meshes))
        notes.append(f"this program has several meshes: {meshes}; axes are named after {named.mesh}")
    module = read(compiled.text, infer=True) if named is None else named
    if compiled.is_for_cpu:
        notes += _widened(compiled.text, module.collectives)
    return Report(module, None if named is None else named.mesh, compiled.text, tuple(notes))


def _widened(text: str, collectives: Sequence[Collective]) -> list[str]:
    """Where XLA for CPU may have computed the floats of the arguments and results, which the first line of
    its text lists, in a wider type, and moved them so."""
    from shardviz.sharding.array import BITS

    moved = {each.dtype for each in collectives if each.wire_bytes and _FLOAT.match(f"{each.dtype}[")}
    widest = max(moved, key=BITS.__getitem__, default="")
    given = dict.fromkeys(_FLOAT.findall(text.partition("\n")[0]))
    narrower = [dtype for dtype in given if widest and BITS[dtype] < BITS[widest]]
    return [
        f"XLA for CPU computes {dtype} as {widest}: what carries {widest} here may carry {dtype} on a TPU or "
        f"GPU, 1/{BITS[widest] // BITS[dtype]} of the bytes"
        for dtype in narrower
    ]


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
