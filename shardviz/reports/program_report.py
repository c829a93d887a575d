"""A compiled program, and one of the user's by a target: what its collectives cost, its time and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardviz.errors import CompilerError, NoMachineError, QuestionError, ShardvizError, TargetError
from shardviz.hlo import Collective, HloModule, ShardyModule, read, read_hlo
from shardviz.reports.arrays import ProgramArray, ProgramEnds, arrays_of, partitioned_arrays
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.reports.lowered_module import ExplicitReshards, LoweredModule
from shardviz.reports.rematerialization import Rematerialization, unwarned_rematerializations
from shardviz.reports.target_result import TargetResult, bytes_sent, without_answer
from shardviz.reports.why import Reason, TrainStep, lost_batch, reasons
from shardviz.sharding import Mesh
from shardviz.sharding.array import BITS
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
    from shardviz.hlo.dumps import DumpFile
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
    """The report on HLO text, timed on a machine if any. Raises as `read_hlo` and `timed_program` do."""
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
    """The times of a target's answer, or the `error`. A program that does not fit has its `memory` too."""

    target: str
    times: TargetTimes | None = None
    error: ShardvizError | None = None
    memory: MemoryReport | None = None

    def found(self) -> TargetTimes:
        """The times. Raises the error where there are none."""
        if self.times is None:
            raise self.error or QuestionError(f"{self.target} has no times")
        return self.times


def answer_times(
    answer: TargetResult, mesh: Mesh, named: Machine | None = None, module: HloModule | None = None
) -> TimesAnswer:
    """The times of an answer on its `program_machine`, or why there are none; see `target_times`."""
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
    """The machine that prices a target's program: its own hardware, whose cycles the compiler counts, or one
    that is `named`, of the same chip or where there is no hardware. Raises `NoMachineError` for neither."""
    (asked,) = parse_targets(target)
    own = asked.machine
    if named is not None and (own is None or own.chip == named.chip):
        return named
    if own is None:
        problem = f"{target} has no hardware to time its program on"
        raise NoMachineError(problem, "use --machine v5e:2x4, or ask a TPU or a GPU")
    return own


class OutOfMemoryError(CompilerError):
    """A program that does not fit into a device's memory. `memory` is what would lie there at the peak."""

    def __init__(self, message: str, hint: str, memory: MemoryReport) -> None:
        super().__init__(message, hint)
        self.memory = memory


