"""`shardviz hlo`: the collectives in any compiled program, from a file or standard input of any bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from shardviz.cli import options, saving
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, print_note
from shardviz.cli.process import ExitCode
from shardviz.errors import QuestionError, quote
from shardviz.hlo import HloModule, read
from shardviz.hlo.listing import Listing, list_hlo
from shardviz.hlo.mlir.shardy import is_mlir
from shardviz.hlo.module import is_hlo
from shardviz.hlo.passes.dump_files import final_programs
from shardviz.hlo.text.trip_count import parse_trip_counts, with_trip_counts
from shardviz.hlo.text_file import read_text_file, read_text_stream
from shardviz.notation import parse_mesh
from shardviz.reports.rematerialization import (
    has_rematerializations,
    mesh_of_warnings,
    rematerializations,
    rematerializations_of,
    without_warnings,
)
from shardviz.user_files import is_folder

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

    from shardviz.hardware.machine import Machine
    from shardviz.hlo import ShardyModule
    from shardviz.hlo.passes.dump_files import DumpFile
    from shardviz.reports.changes import ReportSummary
    from shardviz.reports.entries import Selection
    from shardviz.reports.program_report import DumpedModule
    from shardviz.sharding import Mesh


OF_OUTPUT = ("as_json", "width", "color", "plain")
"""The options that a saved report has."""
MAX_NOTES = 5
"""Notes on text that cannot be read; `--json` has all of them."""
LINES_AT_ONCE = 500
HINT = "save all of compiled.as_text() again, as it is"
EXAMPLES = (
    ("What a compiled program sends, from a file", "shardviz hlo step.txt"),
    ("With the names of its mesh's axes", "shardviz hlo step.txt --mesh data=2,model=4"),
    ("The five that cost most on a TPU", "shardviz hlo step.txt --machine v5e:2x4 --top 5"),
    ("The final program of each module in a folder of dumps", "shardviz hlo dumps --machine v5e:2x4"),
    ("The program itself, what overlaps at the left", "shardviz hlo step.txt --picture"),
    ("What XLA's log says of arrays that it makes whole", "shardviz hlo compile.log --mesh data=2,model=4"),
    (
        "When each instruction runs on a TPU, and live memory",
        "shardviz hlo step.txt --machine v5e:2x4 --time",
    ),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("file")
@click.option(
    "--mesh", metavar="NAME=SIZE,…", help="Axes of the mesh; default: inferred from the program's groups."
)
@click.option("--device-order", metavar="ID,…", help="Device ids in the mesh's order, to show groups with.")
@options.selection
@options.trips
@click.option("--why", is_flag=True, help="Show why collectives are there, as shapes and groups tell it.")
@options.machine
@click.option("--picture", is_flag=True, help="Show the program line by line instead.")
@click.option(
    "--time", "with_times", is_flag=True, help="Show when each instruction runs instead, and live memory."
)
@saving.save
@options.output
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
    """List the collectives of the program in FILE: how many, how large, along which axes, from which line.

    FILE holds HLO, StableHLO or Shardy text, as compiled.as_text() or XLA's dumps have it; - reads standard
    input, and gzip is unpacked. A log, alone or around the text, may have XLA's warnings of an involuntary
    full rematerialization: they are read too. Of a folder of dumps it lists the final program of each module,
    of a file of --save what was kept. Counts include loops. Text that cannot be read is reported, and then
    the exit code is 2.

    --json has the collectives that the page has, in program order.
    """
    if picture and output.as_json:
        raise QuestionError("--picture and --json cannot be combined", "leave out one of them")
    if picture and (with_times or machine or save or why):
        option = "--time" if with_times else "--machine" if machine else "--save" if save else "--why"
        raise QuestionError(f"--picture and {option} cannot be combined", "leave out one of them")
    if why and with_times and not output.as_json:
        raise QuestionError("--why and --time cannot be combined", "leave out one of them, or add --json")
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order is the order of a mesh's devices", "add --mesh X=2,Y=4")
    given = None if mesh is None else parse_mesh(mesh, device_order)
    priced = with_times or machine is not None
    if file not in (STDIN, "") and is_folder(Path(file)):
        found = final_programs(Path(file))
        if len(found) > 1:
            of_one = {
                "--picture": picture,
                "--time": with_times,
                "--why": why,
                "--trips": trips is not None,
                "--top": selection.top is not None,
                "--sort": selection.sort != "cost",
            }
            for option, is_given in of_one.items():
                if is_given:
                    raise QuestionError(
                        f"{option} is about one program, and {quote(file)} has those of {len(found)} modules",
                        f"name one: {found[-1].path}",
                    )
            return _list_modules(found, given, machine, selection, save, output)
        file = found[0].path
    text = read_text(file)
    if text.startswith("{") and (saved := _saved(file, text)) is not None:
        return _show_saved(file, saved, output)
    if trips is not None:
        text = with_trip_counts(text, parse_trip_counts(trips))
    if (picture or priced) and is_mlir(text) and not is_hlo(text):
        option = "--picture" if picture else "--time" if with_times else "--machine"
        raise QuestionError(
            f"{option} is about a compiled program, and this is not compiled yet",
            f"leave out {option}, or give HLO: lowered.compile().as_text()",
        )
    if picture:
        listing = list_hlo(text, given, infer=True)
        code = note_unread(listing.module)
        _draw(listing, given, output)
        return code
    log = ""
    if has_rematerializations(text):
        log, text = text, without_warnings(text)
        if not is_hlo(text) and not is_mlir(text):
            if save is not None:
                raise QuestionError("--save keeps a program, and this is a log alone", "leave out --save")
            return _show_log(log, given, output)
    from shardviz.reports.program_report import program_report, report_of

    if priced:
        report = program_report(text, pricing_machine(machine), mesh=given, infer=True)
    else:
        report = report_of(read(text, given, infer=True, origins=True))
    remade = rematerializations(log, report.module.mesh, text) if log else ()
    if isinstance(report.module, HloModule) and not remade:
        remade = rematerializations_of(report.module)
    del text
    module, timeline = report.module, report.timeline
    code = note_unread(module)
    selection.check(report.entries, module.mesh)
    if save is not None:
        from shardviz.reports.changes import summary

        saving.save_programs(save, {module.name: summary(report)}, module.unread)
    if output.as_json:
        from shardviz.documents.programs import hlo_document

        print_json(hlo_document(report, given, selection, remade))
        return code
    if with_times and timeline is not None:
        from rich.text import Text

        from shardviz.render.programs.hlo_view import module_lines
        from shardviz.render.times.report import timeline_view

        head = module_lines(module, given, output.width, output.palette)
        output.show([*head, Text(), *timeline_view(timeline, output.width, output.palette)])
        return code
    from shardviz.render.programs.hlo_view import hlo_view

    output.show(hlo_view(report, given, output.width, output.palette, selection))
    if timeline is not None and timeline.memory is not None:
        from rich.text import Text

        from shardviz.render.times.report import memory_report_lines

        output.show([Text(), *memory_report_lines(timeline.memory, output.width, output.palette)])
    if why:
        from shardviz.render.programs.why_lines import shape_lines

        output.show(shape_lines(report, selection, output.width, output.palette))
    if remade:
        from shardviz.render.programs.why_lines import rematerialization_lines

        output.show(rematerialization_lines(remade, output.width))
    return code


def _saved(name: str, text: str) -> ReportSummary | None:
    """The report that `--save` has written; None of a text that is none. Raises `QuestionError` for a damaged
    one."""
    from shardviz.documents.summaries import HEAD, read_summary, says_summary

    return read_summary(text, name) if says_summary(text[:HEAD]) else None


def _show_saved(name: str, saved: ReportSummary, output: CommandOutput) -> ExitCode:
    """Print a report that was saved. Raises `QuestionError` for an option that asks for more than it has."""
    ctx = click.get_current_context()
    given = (each for each in ctx.command.params if each.name and options.is_given(ctx, each.name))
    for each in given:
        if isinstance(each, click.Option) and each.name not in OF_OUTPUT:
            raise QuestionError(
                f"{each.opts[0]} is about a program, and {quote(name)} is a saved report", "leave it out"
            )
    if output.as_json:
        from shardviz.documents.summaries import SUMMARY

        print_json(SUMMARY.document(saved))
        return ExitCode.FINE
    from shardviz.render.programs.changes_view import summary_view

    output.show(summary_view(saved, output.width))
    return ExitCode.FINE


def _show_log(log: str, given: Mesh | None, output: CommandOutput) -> ExitCode:
    """Print what a log alone tells of arrays that are made whole."""
    mesh = given or mesh_of_warnings(log.splitlines())
    found = rematerializations(log, mesh)
    if output.as_json:
        from shardviz.documents.programs import rematerializations_document

        print_json(rematerializations_document(found, mesh, given))
        return ExitCode.FINE
    from shardviz.render.programs.why_lines import log_lines

    output.show(log_lines(found, mesh, output.width, is_given=given is not None))
    return ExitCode.FINE


def _list_modules(
    finals: Sequence[DumpFile],
    given: Mesh | None,
    machine: str | None,
    selection: Selection,
    save: Path | None,
    output: CommandOutput,
) -> ExitCode:
    """Print a line for each module, or the documents of all."""
    from shardviz.hardware.machine_file import named_machine
    from shardviz.reports.program_report import read_dumped

    on = named_machine(machine) if machine else None
    modules = [read_dumped(each, read_text(each.path), given, on) for each in finals]
    reports = [each.report for each in modules if each.report is not None]
    selection.check([entry for each in reports for entry in each.entries], given)
    code = ExitCode.QUESTION if any(each.error for each in modules) else ExitCode.FINE
    if save is not None:
        _save_modules(save, modules)
    if output.as_json:
        from shardviz.documents.programs import modules_document

        print_json(modules_document(modules, given, selection))
        return code
    from shardviz.render.programs.hlo_view import modules_view

    output.show(modules_view(modules, output.width, selection))
    return code


def _save_modules(path: Path, modules: Sequence[DumpedModule]) -> None:
    from shardviz.hlo.passes.dump_files import distinct_names
    from shardviz.reports.changes import summary

    names = distinct_names(each.file for each in modules)
    found = {name: each.report for name, each in zip(names, modules, strict=True) if each.report is not None}
    errors = [each.error for each in modules if each.error]
    saving.save_programs(path, {name: summary(each) for name, each in found.items()}, errors)


def pricing_machine(named: str | None) -> Machine:
    """The machine of `--machine`, else one that is assumed.

    Raises `QuestionError` for a machine that does not exist.
    """
    from shardviz.hardware.machine import assumed_machine
    from shardviz.hardware.machine_file import named_machine

    return named_machine(named) if named else assumed_machine()


def _draw(listing: Listing, given: Mesh | None, output: CommandOutput) -> None:
    """Print the program, some lines after the other: a reader who has seen enough need not wait."""
    from rich.text import Text

    from shardviz.render.programs.hlo_picture import HloPicture
    from shardviz.render.programs.hlo_view import module_lines

    output.show([*module_lines(listing.module, given, output.width, output.palette), Text()])
    picture = HloPicture(listing, output.width, output.palette)
    count = len(listing.lines)
    for start in range(0, count, LINES_AT_ONCE):
        output.show([picture.line(number) for number in range(start, min(start + LINES_AT_ONCE, count))])


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
    """The text of a file, ``-`` for standard input; gzip is unpacked, lines end in ``\\n``.

    A note on stderr tells what was cut off or is not UTF-8; it is read as far as possible. Raises
    `QuestionError` where there is no text.
    """
    if name != STDIN:
        found = read_text_file(name)
    elif sys.stdin is None:
        raise QuestionError("standard input is closed", "name a file, or pipe a text in")
    else:
        if sys.stdin.isatty():
            print_note("reading the terminal; ctrl-D ends the text")
        found = read_text_stream(cast("io.BufferedReader", sys.stdin.buffer), "standard input")
    for note in found.notes:
        print_note(note)
    return found.text
