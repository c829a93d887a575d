"""`shardviz hlo`: the collectives in any compiled program, from a file or standard input of any bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json, print_note
from shardviz.cli.process import ExitCode
from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.user_files import is_folder

with LazyImports():
    from shardviz.answers import programs
    from shardviz.cli import export, target_session
    from shardviz.documents import fields, programs as documents, summaries
    from shardviz.hardware import machine as machines, machine_file
    from shardviz.hlo import dumps, listing as listings, text_file
    from shardviz.hlo.text import call_graph
    from shardviz.render import lines
    from shardviz.render.programs import array_table, changes_view, cost_lines, program_pages, program_view
    from shardviz.render.times import report as time_report
    from shardviz.reports import program_report
    from shardviz.timeline import of_program

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

    from shardviz.hlo import HloModule, ShardyModule
    from shardviz.reports.changes import ReportSummary
    from shardviz.reports.entries import Selection
    from shardviz.sharding import Mesh


MAX_NOTES = 5
"""Notes on text that cannot be read; `--json` has all of them."""
LINES_AT_ONCE = 500
HINT = "save all of compiled.as_text() again, as it is"


@options.command("hlo")
@click.argument("file")
def command(
    file: str,
    mesh: str | None,
    device_order: str | None,
    selection: Selection,
    trips: str | None,
    why: bool,
    machine: str | None,
    picture: bool,
    with_times: bool,
    save: Path | None,
    output: CommandOutput,
) -> ExitCode:
    """List the collectives of the program in FILE: count, size, mesh axes and source line.

    FILE holds HLO, StableHLO or Shardy, as compiled.as_text() or XLA's dumps have it: as text, as a proto
    (*.hlo.pb) or as bytecode, gzipped or zipped; or what jax.export serialized. - reads standard input.
    mlp.txt and four-layers.txt ship as examples. A log, alone or around the text, tells more: arrays that XLA
    fully rematerializes, devices that wait for others at a collective, and why memory did not suffice. A
    folder of dumps lists the final program of each module; a file of --save its report. Counts include
    loops. Unreadable text is reported, with exit code 2.

    --json lists the same collectives in program order."""
    if picture:
        others = {"--json": output.as_json, "--time": with_times, "--machine": bool(machine)}
        options.refuse_both({"--picture": True, **others, "--save": save is not None, "--why": why})
    if not output.as_json:
        options.refuse_both({"--why": why, "--time": with_times}, "leave out one of them, or add --json")
    given = options.asked_mesh(mesh, device_order)
    priced = with_times or machine is not None
    if file not in (STDIN, "") and is_folder(Path(file)):
        files = dumps.final_programs(Path(file))
        if len(files) > 1:
            of_one = {"--picture": picture, "--time": with_times, "--why": why, "--trips": trips is not None}
            of_one |= {"--top": selection.top is not None, "--sort": selection.sort != "cost"}
            if option := next((option for option, is_given in of_one.items() if is_given), ""):
                problem = f"{option} needs one program; {quote(file)} has {len(files)} modules"
                raise QuestionError(problem, f"choose one: {files[-1].path}")
            return _list_modules(files, given, machine, selection, save, output)
        file = files[0].path
    if file.endswith(".py"):
        hint = f"shardviz program {file}:FUNCTION compiles it"
        raise QuestionError(f"{quote(file)} is a Python file", hint)
    text = read_text(file)
    if text.startswith("{") and summaries.says_summary(text[: summaries.HEAD]):
        return _show_saved(file, summaries.read_summary(text, file), output)
    if trips is not None:
        text = call_graph.with_trip_counts(text, call_graph.parse_trip_counts(trips))
    question = programs.ProgramQuestion(text, given)
    del text
    if picture or priced:
        question.check_compiled("--picture" if picture else "--time" if with_times else "--machine")
    if picture:
        listing = listings.list_hlo(question.whole, given, infer=True)
        code = note_unread(listing.module)
        output.show(program_view.module_lines(listing.module, given, *output.page))
        output.show([])
        drawn, count = program_pages.HloPicture(listing, *output.page), len(listing.lines)
        # Some lines after the other: a reader who has seen enough need not wait.
        for start in range(0, count, LINES_AT_ONCE):
            output.show([drawn.line(number) for number in range(start, min(start + LINES_AT_ONCE, count))])
        return code
    if save is not None and question.is_log_alone:
        raise QuestionError("--save needs a program, and this is only a log", "leave out --save")
    answer = question.answer(_pricing_machine(machine) if priced else None)
    del question
    report, remade = answer.report, answer.remade
    failed = lines.sentences(answer.stuck, output.width, lead="✗ ")
    failed += array_table.out_of_memory_lines(answer.out_of_memory, output.width, output.verbose)
    if report is None:
        is_given = given is not None
        is_inferred = answer.mesh is not None and not is_given
        if remade or not failed:
            failed += array_table.log_lines(remade, answer.mesh, output.width, is_given=is_given)
        output.answer(
            lambda: fields.KINDS["rematerializations"].document(
                answer, is_mesh_inferred=is_inferred, rematerializations=remade
            ),
            lambda: failed,
        )
        return ExitCode.FINE
    module, timeline = report.module, report.timeline
    code = note_unread(module)
    selection.check(report.entries, module.mesh)
    if save is not None:
        options.keep(save, programs.summary_of(report), module.unread)
    page = output.page
    if output.as_json:
        print_json(
            documents.hlo_document(
                report, given, selection, remade, stuck=answer.stuck, out_of_memory=answer.out_of_memory
            )
        )
        return code
    if with_times and timeline is not None:
        output.show(program_view.module_lines(module, given, *page))
        output.show_below(time_report.timeline_view(timeline, *page, output.verbose))
        output.show_more("all savings, the critical path and the largest buffers")
        return code
    output.show([*failed, *program_view.hlo_view(report, given, *page, selection, output.verbose)])
    if timeline is not None and timeline.memory is not None:
        output.show_below(program_view.memory_lines(timeline.memory, *page, output.verbose))
    output.show_more("the sums and the memory in full")
    if why:
        output.show(cost_lines.shape_lines(report, selection, *page))
    if remade:
        output.show(array_table.rematerialization_lines(remade, output.width))
    return code


def _show_saved(name: str, saved: ReportSummary, output: CommandOutput) -> ExitCode:
    """Print a report that was saved. Raises `QuestionError` for an option that asks for more than it has."""
    of_output = {"file", "--json", "--width", "--color", "--plain", "-v"}
    for option in options.given_options(click.get_current_context()):
        if option not in of_output:
            raise QuestionError(f"{option} needs a program; {quote(name)} is a saved report", "leave it out")
    output.answer(
        lambda: fields.KINDS["summary"].document(saved),
        lambda: changes_view.summary_view(saved, output.width),
    )
    return ExitCode.FINE


def _list_modules(
    finals: Sequence[dumps.DumpFile],
    given: Mesh | None,
    machine: str | None,
    selection: Selection,
    save: Path | None,
    output: CommandOutput,
) -> ExitCode:
    on = machine_file.named_machine(machine) if machine else None
    modules = [program_report.read_dumped(final, read_text(final.path), given, on) for final in finals]
    reports = [module.report for module in modules if module.report is not None]
    selection.check([entry for report in reports for entry in report.entries], given)
    errors = [module.error for module in modules if module.error]
    code = ExitCode.QUESTION if errors else ExitCode.FINE
    if save is not None:
        options.keep(save, programs.modules_summary(modules), errors)
    output.answer(
        lambda: documents.modules_document(modules, given, selection),
        lambda: program_view.modules_view(modules, output.width, selection),
    )
    return code


def _pricing_machine(named: str | None) -> machines.Machine:
    """The machine of `--machine`, else one that is assumed. Raises `QuestionError` for an unknown one."""
    return machine_file.named_machine(named) if named else machines.assumed_machine()


@command.exports
def _timed(ctx: click.Context, _part: str | None) -> export.Subject:
    given = ctx.params
    mesh = options.asked_mesh(given["mesh"], given["device_order"])
    machine, text = _pricing_machine(given["machine"]), read_text(given["file"])
    return export.times_of(of_program.timed_program(text, machine, mesh=mesh, infer=True)[1])


def note_unread(module: HloModule | ShardyModule) -> ExitCode:
    """Tell what of the text could not be read. Raises `QuestionError` where no collective can be."""
    unread = module.unread
    if module.unread_collectives and not module.collectives:
        raise QuestionError(unread[0], HINT)
    for words in unread[:MAX_NOTES]:
        print_note(words)
    if len(unread) > MAX_NOTES:
        print_note(f"and {len(unread) - MAX_NOTES} more, which --json lists")
    if not unread:
        return ExitCode.FINE
    click.echo(f"hint: {HINT}", err=True)
    return ExitCode.QUESTION


STDIN = "-"


def read_text(name: str) -> str:
    """The text of a file, ``-`` for standard input, its lines ending in ``\\n``; jaxlib has the text of a
    program in binary. A note on stderr tells what was cut off or is not UTF-8; it is read as far as possible.
    Raises `QuestionError` where there is no text."""
    if name != STDIN:
        file = text_file.read_text_file(name, target_session.binary_text)
    elif sys.stdin is None:
        raise QuestionError("standard input is closed", "name a file, or pipe a text in")
    else:
        if sys.stdin.isatty():
            print_note("reading the terminal; ctrl-D ends the text")
        stream = cast("io.BufferedReader", sys.stdin.buffer)
        file = text_file.read_text_stream(stream, "standard input", target_session.binary_text)
    for note in file.notes:
        print_note(note)
    return file.text