@dataclass(frozen=True)
class TargetProgram:
    """One target's answer: the `module` that it has made of the program, None where it has made none.

    `mesh` is the program's mesh whose axes the collectives name; `notes`, on how it was read, and
    `lost_donations` are sentences. `warned` are the arrays that XLA says it replicates on every device.
    `reshards` are None where Shardy has refused the program, and `lowered`, what the target was given, where
    it was asked nothing. A program that does not fit may have a module, too."""

    answer: TargetResult
    module: HloModule | ShardyModule | None = None
    mesh: Mesh | None = None
    notes: tuple[str, ...] = ()
    lost_donations: tuple[str, ...] = ()
    warned: tuple[Rematerialization, ...] = ()
    reshards: ExplicitReshards | None = field(default=None, repr=False)
    lowered: LoweredModule | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    shardings: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def target(self) -> str:
        return self.answer.target

    @property
    def memory(self) -> MemoryReport | None:
        """Bytes of one device by the compiler's account; None where the target has none."""
        return self.answer.memory

    @property
    def bytes_sent(self) -> int | None:
        """The least bytes that one device sends in all collectives; None without a program."""
        return None if self.module is None else bytes_sent(self.module.collectives)

    def report(self, told: TimesAnswer) -> ProgramReport | None:
        """Its collectives with what they cost, by the times that were told of it; None without a program."""
        if self.module is None:
            return None
        return report_of(self.module, None if told.times is None else told.times.model)

    @cached_property
    def arrays(self) -> tuple[ProgramArray, ...]:
        """Every array of the program, with what of it is waste; none without a program."""
        module, lowered, mesh = self.module, self.lowered, self.mesh
        if module is None or lowered is None or mesh is None:
            return ()
        ends = ProgramEnds(lowered.arguments, lowered.results, *self.shardings)
        values = self.explicit_reshards.values
        if not isinstance(module, HloModule):
            return partitioned_arrays(self.answer.text, mesh, ends, values)
        return arrays_of(module, mesh, ends, values, () if self.memory is None else self.memory.buffers)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """The reason of each of the entries of its report."""
        return reasons(self._entries, self.mesh, self.explicit_reshards)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what the program loses silently: memory that is donated, the split of its batch."""
        if not self.reshards:
            return self.lost_donations
        told = zip(self._entries, self.reasons, strict=True)
        lost = lost_batch(told, TrainStep(self.explicit_reshards))
        return (*self.lost_donations, *filter(None, [lost]))

    @cached_property
    def _entries(self) -> tuple[CollectiveEntry, ...]:
        return () if self.module is None else entries_of(self.module)

    @cached_property
    def rematerializations(self) -> tuple[Rematerialization, ...]:
        """The arrays that are fully replicated in order to reshard them: those of which XLA has warned, and
        those that its program shows. Of Shardy's own program there are none."""
        mesh, reshards = self.mesh, self.reshards
        if not isinstance(self.module, HloModule) or not reshards or mesh is None or mesh.size == 1:
            return self.warned
        return self.warned + unwarned_rematerializations(self._entries, reshards.meetings, mesh, self.warned)

    @property
    def explicit_reshards(self) -> ExplicitReshards:
        """`reshards`, empty where Shardy has refused the program."""
        return self.reshards or ExplicitReshards()

    def times(self, machine: Machine | None = None) -> TimesAnswer:
        """When each instruction runs on the target's own hardware, or on a machine; or why it has none."""
        answer = self.answer
        if answer.memory is not None and answer.status == "ok" and not answer.memory.buffers:
            # Sums alone: what lies there, and when, is estimated from the program's order.
            answer = replace(answer, memory=None)
        module = self.module if isinstance(self.module, HloModule) else None
        return answer_times(answer, self.mesh or Mesh((), ()), machine, module)

    def check(self) -> None:
        """Raise what the target said in place of a program, `OutOfMemoryError` where that would not fit."""
        answer = self.answer
        if answer.status == "unavailable":
            raise TargetError(answer.error, answer.hint)
        if answer.status != "ok":
            named = answer.target in answer.error.split()
            message = f"{'' if named else f'{answer.target}: '}{answer.error}"
            if answer.memory is not None and answer.memory.over_bytes:
                raise OutOfMemoryError(message, answer.hint, answer.memory)
            raise CompilerError(message, answer.hint)


def without_program(target: str, error: ShardvizError) -> TargetProgram:
    """In the place of an answer, one that says why there is none."""
    return TargetProgram(without_answer(target, error))


def widened_types(text: str, collectives: Sequence[Collective]) -> list[str]:
    """Sentences where XLA for CPU may have computed the floats of the arguments and results, which the first
    line of its text lists, in a wider type, and moved them so."""
    moved = {one.dtype for one in collectives if one.wire_bytes and re.match(r"bf16|f\d", one.dtype)}
    widest = max(moved, key=BITS.__getitem__, default="")
    given = dict.fromkeys(re.findall(r"\b(bf16|f\d\w*)\[", text.partition("\n")[0]))
    narrower = [dtype for dtype in given if widest and BITS[dtype] < BITS[widest]]
    return [
        f"XLA for CPU computes {dtype} as {widest}: what carries {widest} here may carry {dtype} on a TPU or "
        f"GPU, 1/{BITS[widest] // BITS[dtype]} of the bytes"
        for dtype in narrower
    ]
