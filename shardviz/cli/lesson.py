"""`shardviz lesson`: the course, one of its lessons, and the check of lesson files."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, print_note
from shardviz.cli.process import ExitCode
from shardviz.cli.streams import no_terminal
from shardviz.documents.fields import KINDS
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.lessons.course import course, faults, find
from shardviz.lessons.progress import load

with LazyImports():
    from shardviz.cli import lesson_check
    from shardviz.cli import open_app as cli_open_app
    from shardviz.render import lesson_view


@click.command("lesson", cls=ExampleCommand)
@click.argument("lessons", nargs=-1, metavar="[LESSON]…")
@options.flag("--present", "For a class: large text, light theme, answers hidden until space is pressed.")
@options.flag("--check", "Check LESSON, or all lessons; this runs the programs in their files.")
@options.output
def command(
    lessons: tuple[str, ...],
    present: bool,
    check: bool,
    output: CommandOutput,
) -> int:
    """Learn by predicting and changing: the course, or one LESSON of it.

    LESSON is a number, a name, or the path of a lesson file of your own.
    """
    options.refuse_both({"--check": check, "--present": present}, "give one of them")
    if check:
        return lesson_check.check_lessons(lessons, output.as_json)
    if present and output.as_json:
        hint = "leave out --json; shardviz lesson --json prints the course"
        raise QuestionError("--present prints no JSON", hint)
    if present and not lessons:
        raise QuestionError("--present needs a lesson", "give its number or its name: --present 4")
    if len(lessons) > 1:
        problem = f"{len(lessons)} lessons are given, but only one can be opened"
        raise QuestionError(problem, "only --check takes several")
    return _open_lesson(lessons[0], present, output) if lessons else _list_lessons(output)


def _open_lesson(text: str, present: bool, output: CommandOutput) -> int:
    lesson = find(text)
    if output.as_json:
        print_json(KINDS["lesson"].document(lesson=lesson))
        return ExitCode.FINE
    if reason := no_terminal():
        print_note(reason)
        output.show(lesson_view.lesson_page(lesson, output.width))
        return ExitCode.FINE

    return cli_open_app.open_app(lesson=lesson, present=present)


def _list_lessons(output: CommandOutput) -> int:
    progress = load()
    if progress.notice:
        print_note(progress.notice)
    for fault in faults():
        print_note(fault.message)
    entries = [progress.entry(lesson) for lesson in course()]
    if output.as_json:
        print_json(KINDS["lessons"].document(lessons=entries))
    else:
        output.show(lesson_view.course_page(entries, output.width))
    return ExitCode.FINE
