"""From what the child sends back to an answer. Texts are read here, where no compiler waits for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shardviz.compiler.messages import NO_ROOM, Output, Versions
from shardviz.devices.question import Case, Measurement, NoMeasurement
from shardviz.errors import CompilerError, NotationError, plural
from shardviz.hardware.measured import COLLECTIVES
from shardviz.hlo import Collective, HloModule, read_hlo, read_shardy
from shardviz.hlo.arguments import arguments_of
from shardviz.hlo.mlir.collectives import reshard_moves
from shardviz.hlo.mlir.operations import MlirModule
from shardviz.hlo.mlir.shardings import named_shardings
from shardviz.hlo.mlir.shardy import read_module
from shardviz.hlo.overlap import matmul_orders
from shardviz.notation.spec_string import write_spec
from shardviz.planner.problem import Problem
from shardviz.planner.states.moves import spec_of
from shardviz.reports.lowered_module import LoweredModule
from shardviz.reports.program_report import TargetProgram, widened_types
from shardviz.reports.rematerialization import rematerializations
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import joined_parts
from shardviz.targets import Target
from shardviz.timeline.compiler_memory import (
    does_not_fit,
    memory_over_limit,
    on_chip_misfit,
    read_memory,
    ways_to_fit,
)
from shardviz.timeline.scheduler import read_schedule


def read_output(output: Output, problem: Problem, target: Target, versions: Versions) -> TargetResult:
    """The answer of a target. Raises what the readers raise for a text that they cannot read."""
    answer = replace(
        _with_costs(output, target, versions),
        # The last result of a train step's program is the forward pass's, that of its plan is another.
        result_spec=None if problem.training else output.result.result_spec,
        text=with_parts_of_axes(output.result.text, problem.mesh),
        hint=output.result.hint or _hint(output, problem, target),
    )
    if answer.status != "ok":
        return _unfit(answer)
    mesh = problem.mesh
    if target.name == "shardy":
        operations = MlirModule(with_parts_of_axes(output.located, mesh) or answer.text)
        shardy = read_module(operations, mesh)
        spec = shardy.result_specs[-1]
        if spec is None and "sdy.mesh" not in answer.text:
            spec = PartitionSpec.replicated(problem.result.rank)
        elif spec is not None:
            spec = _joined(spec, mesh)
        # How Shardy leaves what each statement makes, where there are several.
        shapes = {part.result.name: part.result.shape for part in problem.forward}
        splits = named_shardings(operations, shapes) if len(shapes) > 1 else {}
        moved = (replace(one, axes=joined_parts(one.axes, mesh.shape)) for one in shardy.collectives)
        return replace(
            answer,
            collectives=tuple(moved),
            result_spec=None if problem.training else _as_asked(spec, problem),
            splits=tuple((name, _joined(own, mesh)) for name, own in splits.items()),
            moves=tuple(
                replace(move, axes=joined_parts(move.axes, mesh.shape), spec=_joined(move.spec, mesh))
                for move in (reshard_moves(operations) if problem.is_reshard else ())
            ),
        )
    module = _module(answer, mesh)
    partitioned: tuple[Collective, ...] = ()  # without partitions there is no such module
    if output.partitioned:
        # This one is of all slices still.
        whole = mesh if answer.placement is None else answer.placement.on(mesh)
        partitioned = read_hlo(output.partitioned, whole, origins=True).collectives
    assert module.index is not None
    orders = matmul_orders(module.index, module.collective_matmuls)
    records = zip(module.collectives, module.lines, strict=True)
    return replace(
        answer,
        collectives=tuple(replace(record, matmul_order=orders.get(line)) for record, line in records),
        partitioned=partitioned,
        collective_matmuls=module.collective_matmuls,
    )


def read_program(
    output: Output, program: LoweredModule, target: Target, versions: Versions, options: Mapping[str, Any]
) -> TargetProgram:
    """A target's answer to a user's program, compiled with `options`. Raises what the readers raise."""
    answer = _with_costs(output, target, versions)
    if answer.status != "ok":
        if output.memory is not None:
            # The last text: scheduled, or as far as the compiler came.
            answer = replace(answer, text=output.memory.module or output.partitioned or "")
        answer = _unfit(answer)
        if not answer.text:
            return TargetProgram(answer, warned=rematerializations(output.warnings, program.mesh))
    text = answer.text
    if target.name == "shardy":
        shardy = read_shardy(text, program.mesh)
        answer = replace(answer, collectives=shardy.collectives)
        return TargetProgram(answer, shardy, program.mesh, reshards=output.reshards, lowered=program)
    meshes = program.meshes or (program.mesh,)
    modules = [_module(answer, mesh) for mesh in meshes]
    named, mesh = max(
        zip(modules, meshes, strict=True), key=lambda pair: sum(bool(one.axes) for one in pair[0].collectives)
    )
    notes = [*program.notes]
    if len(meshes) > 1:
        listed = " and ".join(map(str, meshes))
        notes.append(f"this program has several meshes: {listed}; axes are named after {mesh}")
    if program.unsplit:
        told = _first_few(program.unsplit)
        notes.append(f"no sharding is given for {told}: the compiler chooses, as it does when the step runs")
    if target.name == "cpu":
        notes += widened_types(text, named.collectives)
    if not program.platform and target.machine is not None:
        notes.append("it was already lowered for the devices of its own process; pass the function instead")
    # Donated arguments whose memory the compiled text gives to no result.
    kept = {argument.number for argument in arguments_of(text) if argument.is_donated}
    lost = [one.path for number, one in enumerate(program.arguments) if one.is_donated and number not in kept]
    said = [f"donated buffers not reused by any result: {_first_few(lost)}"] if lost else []
    said += [f"JAX: {program.lost_donation}"] if program.lost_donation else []
    return TargetProgram(
        replace(answer, collectives=named.collectives, collective_matmuls=named.collective_matmuls),
        named,
        mesh,
        tuple(notes),
        tuple(said),
        rematerializations(output.warnings, mesh, text),
        output.reshards,
        program,
        options,
        output.shardings,
    )


def _with_costs(output: Output, target: Target, versions: Versions) -> TargetResult:
    """The child's result with the compiler's simulation, if it can be read, and its account of memory."""
    schedule, memory = None, None
    if output.schedule:
        with suppress(NotationError):
            schedule = read_schedule(output.schedule)
    if (texts := output.memory) is not None:
        limit = None if target.machine is None else target.machine.device.limit_bytes
        module = output.result.text or texts.module or output.partitioned or ""
        memory = read_memory(dict(texts.sizes), texts.assignment, texts.live_ranges, module, limit)
        if output.result.status != "ok":
            memory = memory_over_limit(memory, output.result.error)
    return replace(output.result, versions=versions, schedule=schedule, memory=memory)


def _unfit(answer: TargetResult) -> TargetResult:
    """A refusal; of a program that does not fit it says by how much, and what helps."""
    memory = answer.memory
    if memory is None:
        return answer
    if memory.over_bytes:
        return replace(answer, error=does_not_fit(memory), hint=answer.hint or ways_to_fit(memory))
    error, hint = on_chip_misfit(memory, answer.error)
    return replace(answer, error=error, hint=answer.hint or hint) if error else answer


def _module(answer: TargetResult, mesh: Mesh) -> HloModule:
    """The answer's text, read for a mesh where its devices are placed."""
    placement = answer.placement
    if placement is None:
        return read_hlo(answer.text, mesh, origins=True)
    return read_hlo(answer.text, placement.on(mesh), slices=placement.slices, origins=True)


