"""The final programs in a folder of dumps by XLA, each read on its own, and on a machine if one is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hlo import HloModule, read
from shardviz.reports.program_report import ProgramReport, report_of
from shardviz.timeline.of_program import program_timeline

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hlo.passes.dump_files import DumpFile
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class DumpedModule:
    """The final program of a module; `report` is None where it cannot be read, and `error` says why.

    With a report the `error` is the first part of the text that cannot be read, or why the machine cannot run
    it; the report then has no timeline, nor where no machine is named.
    """

    file: DumpFile
    report: ProgramReport | None = None
    error: str = ""


def read_dumped(file: DumpFile, text: str, given: Mesh | None, machine: Machine | None) -> DumpedModule:
    """Read one. A process compiles programs for other devices than the mesh's too, whose axes are
    inferred."""
    try:
        try:
            module = read(text, given, infer=True, origins=True)
        except QuestionError:
            if given is None:
                raise
            module = read(text, infer=True, origins=True)
    except QuestionError as error:
        return DumpedModule(file, error=error.message)
    unread = next(iter(module.unread), "")
    if unread or machine is None or not isinstance(module, HloModule):
        return DumpedModule(file, report_of(module), unread)
    try:
        timeline = program_timeline(text, machine, mesh=module.mesh, infer=True, module=module)
    except QuestionError as error:
        return DumpedModule(file, report_of(module), error.message)
    return DumpedModule(file, report_of(module, timeline))
