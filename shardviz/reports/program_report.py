"""A compiled program: its collectives with what they cost, and its time and memory on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hlo import HloModule, ShardyModule, read, read_hlo
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.timeline.of_program import program_timeline, timed_program

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hardware.placement import Placement
    from shardviz.hlo.passes.dump_files import DumpFile
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline


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
    text: str,
    machine: Machine | None = None,
    *,
    mesh: Mesh | None = None,
    placement: Placement | None = None,
    infer: bool = False,
) -> ProgramReport:
    """The report on HLO text, with seconds where there is a machine.

    Raises what `read_hlo` and, with a machine, `timed_program` raise.
    """
    if machine is None:
        slices = None if placement is None else placement.slices
        return report_of(read_hlo(text, mesh, infer=infer, origins=True, slices=slices))
    return report_of(*timed_program(text, machine, mesh=mesh, placement=placement, infer=infer, origins=True))


@dataclass(frozen=True)
class DumpedModule:
    """The final program of a module in a folder of XLA's dumps, which is read on its own; `report` is None
    where it cannot be read, and `error` says why.

    With a report the `error` is the first part of the text that cannot be read, or why the machine cannot run
    it; the report then has no timeline, nor where no machine is named.
    """

    file: DumpFile
    report: ProgramReport | None = None
    error: str = ""


def read_dumped(file: DumpFile, text: str, given: Mesh | None, machine: Machine | None) -> DumpedModule:
    """Read one. A process compiles programs for other devices than the mesh's too, whose axes are
    inferred."""
    refused = ""
    for mesh in dict.fromkeys((given, None)):
        try:
            module = read(text, mesh, infer=True, origins=True)
            break
        except QuestionError as error:
            refused = error.message
    else:
        return DumpedModule(file, error=refused)
    problem, timeline = next(iter(module.unread), ""), None
    if not problem and machine is not None and isinstance(module, HloModule):
        try:
            timeline = program_timeline(text, machine, mesh=module.mesh, infer=True, module=module)
        except QuestionError as error:
            problem = error.message
    return DumpedModule(file, report_of(module, timeline), problem)