def _first_few(paths: Sequence[str]) -> str:
    """``w['a'], w['b'], w['c'] and 3 more arguments``."""
    more = len(paths) - 3
    return ", ".join(paths[:3]) + f" and {plural(more, 'more argument')}" * (more > 0)


def read_loop(
    output: tuple[Measurement | NoMeasurement, str], case: Case, mesh: Mesh
) -> Measurement | NoMeasurement:
    """The row of a measurement, with what the compiler made of it, by the text of its final module, that was
    not asked for. Raises `CompilerError` where it left nothing of the collective in the loop."""
    row, text = output
    if isinstance(row, NoMeasurement) or not case.is_collective:
        return row
    # A loop whose length only the run tells has a collective of which nobody knows how often it runs.
    inside = [collective for collective in read_hlo(text, mesh).collectives if collective.count is None]
    if not inside:
        raise CompilerError(f"XLA has removed {case.op} from the timed loop")
    op, dtype = inside[0].op, inside[0].dtype
    notes = [f"XLA runs {case.op} as {op} here"] * (op != COLLECTIVES[case.op])
    notes += [f"XLA moves {case.dtype} as {dtype} here"] * (dtype != case.dtype)
    return replace(row, note="; ".join(notes))


_PART_AS_AXIS = re.compile(r'"([A-Za-z]\w*):(\(\d+\)\d+)"')
"""A part of a mesh axis, as the axis of the JAX mesh that stands for it."""


