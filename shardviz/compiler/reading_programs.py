"""From what the child sends back of a program of the user's to the program as a target has compiled it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.compiler.reading import memory_of, schedule_of, unfit
from shardviz.errors import plural
from shardviz.hlo import HloModule, read_hlo, read_shardy
from shardviz.hlo.arguments import arguments_of
from shardviz.reports.rematerialization import Rematerialization, rematerializations
from shardviz.reports.target_program import TargetProgram, widened_types
from shardviz.sharding import Mesh
from shardviz.targets.described_hardware import placement_of

if TYPE_CHECKING:
    from shardviz.compiler.messages import Output, Versions
    from shardviz.reports.lowered_module import LoweredModule
    from shardviz.targets import Target

FEW_PATHS = 3
"""Arguments that a sentence names."""


def read_program(
    output: Output,
    program: LoweredModule,
    target: Target,
    versions: Versions,
    options: Mapping[str, Any],
) -> TargetProgram:
    """The answer of a target to a program that it compiled with `options`. Raises what the readers raise for
    a text that they cannot read."""
    text = output.result.text
    answer = replace(
        output.result, versions=versions, schedule=schedule_of(output), memory=memory_of(output, target)
    )
    if answer.status != "ok":
        answer = unfit(answer)
        if not text:
            return TargetProgram(answer, warned=_warned(output, program.mesh))
    if target.name == "shardy":
        shardy = read_shardy(text, program.mesh)
        answer = replace(answer, collectives=shardy.collectives)
        return TargetProgram(answer, shardy, program.mesh, reshards=output.reshards, lowered=program)
    placement = placement_of(target.cluster, output.devices)
    slices = None if placement is None else placement.slices
    meshes = program.meshes or (program.mesh,)
    placed = [mesh if placement is None else placement.on(mesh) for mesh in meshes]
    modules = [read_hlo(text, mesh, slices=slices, origins=True) for mesh in placed]
    named, mesh = max(zip(modules, meshes, strict=True), key=lambda each: _named(each[0]))
    notes = [
        *program.notes,
        *[f"this program has several meshes: {_listed(meshes)}; axes are named after {mesh}"]
        * (len(meshes) > 1),
    ]
    if program.unsplit:
        told = _first_few(program.unsplit)
        notes.append(f"no sharding is given for {told}: the compiler chooses, as it does when the step runs")
    if target.name == "cpu":
        notes += widened_types(text, named.collectives)
    if not program.platform and target.cluster is not None:
        notes.append("it was lowered before, for the devices of its own process; better give the function")
    answer = replace(
        answer,
        collectives=named.collectives,
        collective_matmuls=named.collective_matmuls,
        placement=placement,
    )
    lost = _lost_donations(program, text)
    warned = _warned(output, mesh)
    return TargetProgram(answer, named, mesh, tuple(notes), lost, warned, output.reshards, program, options)


def _lost_donations(program: LoweredModule, text: str) -> tuple[str, ...]:
    """A sentence for donated arguments whose memory the compiled `text` gives to no result, and JAX's own."""
    kept = {each.number for each in arguments_of(text) if each.is_donated}
    lost = [path for number, path in program.donated if number not in kept]
    told = [f"donated in vain: no result takes the memory of {_first_few(lost)}"] if lost else []
    return (*told, *(f"JAX: {said}" for said in [program.lost_donation] if said))


def _warned(output: Output, mesh: Mesh) -> tuple[Rematerialization, ...]:
    """The arrays of which XLA warns; its log numbers devices by their positions in the mesh."""
    if not output.warnings:
        return ()
    return rematerializations(output.warnings, mesh, output.result.text)


def _named(module: HloModule) -> int:
    """The number of collectives with axes."""
    return sum(bool(each.axes) for each in module.collectives)


def _first_few(paths: Sequence[str]) -> str:
    """``w['a'], w['b'] and 3 more arguments``."""
    more = len(paths) - FEW_PATHS
    return ", ".join(paths[:FEW_PATHS]) + f" and {plural(more, 'more argument')}" * (more > 0)


def _listed(meshes: Sequence[Mesh]) -> str:
    return " and ".join(map(str, meshes))
