"""A compiled program: its collectives with what they cost, and its time and memory on a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import NoMachineError, QuestionError, ShardvizError
from shardviz.hlo import HloModule, ShardyModule, read, read_hlo
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.targets import parse_targets
from shardviz.timeline.of_program import on_clock, timed_program
from shardviz.timeline.scheduler import (
    NO_ESTIMATES,
    NO_SCHEDULER,
    NOT_SIMULATED,
    is_dummy,
    scheduler_timeline,
)

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hlo.dump_files import DumpFile
    from shardviz.reports.target_result import TargetResult
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import MemoryReport, ProgramTimeline


@dataclass(frozen=True)
class ProgramReport:
    """A program as one compiler left it. `entries` are in program order; `timeline` has its time and its
    memory, None where no machine prices it."""

    module: HloModule | ShardyModule
    entries: tuple[CollectiveEntry, ...]
    timeline: ProgramTimeline | None = None


def report_of(module: HloModule | ShardyModule, timeline: ProgramTimeline | None = None) -> ProgramReport:
    """The report on a module that was read with origins, timed where there is its timeline."""
    return ProgramReport(module, entries_of(module, timeline), timeline)


def program_report(
    text: str, machine: Machine | None = None, *, mesh: Mesh | None = None, infer: bool = False
) -> ProgramReport:
    """The report on HLO text, with seconds where there is a machine. Raises what `read_hlo` and
    `timed_program` raise."""
    if machine is None:
        return report_of(read_hlo(text, mesh, infer=infer, origins=True))
    return report_of(*timed_program(text, machine, mesh=mesh, infer=infer, origins=True))


@dataclass(frozen=True)
class DumpedModule:
    """The final program of a module in a folder of XLA's dumps. `error` says why it has no `report`, or, with
    one, which part of the text cannot be read or why the machine cannot run it: then there is no timeline."""

    file: DumpFile
    report: ProgramReport | None = None
    error: str = ""


def read_dumped(file: DumpFile, text: str, given: Mesh | None, machine: Machine | None) -> DumpedModule:
    """Read one. A process compiles for other devices than the mesh's too: then the axes are inferred."""
    module, timeline, problem = None, None, ""
    try:
        try:
            module = read(text, given, infer=True, origins=True)
        except QuestionError:
            module = read(text, None, infer=True, origins=True)
        problem = next(iter(module.unread), "")
        if not problem and machine is not None and isinstance(module, HloModule):
            timeline = timed_program(text, machine, mesh=module.mesh, infer=True, module=module)[1]
    except QuestionError as error:
        problem = error.message
    return DumpedModule(file, None if module is None else report_of(module, timeline), problem)


@dataclass(frozen=True)
class TargetTimes:
    """The timelines of one answer. `model` has the compiler's account of memory on its clock, where there is
    one. Where the compiler has simulated nothing, `note` says why there is no `scheduler`."""

    model: ProgramTimeline
    scheduler: ProgramTimeline | None = None
    note: str = ""


def target_times(
    answer: TargetResult, machine: Machine, mesh: Mesh, module: HloModule | None = None
) -> TargetTimes:
    """The times of an answer that was asked for with costs. On a machine of another shape than the target's,
    the mesh lies where JAX would place it there. A `module` is the answer's text, which is then not read
    again. Raises what `timed_program` raises."""
    placement = answer.placement
    shape = machine.family.torus_sizes, machine.devices
    if placement is not None and (placement.torus, mesh.size) != shape:
        placement = None
    if placement is not None:
        mesh = placement.on(mesh)
    if module is not None and module.mesh != mesh:
        module = None
    model = timed_program(answer.text, machine, mesh=mesh, placement=placement, module=module)[1]
    if answer.memory is not None:
        model = replace(model, memory=on_clock(answer.memory, model))
    if answer.schedule is None:
        return TargetTimes(model, note=NO_SCHEDULER if answer.placement is None else NOT_SIMULATED)
    if is_dummy(answer.schedule):
        return TargetTimes(model, note=NO_ESTIMATES)
    return TargetTimes(model, scheduler_timeline(answer.schedule, model, answer.text))


@dataclass(frozen=True)
class TimesAnswer:
    """The times of a target's answer; without any, `error` says why. A program that does not fit has the
    compiler's account of its `memory` all the same."""

    target: str
    times: TargetTimes | None = None
    error: ShardvizError | None = None
    memory: MemoryReport | None = None


def answer_times(
    answer: TargetResult, mesh: Mesh, named: Machine | None = None, module: HloModule | None = None
) -> TimesAnswer:
    """The times of an answer on its `program_machine`, or the reason why there are none; `module` as in
    `target_times`."""
    name = answer.target
    try:
        if answer.status != "ok":
            raise QuestionError(f"{name} has no program whose times could be told")
        if name == "shardy":
            problem = "shardy divides a program and does not compile it, so nobody can tell how long it takes"
            raise QuestionError(problem, "ask cpu with --machine v5e:2x4, or a TPU or a GPU")
        return TimesAnswer(name, target_times(answer, program_machine(name, named), mesh, module))
    except ShardvizError as error:
        return TimesAnswer(name, error=error, memory=answer.memory)


def program_machine(target: str, named: Machine | None) -> Machine:
    """The machine that prices the program of a target: its own hardware, whose cycles the compiler counts, or
    one that is `named` and has the same chip, or where the target has no hardware. Raises `NoMachineError`
    where there is neither."""
    (asked,) = parse_targets(target)
    own = asked.machine
    if named is not None and (own is None or own.chip == named.chip):
        return named
    if own is None:
        problem = f"{target} has no hardware to time its program on"
        raise NoMachineError(problem, "use --machine v5e:2x4, or ask a TPU or a GPU")
    return own