def with_parts_of_axes(text: str, mesh: Mesh) -> str:
    """Shardy's text of a program for which parts of axes were axes: as Shardy writes the parts itself."""
    if _PART_AS_AXIS.search(text) is None:
        return text
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.shape.items())
    declared = r"(sdy\.mesh @\w+ = <\[)[^\]]*\]>(?: \{stablehlo\.mesh = .*\}\})?"
    return _PART_AS_AXIS.sub(r'"\1":\2', re.sub(declared, rf"\1{axes}]>", text))


def _joined(spec: PartitionSpec, mesh: Mesh) -> PartitionSpec:
    """The spec, in which neighbouring parts of an axis are one."""
    return spec_of((spec.dims, spec.unreduced), mesh)


def _as_asked(spec: PartitionSpec | None, problem: Problem) -> PartitionSpec | None:
    """Shardy leaves out axes of size 1; where that is all, the result is as the question has it."""
    asked, mesh = problem.result.spec, problem.mesh
    if spec is None or asked is None:
        return spec
    split = tuple(tuple(axis for axis in axes if mesh.axis_size(axis) > 1) for axes in asked.dims)
    return asked if spec == PartitionSpec(split, asked.unreduced) else spec


def _hint(output: Output, problem: Problem, target: Target) -> str:
    """A change with which JAX accepts the question; "" where none is known."""
    error = output.result.error
    if output.result.status == "ok":
        return ""
    if NO_ROOM.search(error):
        return "use smaller --sizes, a target of more devices, or specs that split more dimensions"
    if output.settled_by is not None:
        name, settled = output.settled_by
        return f"out_sharding={settled} resolves it: give {name} the spec {write_spec(settled)}"
    arrays = (*problem.arguments, *(part.result for part in problem.parts))
    for array in arrays:
        if re.search(rf"\b{array.dtype}\b", error, re.IGNORECASE):
            return f"this compiler lacks an operation on {array.dtype}: use --dtype bf16, f32 or s8"
    for array in arrays:
        if array.spec is None:
            continue
        parts = array.spec.parts(problem.mesh)
        for dim, size, count, axes in zip(array.dims, array.shape, parts, array.spec.dims, strict=True):
            if size % count:
                return (
                    f"dimension {dim} of {array.name} has {size:,} elements, which {count:,} devices along "
                    f"{', '.join(axes)} do not divide: choose a multiple of {count:,}, or leave it whole"
                )
    if target.machine is not None:
        return "the compiler rejects it: try other --sizes or another chip, or ask --target shardy,cpu"
    return ""
