"""The contents of a file to show: read in a thread, since a program or a profile may take seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.compiler.target_result import TargetResult
from shardviz.errors import CompilerError, QuestionError
from shardviz.hlo import HloModule, read
from shardviz.hlo.mlir.shardy import is_mlir
from shardviz.hlo.module import is_hlo
from shardviz.hlo.passes.dump_files import final_programs
from shardviz.hlo.text_file import HOW, read_text_file
from shardviz.render.programs.program_pages import ListedProgram, read_program
from shardviz.reports.dumped_modules import DumpedModule, read_dumped
from shardviz.reports.program_report import ProgramReport, program_report, report_of
from shardviz.reports.rematerialization import (
    Rematerialization,
    has_rematerializations,
    mesh_of_warnings,
    rematerializations,
    rematerializations_of,
    without_warnings,
)
from shardviz.sharding import Mesh
from shardviz.tui.opening.kinds import Openable
from shardviz.tui.time.timelines import OpenedProfile

if TYPE_CHECKING:
    from shardviz.compiler import Worker
    from shardviz.hardware.machine import Machine

PATIENCE_S = 120.0
"""Seconds for XLA to write the text of a profile's programs."""


@dataclass(frozen=True)
class OpenedProgram:
    """A program of a file, its report and its text by lines; of a log alone what it says was made whole, and
    neither of them."""

    path: str
    notes: tuple[str, ...]
    mesh: Mesh | None
    report: ProgramReport | None = None
    listed: ListedProgram | None = field(default=None, compare=False)
    remade: tuple[Rematerialization, ...] = ()


@dataclass(frozen=True)
class OpenedModules:
    """The final programs of a folder of dumps."""

    path: str
    modules: tuple[DumpedModule, ...]


Opened = Openable | OpenedProgram | OpenedModules | OpenedProfile
"""What was opened: read, or chosen where nothing has to be read for it."""


def open_program(path: str, machine: Machine) -> OpenedProgram:
    """A file of HLO, StableHLO or Shardy text, or of a log; HLO is priced on the machine.

    Raises `QuestionError` for a file without any of that, and for a program that the machine cannot run.
    """
    found = read_text_file(path)
    text, log = found.text, ""
    if has_rematerializations(text):
        log, text = text, without_warnings(text)
        if not is_hlo(text) and not is_mlir(text):
            mesh = mesh_of_warnings(log.splitlines())
            return OpenedProgram(path, found.notes, mesh, remade=tuple(rematerializations(log, mesh)))
    if is_hlo(text):
        report = program_report(text, machine, infer=True)
    else:
        report = report_of(read(text, infer=True, origins=True))
    module = report.module
    if module.unread_collectives and not module.collectives:
        raise QuestionError(module.unread[0], HOW)
    remade = rematerializations(log, module.mesh, text) if log else ()
    if isinstance(module, HloModule) and not remade:
        remade = rematerializations_of(module)
    listed = None
    if module.mesh is not None:
        result = TargetResult(Path(path).name, "ok", tuple(module.collectives), text=text)
        listed = read_program(result, module.mesh)
    return OpenedProgram(path, (*found.notes, *module.unread), module.mesh, report, listed, tuple(remade))


def open_modules(path: str, machine: Machine) -> OpenedModules:
    """A folder of dumps. Raises `QuestionError` where it has the final program of no module."""
    files = final_programs(Path(path))
    modules = (read_dumped(each, read_text_file(each.path).text, None, machine) for each in files)
    return OpenedModules(path, tuple(modules))


def open_profile(
    path: str, machine: Machine | None, worker: Worker, tell: Callable[[int, int], None]
) -> OpenedProfile:
    """A profile, with the program's text as far as XLA reads what it brings. `tell` hears how many bytes of
    how many are read. Raises `QuestionError` for a file that is no profile."""
    from shardviz.profiles.profile import profile_of, programs_that_ran
    from shardviz.profiles.trace_files import read_trace

    files = read_trace(path, tell)
    records = programs_that_ran(files)
    texts: list[str] = []
    if records:
        try:
            texts = list(worker.module_texts([each.proto for each in records]).result(PATIENCE_S))
        except (CompilerError, TimeoutError):
            texts = [""] * len(records)
    named = {(each.name, each.program_id): text for each, text in zip(records, texts, strict=True) if text}
    return OpenedProfile(profile_of(files, named, machine=machine), f"shardviz profile {path}")
