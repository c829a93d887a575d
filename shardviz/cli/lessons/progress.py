"""The course with what is solved of it: listed, and forgotten again."""

from __future__ import annotations

import sys

import click

from shardviz.cli.exit_code import ExitCode
from shardviz.errors import QuestionError, plural
from shardviz.lessons.course import course, faults, find
from shardviz.lessons.progress import Progress, load


def list_lessons(as_json: bool, width: int | None, color: str) -> int:
    """List the course, with the state of every lesson, and say what opens the next one."""
    progress = progress_told()
    for fault in faults():
        click.echo(f"shardviz: note: {fault.message}", err=True)
    entries = [progress.entry(lesson) for lesson in course()]
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.course import LESSONS

        print_json(LESSONS.document(lessons=entries))
        return ExitCode.FINE
    from shardviz.cli.screen import screen
    from shardviz.render.lessons.course import course_page

    page = screen(width, color)
    page.show(course_page(entries, page.width))
    return ExitCode.FINE


def reset_progress(texts: tuple[str, ...], is_sure: bool) -> int:
    """Forget one lesson, or all; on a terminal only when that is wanted. Raises `StateError`."""
    lesson = find(texts[0]) if texts else None
    what = "the whole course" if lesson is None else f"“{lesson.title}”"
    if not is_sure and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(f"Forget what you solved of {what}? [y/N] ", nl=False, err=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            click.echo("nothing was forgotten")
            return ExitCode.FINE
    elif not is_sure:
        reason = f"--reset forgets what you solved of {what}"
        raise QuestionError(reason, "add --yes where nobody can be asked")
    count = progress_told().reset(lesson)
    if not count:
        click.echo(f"nothing of {what} was begun: nothing to forget")
    else:
        click.echo(f"{what} is forgotten" if lesson else f"{plural(count, 'lesson')} forgotten")
    return ExitCode.FINE


def progress_told() -> Progress:
    """The learner's progress; what is wrong with its file is told on stderr."""
    progress = load()
    if progress.notice:
        click.echo(f"shardviz: note: {progress.notice}", err=True)
    return progress
