"""The times of a target's program: by the model, and by the compiler's own scheduler where it told them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.compiler.targets import parse_targets
from shardviz.errors import QuestionError, ShardvizError
from shardviz.hardware.machine import machine_of

if TYPE_CHECKING:
    from shardviz.compiler.target_result import TargetResult
    from shardviz.hardware.machine import Machine
    from shardviz.sharding import Mesh
    from shardviz.timeline.memory import MemoryReport
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class TargetTimelines:
    """The tellers of a target's program; `scheduler` is None where the compiler left no simulation.

    Without a `model`, `error` says why. `memory` is the compiler's account of it, also of a program that does
    not fit and has no times.
    """

    target: str
    model: ProgramTimeline | None = None
    scheduler: ProgramTimeline | None = None
    memory: MemoryReport | None = None
    error: ShardvizError | None = None


def target_timelines(compiled: TargetResult, mesh: Mesh, machine: Machine | None = None) -> TargetTimelines:
    """The times of an answer on a machine; None is the target's own hardware."""
    from shardviz.timeline.compiler_memory import on_clock
    from shardviz.timeline.of_program import program_timeline

    name = compiled.target
    if compiled.status != "ok":
        error = QuestionError(f"{name} has no program, and so no times", compiled.hint)
        return TargetTimelines(name, memory=compiled.memory, error=error)
    placement = compiled.placement
    try:
        machine = machine or _own(name)
        order = mesh if placement is None else placement.on(mesh)
        model = program_timeline(compiled.text, machine, mesh=order, placement=placement)
    except ShardvizError as error:
        return TargetTimelines(name, memory=compiled.memory, error=error)
    if compiled.memory is not None:
        model = replace(model, memory=on_clock(compiled.memory, model))
    scheduler = None
    if compiled.schedule is not None:
        from shardviz.timeline.scheduler import scheduler_timeline

        scheduler = scheduler_timeline(compiled.schedule, model, compiled.text)
    return TargetTimelines(name, model, scheduler, model.memory)


def _own(name: str) -> Machine:
    """The hardware of a target. Raises `QuestionError` for one without figures."""
    (target,) = parse_targets(name)
    if target.cluster is None:
        raise QuestionError(
            f"{name} has no hardware figures, so nothing tells how long its program takes",
            "ask a TPU or a GPU, as with --target v5e:2x4",
        )
    return machine_of(target.cluster)
