"""From what the child sends back to an answer. Texts are read here, where no compiler waits for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.compiler.messages import NO_ROOM
from shardviz.devices.measurement import Measurement, NoMeasurement
from shardviz.errors import CompilerError, NotationError
from shardviz.hardware.machine import machine_of
from shardviz.hardware.measured import COLLECTIVES
from shardviz.hlo import read_hlo, read_shardy
from shardviz.hlo.mlir.named_shardings import named_shardings
from shardviz.hlo.mlir.reshard_moves import ShardyMove, reshard_moves
from shardviz.hlo.schedule.matmul_order import with_matmul_order
from shardviz.notation import write_spec
from shardviz.planner.statements.resharding import is_only_reshard
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import PartitionSpec
from shardviz.sharding.axis_parts import joined_parts
from shardviz.targets.described_hardware import placement_of
from shardviz.timeline.compiler_memory import (
    does_not_fit,
    memory_over_limit,
    on_chip_misfit,
    read_memory,
    ways_to_fit,
)
from shardviz.timeline.compiler_schedule import CompilerSchedule, read_schedule

if TYPE_CHECKING:
    from shardviz.compiler.messages import LoopOutput, Output, Spec, Versions
    from shardviz.devices.question import Case
    from shardviz.hlo import Collective
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh
    from shardviz.targets import Target
    from shardviz.timeline.memory import MemoryReport


def read_output(output: Output, problem: Problem, target: Target, versions: Versions) -> TargetResult:
    """The answer of a target. Raises what the readers raise for a text that they cannot read."""
    answer = replace(
        output.result,
        # The last result of a train step's program is the forward pass's, that of its plan is another.
        result_spec=None if problem.training else _partition_spec(output.result_spec, problem.mesh),
        text=with_parts_of_axes(output.result.text, problem.mesh),
        hint=output.result.hint or _hint(output, problem, target),
        versions=versions,
        schedule=schedule_of(output),
        memory=memory_of(output, target),
    )
    if answer.status != "ok":
        return unfit(answer)
    if target.name == "shardy":
        located = with_parts_of_axes(output.located, problem.mesh) or answer.text
        shardy = read_shardy(located, problem.mesh)
        spec = shardy.result_specs[-1]
        if spec is None and "sdy.mesh" not in answer.text:
            spec = PartitionSpec.replicated(problem.result.rank)
        elif spec is not None:
            spec = _joined(spec, problem.mesh)
        return replace(
            answer,
            collectives=tuple(
                replace(one, axes=joined_parts(one.axes, problem.mesh.shape)) for one in shardy.collectives
            ),
            result_spec=None if problem.training else _as_asked(spec, problem),
            splits=_splits(located, problem),
            moves=_moves(answer.text, problem),
        )
    placement = placement_of(target.cluster, output.devices)
    mesh = problem.mesh if placement is None else placement.on(problem.mesh)
    slices = None if placement is None else placement.slices
    module = read_hlo(answer.text, mesh, origins=True, slices=slices)
    partitioned: tuple[Collective, ...] = ()
    if output.partitioned:
        # This one is of all slices still.
        partitioned = read_hlo(output.partitioned, mesh, origins=True).collectives
    return replace(
        answer,
        collectives=with_matmul_order(answer.text, module.collectives, module.collective_matmuls),
        # Without partitions there is no module after partitioning, and nothing that moves.
        partitioned=partitioned,
        collective_matmuls=module.collective_matmuls,
        placement=placement,
    )


def schedule_of(output: Output) -> CompilerSchedule | None:
    """The compiler's own simulation, where it left one that can be read."""
    if not output.schedule:
        return None
    try:
        return read_schedule(output.schedule)
    except NotationError:
        return None


def memory_of(output: Output, target: Target) -> MemoryReport | None:
    """The compiler's account of a device's memory, against what the target's chip allows."""
    if output.memory is None:
        return None
    texts = output.memory
    device = None if target.cluster is None else machine_of(target.cluster).device
    limit = None if device is None else device.usable_bytes or device.hbm_bytes
    module = output.result.text or texts.module
    report = read_memory(dict(texts.sizes), texts.assignment, texts.live_ranges, module, limit)
    return report if output.result.status == "ok" else memory_over_limit(report, output.result.error)


