"""A program as text, its collectives and costs, and what a log says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from shardviz.errors import QuestionError
from shardviz.hlo import HloModule, read
from shardviz.hlo.arguments import pieces_of
from shardviz.hlo.dumps import distinct_names
from shardviz.hlo.mlir.shardy import is_mlir
from shardviz.hlo.module import is_hlo
from shardviz.models.model import ModelParameter
from shardviz.reports.changes import ReportSummary, summary, together
from shardviz.reports.failures import MARKS, STUCK, OutOfMemory, out_of_memory, stuck_collectives
from shardviz.reports.program_report import (
    DumpedModule,
    ProgramReport,
    TargetProgram,
    program_report,
    report_of,
)
from shardviz.reports.rematerialization import (
    MARK,
    Rematerialization,
    mesh_of_warnings,
    rematerializations,
    rematerializations_of,
    without_warnings,
)
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.array import BITS

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.models.rule_set import RuleSet
    from shardviz.reports.arrays import ProgramArray


@dataclass(frozen=True)
class ProgramQuestion:
    """A text of HLO, StableHLO or Shardy, a log, or both; axes are of the mesh `given`, else inferred."""

    whole: str
    given: Mesh | None = None

    @cached_property
    def log(self) -> str:
        """The whole text, where XLA warns in it; else ""."""
        return self.whole if any(mark in self.whole for mark in (MARK, STUCK, *MARKS)) else ""

    @cached_property
    def text(self) -> str:
        """The text without these warnings."""
        return without_warnings(self.whole) if self.log else self.whole

    @cached_property
    def language(self) -> Literal["hlo", "mlir", ""]:
        """The language of the program; "" where there is none."""
        if is_hlo(self.text):
            return "hlo"
        return "mlir" if is_mlir(self.text) else ""

    @property
    def is_log_alone(self) -> bool:
        return bool(self.log) and not self.language

    def check_compiled(self, option: str, name: str = "this") -> None:
        """Raise `QuestionError` for a program that no compiler has finished: an option is about one."""
        if self.language == "mlir":
            problem = f"{option} is about a compiled program, and {name} is not compiled yet"
            raise QuestionError(problem, f"leave out {option}, or give HLO: lowered.compile().as_text()")

    def answer(self, machine: Machine | None = None) -> ProgramAnswer:
        """The program's collectives, with seconds where there is a machine. Raises `NotationError` for a text
        of another kind, and `QuestionError` for a mesh that is not the program's and for a machine that
        cannot run it."""
        if self.is_log_alone:
            mesh = self.given or mesh_of_warnings(self.log.splitlines())
            remade = tuple(rematerializations(self.log, mesh))
            return ProgramAnswer(mesh, None, remade, stuck_collectives(self.log), out_of_memory(self.log))
        if machine is None:
            report = report_of(read(self.text, self.given, infer=True, origins=True))
        else:
            report = program_report(self.text, machine, mesh=self.given, infer=True)
        module = report.module
        remade = tuple(rematerializations(self.log, module.mesh, self.text)) if self.log else ()
        if isinstance(module, HloModule) and not remade:
            remade = tuple(rematerializations_of(module))
        stuck = stuck_collectives(self.log, self.text, module.collectives) if self.log else ()
        failed = out_of_memory(self.log, self.text) if self.log else ()
        return ProgramAnswer(module.mesh, report, remade, stuck, failed)


@dataclass(frozen=True)
class ProgramAnswer:
    """The report on a program, None for a log alone; the mesh whose axes are named; the arrays that are
    fully replicated in order to reshard them; the collectives that devices wait at, a sentence each; and the
    failures to find memory."""

    mesh: Mesh | None
    report: ProgramReport | None
    remade: tuple[Rematerialization, ...] = ()
    stuck: tuple[str, ...] = ()
    out_of_memory: tuple[OutOfMemory, ...] = ()


def with_rules(program: TargetProgram, rules: RuleSet, mesh: Mesh) -> TargetProgram:
    """The program whose arguments have the rules that name them, by their paths (``params/layers/0/w``) or
    logical axes. Raises `RuleError` for a rule that does not fit an argument or the mesh."""
    lowered, own = program.lowered, program.mesh
    if lowered is None or own is None:
        return program
    arguments = [one for one in lowered.arguments if one.dtype in BITS]
    parameters = [
        ModelParameter(
            "/".join(step.strip(".[]'") for step in pieces_of(one.path)), one.shape, one.dtype, one.logical
        )
        for one in arguments
    ]
    ruled = {}
    for one, (spec, used) in zip(arguments, rules.splits(parameters, mesh), strict=True):
        if spec is not None and used and spec.rank == len(one.shape):
            dims = tuple(tuple(axis for axis in dim if axis in own.axis_names) for dim in spec.dims)
            # ``embed → fsdp`` of a logical axis, else the pattern.
            words = [
                each.subject + (f" → {','.join(each.split) or '_'}" if isinstance(each.split, tuple) else "")
                for each in used
            ]
            ruled[one] = replace(one, rule=", ".join(words), ruled=PartitionSpec(dims))
    told = tuple(ruled.get(one, one) for one in lowered.arguments)
    return replace(program, lowered=replace(lowered, arguments=told))


def summary_of(
    report: ProgramReport, compiled: TargetProgram | None = None, arrays: Iterable[ProgramArray] = ()
) -> ReportSummary:
    """A report in short, with the memory that a target's compiler tells, and the program's arrays."""
    memory = None if compiled is None else compiled.memory
    told = arrays if compiled is None or compiled.lowered is None else compiled.arrays
    return summary(report, None if memory is None else memory.peak_bytes, told)


def compiled_summary(compiled: TargetProgram, machine: Machine | None = None) -> ReportSummary:
    """A target's program in short, timed there or on a machine. Raises what the target said without one."""
    compiled.check()
    report = compiled.report(compiled.times(machine))
    assert report is not None
    return summary_of(report, compiled)


def modules_summary(modules: Sequence[DumpedModule]) -> ReportSummary:
    """The modules of a folder that could be read in short, one after the other."""
    names = distinct_names(module.file for module in modules)
    reports = zip(names, (module.report for module in modules), strict=True)
    return together({name: summary_of(report) for name, report in reports if report is not None})
