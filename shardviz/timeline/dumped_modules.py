"""The final programs in a folder of dumps by XLA, each read on its own, and on a machine if one is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hlo import read
from shardviz.timeline.of_program import timed_program

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hlo import HloModule, ShardyModule
    from shardviz.hlo.passes.dump_files import DumpFile
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class DumpedModule:
    """The final program of a module; `module` is None where it cannot be read, and `error` says why.

    `timeline` is None where no machine is named, or the program does not fit on it.
    """

    file: DumpFile
    module: HloModule | ShardyModule | None = None
    timeline: ProgramTimeline | None = None
    error: str = ""


def read_dumped(file: DumpFile, text: str, given: Mesh | None, machine: Machine | None) -> DumpedModule:
    """Read one. A process compiles programs for other devices than the mesh's too, whose axes are
    inferred."""
    for mesh in dict.fromkeys((given, None)):
        error = ""
        if machine is not None:
            try:
                return DumpedModule(file, *timed_program(text, machine, mesh=mesh, infer=True))
            except QuestionError as problem:
                error = problem.message
        try:
            return DumpedModule(file, read(text, mesh, infer=True), error=error)
        except QuestionError as problem:
            error = problem.message
    return DumpedModule(file, error=error)
