"""`shardviz diff`: what has changed between two versions of a program, and whether that breaks a limit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shardviz.cli import options
from shardviz.cli.hlo import STDIN, note_unread, read_text
from shardviz.cli.output import CommandOutput
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import ProgramSession
from shardviz.errors import QuestionError, TargetError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import Target, check_mesh, parse_targets
from shardviz.user_files import is_folder

with LazyImports():
    from shardviz.answers import programs
    from shardviz.compiler import user_file
    from shardviz.documents import fields, summaries
    from shardviz.hardware import machine_file
    from shardviz.hlo import dumps, text_file
    from shardviz.render.programs import changes_view
    from shardviz.reports import changes as report_changes, program_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.hardware.machine import Machine
    from shardviz.sharding import Mesh


@options.command("diff")
@click.argument("old")
@click.argument("new")
def command(
    old: str,
    new: str,
    mesh: str | None,
    target: str | None,
    axis_types: str,
    machine: str | None,
    fail_on: str | None,
    timeout: float,
    output: CommandOutput,
) -> int:
    """List what changed from the program OLD to NEW: collectives, bytes, seconds and memory.

    OLD and NEW are each a file of HLO text, a folder of XLA's dumps, a file of --save or of
    shardviz.testing.check_baseline, or FILE.py:FUNCTION, which runs the file as shardviz program does.
    Functions need --mesh and --target. Names of files, lines and instructions are ignored."""
    limits = () if fail_on is None else report_changes.parse_limits(fail_on)
    if old == new == STDIN:
        raise QuestionError("standard input holds only one program", "give a file for the other")
    given = None if mesh is None else parse_mesh(mesh)
    on = None if machine is None else machine_file.named_machine(machine)
    functions = [user_file.names_function(argument) for argument in (old, new)]
    targets = _targets(target, functions)
    if any(functions) and given is None:
        raise QuestionError("a function needs a mesh", "add --mesh data=4,model=4")
    code, saved = ExitCode.FINE, 0
    summaries: dict[int, report_changes.ReportSummary] = {}
    asked: dict[int, tuple[str, Target]] = {}
    for number, (text, compiler) in enumerate(zip((old, new), targets, strict=True)):
        if compiler is None:
            summaries[number], read = _of_files(text, given, on)
            saved += read is None
            code = max(code, read or code)
        else:
            asked[number] = text, compiler
    if asked and given is not None:
        compiled = _of_functions([*asked.values()], given, axis_types, on, timeout)
        summaries |= zip(asked, compiled, strict=True)
    if on is not None and saved == len(summaries):
        raise QuestionError(
            "--machine does not apply: both programs were saved with their own machine",
            "leave it out, or renew the baseline with another target",
        )
    changes = report_changes.report_changes(summaries[0], summaries[1])
    broken = report_changes.broken_limits(limits, changes)
    for limit in limits:
        for side, program in (("OLD", changes.before), ("NEW", changes.after)):
            if limit.quantity in ("seconds", "memory") and getattr(program, limit.quantity) is None:
                problem = f"{quote(limit.text)} limits {limit.quantity}, which {side} does not have"
                raise QuestionError(problem, "add --machine v5e:2x4, or renew the baseline with a target")
    output.answer(
        lambda: fields.KINDS["diff"].document(changes, broken_limits=broken),
        lambda: changes_view.changes_view(changes, broken, output.width, output.verbose),
        "more of the changes" if len(changes.changes) > changes_view.FEW_CHANGES else "",
    )
    return ExitCode.CHECK_FAILED if broken and code == ExitCode.FINE else code


def _targets(named: str | None, functions: Sequence[bool]) -> Sequence[Target | None]:
    if not any(functions):
        if named is not None:
            raise TargetError("--target needs a function, and neither program is one", "leave it out")
        return [None, None]
    targets = parse_targets(named) if named else ()
    if not targets:
        raise TargetError("a function needs a target", "add --target v5e:4x4")
    if len(targets) > sum(functions):
        problem = f"{len(targets)} targets for {plural(sum(functions), 'function')}"
        raise TargetError(problem, "give one for each")
    left = [*targets] * (1 if len(targets) == 2 else 2)
    return [left.pop(0) if function else None for function in functions]


def _of_functions(
    asked: Sequence[tuple[str, Target]], mesh: Mesh, axis_types: str, machine: Machine | None, timeout: float
) -> list[report_changes.ReportSummary]:
    functions = {text: user_file.find_function(text) for text, _ in asked}
    targets = tuple(dict.fromkeys(target for _, target in asked))
    for target in targets:
        check_mesh(target, mesh)
    with ProgramSession(targets, timeout) as session:
        files = {text: session.run_file(*named, mesh, axis_types) for text, named in functions.items()}
        for text, target in asked:
            session.ask(files[text], {}, targets=(target,))
        return [programs.compiled_summary(answer, machine) for answer in session.answers()]


def _of_files(
    name: str, given: Mesh | None, machine: Machine | None
) -> tuple[report_changes.ReportSummary, ExitCode | None]:
    """The summary of a file, or of all modules in a folder, and whether all could be read (None: saved)."""
    if name not in (STDIN, "") and is_folder(Path(name)):
        modules = [
            program_report.read_dumped(final_program, read_text(final_program.path), given, machine)
            for final_program in dumps.final_programs(Path(name))
        ]
        codes = [_checked(module, machine is not None) for module in modules]
        return programs.modules_summary(modules), max(codes)
    text = read_text(name)
    if summaries.is_summary(text):
        return summaries.read_summary(text, name), None
    question = programs.ProgramQuestion(text, given)
    if machine is not None:
        question.check_compiled("--machine", quote(name))
    report = question.answer(machine).report
    if report is None:
        raise QuestionError(f"{quote(name)} is only a log, without its program", text_file.HOW)
    return programs.summary_of(report), note_unread(report.module)


def _checked(module: program_report.DumpedModule, is_priced: bool) -> ExitCode:
    """Tell what of a module could not be read. Raises `QuestionError` for no report, or no seconds."""
    report = module.report
    if report is None or (is_priced and report.timeline is None and not report.module.unread):
        raise QuestionError(module.error or f"{quote(module.file.path)} is not compiled yet")
    return note_unread(report.module)