def unfit(answer: TargetResult) -> TargetResult:
    """A refusal; of a program that does not fit it says by how much, and what helps."""
    memory = answer.memory
    if memory is None:
        return answer
    if memory.over_bytes:
        return replace(answer, error=does_not_fit(memory), hint=answer.hint or ways_to_fit(memory))
    error, hint = on_chip_misfit(memory, answer.error)
    return replace(answer, error=error, hint=answer.hint or hint) if error else answer


def read_loop(output: LoopOutput, case: Case, mesh: Mesh) -> Measurement | NoMeasurement:
    """The row, with what the compiler made of it that was not asked for. Raises `CompilerError` where it left
    nothing of the collective in the loop."""
    row = output.row
    if isinstance(row, NoMeasurement) or not case.is_collective:
        return row
    # A loop whose length only the run tells has a collective of which nobody knows how often it runs.
    inside = [each for each in read_hlo(output.text, mesh).collectives if each.count is None]
    if not inside:
        raise CompilerError(f"XLA has left no {case.op} in the loop that was to be timed")
    return replace(row, note="; ".join(_notes(case, inside[0])))


def _notes(case: Case, found: Collective) -> Iterator[str]:
    if found.op != COLLECTIVES[case.op]:
        yield f"XLA runs {case.op} as {found.op} here"
    if found.dtype != case.dtype:
        yield f"XLA moves {case.dtype} as {found.dtype} here"


_PART_AS_AXIS = re.compile(r'"([A-Za-z]\w*):(\(\d+\)\d+)"')
"""A part of a mesh axis, as the axis of the JAX mesh that stands for it."""
_DECLARED_MESH = re.compile(r"(sdy\.mesh @\w+ = <\[)[^\]]*\]>(?: \{stablehlo\.mesh = .*\}\})?")


def with_parts_of_axes(text: str, mesh: Mesh) -> str:
    """Shardy's text of a program for which parts of axes were axes: as Shardy writes the parts itself."""
    if _PART_AS_AXIS.search(text) is None:
        return text
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.shape.items())
    text = _DECLARED_MESH.sub(rf"\1{axes}]>", text)
    return _PART_AS_AXIS.sub(r'"\1":\2', text)


def _splits(located: str, problem: Problem) -> tuple[tuple[str, PartitionSpec], ...]:
    """The specs in which Shardy leaves what each statement makes; none for a program of one statement."""
    shapes = {part.result.name: part.result.shape for part in problem.forward}
    found = named_shardings(located, shapes) if len(shapes) > 1 else {}
    return tuple((name, _joined(spec, problem.mesh)) for name, spec in found.items())


def _moves(text: str, problem: Problem) -> tuple[ShardyMove, ...]:
    """The moves of a problem that is a reshard, with neighbouring parts of an axis as one."""
    if not is_only_reshard(problem):
        return ()
    mesh = problem.mesh
    return tuple(
        replace(move, axes=joined_parts(move.axes, mesh.shape), spec=_joined(move.spec, mesh))
        for move in reshard_moves(text)
    )


def _partition_spec(spec: Spec | None, mesh: Mesh) -> PartitionSpec | None:
    return None if spec is None else _joined(PartitionSpec(spec.dims, spec.unreduced), mesh)


def _joined(spec: PartitionSpec, mesh: Mesh) -> PartitionSpec:
    """The spec, in which neighbouring parts of an axis are one."""
    sizes = mesh.shape
    dims = tuple(joined_parts(axes, sizes) for axes in spec.dims)
    return PartitionSpec(dims, joined_parts(spec.unreduced, sizes))


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
    settled = _partition_spec(output.settled_by, problem.mesh)
    if settled is not None:
        name = problem.parts[output.refused_part].result.name
        return f"out_sharding={settled} settles it: give {name} the spec {write_spec(settled)}"
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
    if target.cluster is not None:
        return "its compiler says so itself: try other --sizes or another chip, or ask --target shardy,cpu"
    return ""
