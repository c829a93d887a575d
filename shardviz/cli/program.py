"""`shardviz program`: a function of the user's own, compiled for hardware that is not here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json, print_note, working
from shardviz.cli.process import ExitCode, on_signal
from shardviz.cli.target_session import ProgramSession
from shardviz.errors import QuestionError, ShardvizError, TargetError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.reports.lowered_module import ShardingRefusal
from shardviz.sharding import Mesh
from shardviz.targets import Target, check_installed, check_mesh
from shardviz.user_files import is_folder, is_there

with LazyImports():
    from shardviz.answers import programs
    from shardviz.cli import export
    from shardviz.compiler import user_file, worker as workers
    from shardviz.devices import found_hardware
    from shardviz.documents import programs as documents
    from shardviz.documents.fields import KINDS
    from shardviz.hardware import machine_file
    from shardviz.hlo import text_file
    from shardviz.models import rule_files
    from shardviz.render.programs import program_view
    from shardviz.render.rounds import device_values
    from shardviz.render.times import report as time_report
    from shardviz.reports import program_report, trials

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.reports.entries import Selection
    from shardviz.reports.program_report import ProgramReport, TargetProgram, TimesAnswer
    from shardviz.reports.verdicts import WasteVerdict

    Reported = Sequence[tuple[TargetProgram, ProgramReport | None]]
    """Each target's answer, and the report on the program that it has made."""


