"""`shardviz lesson`: the course, one of its lessons, and the check of lesson files."""

from __future__ import annotations

import sys

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, print_note
from shardviz.cli.process import ExitCode
from shardviz.cli.streams import no_terminal
from shardviz.documents.course import LESSON, LESSONS
from shardviz.errors import QuestionError, plural
from shardviz.lazy_names import LazyImports
from shardviz.lessons.course import course, faults, find
from shardviz.lessons.progress import CourseProgress, load

with LazyImports():
    from shardviz.cli import lesson_check
    from shardviz.cli import open_app as cli_open_app
    from shardviz.render import lesson_view

MODES = ("check", "reset", "present")
"""Options that each say what is to be done."""


@click.command("lesson", cls=ExampleCommand)
@click.argument("lessons", nargs=-1, metavar="[LESSON]…")
@options.flag("--present", "For a class: large and light, answers hidden until space.")
@options.flag("--check", "Check lessons, all of them without LESSON. This runs the programs in their files.")
@options.flag("--reset", "Forget your progress, in all lessons without LESSON.")
@options.flag("--yes", "With --reset: do not ask.")
@options.output
def command(
    lessons: tuple[str, ...],
    present: bool,
    check: bool,
    reset: bool,
    yes: bool,
    output: CommandOutput,
) -> int:
    """Learn by predicting and changing: the course, or one LESSON of it.

    LESSON is a number, a name, or the path of a lesson file of your own.
    """
    given = dict(zip(MODES, (check, reset, present), strict=True))
    mode = _mode(given, lessons, yes, output.as_json)
    if mode == "check":
        return lesson_check.check_lessons(lessons, output.as_json)
    if mode == "reset":
        return _reset_progress(lessons, yes)
    if not lessons:
        return _list_lessons(output)
    return _open_lesson(lessons[0], present, output)


def _mode(given: dict[str, bool], lessons: tuple[str, ...], yes: bool, as_json: bool) -> str:
    """The action, one of `MODES`, or "" to open or list. Raises `QuestionError` for a clash."""
    options.refuse_both({f"--{name}": given[name] for name in MODES}, "give one of them")
    mode = next((name for name in MODES if given[name]), "")
    if yes and mode != "reset":
        raise QuestionError("--yes answers what only --reset asks", "add --reset, or leave out --yes")
    if as_json and mode in ("reset", "present"):
        raise QuestionError(
            f"--{mode} prints no JSON", "leave out --json; shardviz lesson --json is the whole course"
        )
    if mode == "present" and not lessons:
        raise QuestionError("--present needs a lesson", "give its number or its name: --present 4")
    if len(lessons) > 1 and mode != "check":
        verb = "forgotten" if mode == "reset" else "opened"
        problem = f"{len(lessons)} lessons are named, and one is {verb} at a time"
        raise QuestionError(problem, "only --check takes several")
    return mode


def _open_lesson(text: str, present: bool, output: CommandOutput) -> int:
    lesson = find(text)
    if output.as_json:
        print_json(LESSON.document(lesson=lesson))
        return ExitCode.FINE
    if reason := no_terminal():
        print_note(reason)
        output.show(lesson_view.lesson_page(lesson, output.width))
        return ExitCode.FINE

    return cli_open_app.open_app(lesson=lesson, present=present)


def _list_lessons(output: CommandOutput) -> int:
    progress = _progress()
    for fault in faults():
        print_note(fault.message)
    entries = [progress.entry(lesson) for lesson in course()]
    if output.as_json:
        print_json(LESSONS.document(lessons=entries))
    else:
        output.show(lesson_view.course_page(entries, output.width))
    return ExitCode.FINE


def _reset_progress(texts: tuple[str, ...], is_sure: bool) -> int:
    lesson = find(texts[0]) if texts else None
    what = "the whole course" if lesson is None else f"“{lesson.title}”"
    if not is_sure and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(f"Forget what you solved of {what}? [y/N] ", nl=False, err=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            click.echo("nothing was forgotten")
            return ExitCode.FINE
    elif not is_sure:
        reason = f"--reset forgets what you solved of {what}"
        raise QuestionError(reason, "add --yes to confirm")
    count = _progress().reset(lesson)
    if not count:
        click.echo(f"nothing of {what} was begun: nothing to forget")
    else:
        click.echo(f"{what} is forgotten" if lesson else f"{plural(count, 'lesson')} forgotten")
    return ExitCode.FINE


def _progress() -> CourseProgress:
    progress = load()
    if progress.notice:
        print_note(progress.notice)
    return progress