def _compiler_options(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    by_name = {}
    for option in given:
        name, equals, value = option.removeprefix("--").partition("=")
        if not name or not equals:
            problem = f"{quote(option)} is not an option with its value, such as xla_name=true"
            raise click.BadParameter(problem, ctx, param)
        by_name[name] = value
    return by_name


@options.command("program", {"compiler_options": {"callback": _compiler_options}})
@click.argument("function", metavar="FILE.py:FUNCTION|FILE")
def command(
    function: str,
    mesh: str | None,
    target: str,
    axis_types: str,
    compiler_options: Mapping[str, str],
    tries: Sequence[str],
    selection: Selection,
    with_reasons: bool,
    with_arrays: bool,
    rules: str | None,
    with_values: bool,
    machine: str | None,
    with_times: bool,
    save: Path | None,
    timeout: float,
    output: CommandOutput,
) -> int:
    """List the collectives of your own function on hardware you don't have.

    FILE is StableHLO with shardings, as text or bytecode, or what jax.export serialized: it has its own mesh.

    FUNCTION takes a jax mesh of the axes and sizes of --mesh, and returns the function to compile and its
    arguments: return step, params, batch. Arguments are arrays or jax.ShapeDtypeStruct, with shardings, or
    the jit has in_shardings.

    This runs FILE.py, in a process of its own, with simulated devices; the function itself is traced under
    jax.set_mesh of that mesh, and compiled, not run. In place of FILE.py:FUNCTION the name of an example
    does: train_step."""
    if with_values:
        return _print_values(click.get_current_context(), output)
    if tries:
        table = _trials(click.get_current_context())
        output.answer(
            lambda: KINDS["trials"].document(table), lambda: program_view.trials_view(table, output.width)
        )
        return ExitCode.FINE if any(one.answer.status == "ok" for one in table.trials) else ExitCode.COMPILER
    if rules is not None and not with_arrays:
        raise QuestionError("--rules is about arrays", "add --arrays")
    targets, file, name, wanted = _asked(function, target, mesh)
    of_one = {"--save": save is not None, "--why": with_reasons and not output.as_json}
    for option in (option for option, is_given in of_one.items() if is_given and len(targets) > 1):
        more = ", or add --json" * (option == "--why")
        raise QuestionError(f"{option} needs one target, not {len(targets)}", f"choose one{more}")
    if not output.as_json:
        for option, is_given in (("--why", with_reasons), ("--arrays", with_arrays)):
            both = {option: is_given, "--time": with_times}
            options.refuse_both(both, "leave out one of them, or add --json")
    on = None if machine is None else machine_file.named_machine(machine)
    with ProgramSession(targets, timeout) as session:
        if wanted is None:
            data = text_file.read_program_file(file, text_file.read_bytes)
            program = session.read_module(bytes(data), file)
        else:
            try:
                program = session.run_file(file, name, wanted, axis_types)
            except ShardingRefusal as refusal:
                session.price(refusal, compiler_options)
                if output.as_json:
                    print_json(KINDS["refusal"].document(refusal))
                    raise
                output.show(program_view.refusal_view(refusal, output.width, output.verbose))
                if sys.stdout.isatty():  # who redirected stdout reads the error as well
                    return refusal.exit_code
                raise
        if wanted and program.meshes and wanted.without_ones().shape not in [m.shape for m in program.meshes]:
            own = " and ".join(map(str, program.meshes))
            print_note(f"{name} makes the mesh {own}, and does not use {wanted}, which --mesh names")
        known = wanted or (program.meshes[0] if program.meshes else Mesh(("device",), (1,)))
        named = None if rules is None else rule_files.named_rules(rules, known)
        session.ask(program, compiler_options, with_costs=with_times)
        answers = [*session.programs()]
        if named is not None:
            answers = [programs.with_rules(answer, named, known) for answer in answers]
            if not any(one.rule for answer in answers for one in answer.arrays):
                print_note(f"no rule of {rules} names an argument")
        told = [program.times(on) for program in answers]
        reported = [(program, program.report(times)) for program, times in zip(answers, told, strict=True)]
        for answer, report in reported:
            if report is not None:
                selection.check(report.entries, answer.mesh)
        verdicts: list[tuple[WasteVerdict, ...]] | None = None
        if with_reasons:
            with working("trying other shardings"):
                verdicts = [session.verdicts(program, on) for program in answers]
        if output.as_json:
            print_json(
                documents.program_document(name, reported, with_times, selection, verdicts, with_arrays)
            )
        elif with_arrays:
            for number, answer in enumerate(answers):
                show = output.show_below if number else output.show
                told_of = verdicts[number] if verdicts else ()
                show(program_view.arrays_view(answer, *output.page, output.verbose, told_of))
            output.show_more("every array")
        else:
            _show(reported, told, with_times, selection, verdicts[0] if verdicts else None, output)
        if on is not None:
            _note_machine(on, reported, told)
        if save is not None:
            compiled, report = reported[0]
            if report is None or compiled.answer.status != "ok":
                print_note(f"{save} was not written: no program runs")
            else:
                options.keep(save, programs.summary_of(report, compiled), report.module.unread)
        return session.exit_code


def _asked(function: str, target: str, mesh: str | None) -> tuple[tuple[Target, ...], str, str, Mesh | None]:
    """The targets, the file, the name of what in it is compiled, and the mesh that a function takes."""
    targets = options.asked_targets(target, mesh)
    if not targets:
        raise TargetError("a program needs a target", "add --target v5e:4x4")
    path = Path(function)
    is_function = user_file.names_function(function) or not is_there(path) or is_folder(path)
    file, name = user_file.find_function(function) if is_function else (function, path.name)
    if is_function and mesh is None:
        raise QuestionError("a function needs a mesh", "add --mesh data=4,model=4, or another")
    if mesh is not None and not is_function:
        raise QuestionError(f"{quote(function)} has its own mesh", "leave out --mesh")
    wanted = None if mesh is None else parse_mesh(mesh)
    if len(targets) == 1 and wanted is not None:
        check_mesh(targets[0], wanted)
    return targets, file, name, wanted


def _print_values(ctx: click.Context, output: CommandOutput) -> int:
    given, named = ctx.params, options.given_options(ctx)
    options.refuse_both({name: name in named for name in f"--values --target --machine {ALONE}".split()})
    _, file, name, mesh = _asked(given["function"], "cpu", given["mesh"])
    if mesh is None:
        raise QuestionError(f"{quote(file)} has no lines to run", "name a function: FILE.py:FUNCTION")
    values = ProgramSession((), given["timeout"]).run_file(file, name, mesh, given["axis_types"], True).values
    assert values is not None
    output.answer(
        lambda: KINDS["values"].document(values), lambda: device_values.values_view(values, *output.page)
    )
    return ExitCode.FINE


ALONE = "--try --why --arrays --rules --time --save --sort --top --op --axis --min-bytes --source"
"""Combinations, and the options of the page of one program."""


def _trials(ctx: click.Context) -> trials.TrialTable:
    """The combinations that the command's options ask for: the function is called with each, and what it
    returns is compiled. What is compiled for hardware that is not here stays on disk: asked again, it is read
    from there. Raises what keeps all combinations alike from being lowered."""
    given, named = ctx.params, options.given_options(ctx)
    options.refuse_both({name: name in named for name in ALONE.split()})
    (target, *more), file, name, mesh = _asked(given["function"], given["target"], given["mesh"])
    if mesh is None or more or not given["tries"]:
        hint = "write FILE.py:FUNCTION --target v5e:2x4 --try batch=8,16"
        raise QuestionError("combinations are of a function, for one target", hint)
    check_installed(target)
    is_explicit = given["axis_types"] == "explicit"
    request = user_file.UserFileRequest(file, name, mesh, (target.platform,), is_explicit)
    machine = None if given["machine"] is None else machine_file.named_machine(given["machine"])
    every = trials.combinations(given["tries"])
    libraries = {path: _libtpu(path) for one in every if (path := one.get(trials.LIBTPU)) is not None}

    def lower(keywords: dict[str, Any]) -> tuple[user_file.UserProgram | ShardvizError, int]:
        process = user_file.UserFileProcess(replace(request, keywords=tuple(keywords.items())), os.environ)
        on_signal(process.kill)
        try:
            return process.result(given["timeout"]), getrusage(RUSAGE_CHILDREN).ru_maxrss * 1024
        except ShardvizError as error:
            return error, 0

    lowered: dict[str, user_file.UserProgram | ShardvizError] = {}

    def compiled(combination: trials.Combination) -> tuple[trials.Trial, int]:
        library = libraries.get(combination.get(trials.LIBTPU, ""))
        own = {} if library is None else {"TPU_LIBRARY_PATH": str(library)}
        asked = {**given["compiler_options"], **trials.options_of(combination)}
        with workers.Worker(given["timeout"], environment=os.environ | own) as worker:
            on_signal(worker.kill)
            try:
                if isinstance(program := lowered[repr(trials.keywords_of(combination))], ShardvizError):
                    raise program
                answer = worker.compile(program.lowered_for(target.platform), target, asked).result()
            except ShardvizError as error:
                answer = program_report.without_program(target.name, error)
            trial = trials.trial_of(combination, answer, answer.times(machine))
            return trial, found_hardware.peak_bytes(worker.pids())

    said, results = f"running {file}", list[trials.Trial]()
    with working(lambda: said):
        calls = [*{repr(call): call for call in map(trials.keywords_of, every)}.values()]
        for call, program in found_hardware.side_by_side(calls, lower):
            lowered[repr(call)] = program
            said = f"lowered {len(lowered)} of {plural(len(calls), 'program')}"
        errors = [one for one in lowered.values() if isinstance(one, ShardvizError)]
        if len(errors) == len(lowered) and len({one.message for one in errors}) == 1:
            raise errors[0]
        for _, trial in found_hardware.side_by_side(every, compiled):
            results.append(trial)
            said = f"{target.name}: compiled {len(results)} of {plural(len(every), 'combination')}"
    return trials.TrialTable(name, target.name, trials.ranked(results))


@command.exports
def _table(ctx: click.Context, _part: str | None) -> export.Subject:
    table = _trials(ctx)
    return export.Subject(table, f"{table.name} on {table.target}")


def _libtpu(path: str) -> Path:
    """The library in a virtual environment, or the library itself. Raises `QuestionError` for none."""
    named = Path(path).expanduser().absolute()
    root = named.parents[1] if named.parent.name == "bin" else named
    for library in (named, *root.glob("lib/python*/site-packages/libtpu/libtpu.so")):
        if library.name == "libtpu.so" and library.is_file():
            return library
    raise QuestionError(f"{quote(path)} has no libtpu", "name a virtual environment in which it is installed")


def _note_machine(machine: Machine, reported: Reported, told: Sequence[TimesAnswer]) -> None:
    for (program, report), times in zip(reported, told, strict=True):
        if report is None:
            continue
        if report.timeline is not None and report.timeline.machine != machine.name:
            print_note(f"{program.target}: its times stay its own: {machine.name} has another chip")
        elif report.timeline is None and times.error is not None:
            print_note(f"{program.target}: no seconds: {times.error.message}")


def _show(
    reported: Reported,
    told: Sequence[TimesAnswer],
    with_times: bool,
    selection: Selection,
    verdicts: Sequence[WasteVerdict] | None,
    output: CommandOutput,
) -> None:
    """Print one target's page, or a line for each of several; then the times."""
    width = output.width
    if len(reported) > 1:
        output.show(program_view.programs_view(reported, *output.page, selection, output.verbose))
    elif not with_times or reported[0][1] is None:
        first = reported[0]
        output.show(program_view.program_view(*first, *output.page, selection, verdicts, output.verbose))
        output.show_more("the sums, the reasons and the memory in full")
    if with_times:
        for (program, report), times in zip(reported, told, strict=True):
            if report is not None:
                output.show_below(program_view.target_lines(program, width))
                output.show(program_view.module_lines(report.module, program.mesh, *output.page))
                output.show(time_report.target_times_view(times, *output.page, output.verbose))
