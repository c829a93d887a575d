"""`shardviz lesson`: the course, one of its lessons, what a learner writes for it, files for a teacher."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_note, working
from shardviz.cli.process import ExitCode
from shardviz.cli.streams import no_terminal
from shardviz.cli.target_session import started_worker
from shardviz.documents.fields import KINDS
from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.lessons.course import course, faults, find
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.progress import load
from shardviz.user_files import free_name, new_path, target_path, write_file

with LazyImports():
    from shardviz.cli import lesson_check
    from shardviz.cli import open_app as cli_open_app
    from shardviz.forms import state_file
    from shardviz.lessons import hand_in, writing
    from shardviz.render import lesson_view
    from shardviz.render.exports import lesson_files

POLL_S = 0.2


@options.command("lesson")
@click.argument("lessons", nargs=-1, metavar="[LESSON]…")
def command(
    lessons: tuple[str, ...],
    present: bool,
    check: bool,
    name: str | None,
    folder: str | None,
    notebook: bool,
    watched: str | None,
    file: str | None,
    output: CommandOutput,
) -> int:
    """Learn by predicting and changing: the course, or one LESSON of it.

    LESSON is a number, a name, or the path of a lesson file of your own."""
    chosen = {"--check": check and folder is None, "--present": present, "--notebook": notebook}
    chosen |= {"--hand-in": name is not None, "--grade": folder is not None, "--watch": watched is not None}
    options.refuse_both(chosen, "give one of them")
    if name is not None:
        return _hand_in(name, lessons, file)
    if folder is not None:
        return _grade(folder, lessons, check, file, output)
    if notebook:
        return _notebook(lessons, file)
    if file is not None:
        raise QuestionError("-o needs something to write", "add --hand-in, --grade or --notebook")
    if check:
        return lesson_check.check_lessons(lessons, output.as_json)
    of_one = "--present" if present else "--watch" if watched is not None else ""
    if of_one and output.as_json:
        hint = "leave out --json; shardviz lesson --json prints the course"
        raise QuestionError(f"{of_one} prints no JSON", hint)
    if of_one and not lessons:
        example = f"lesson 7 {of_one}{' ring.py' * (watched is not None)}"
        raise QuestionError(f"{of_one} needs a lesson", f"give its number or its name: {example}")
    if len(lessons) > 1:
        problem = f"{len(lessons)} lessons are given, but only one can be opened"
        raise QuestionError(problem, "--check, --hand-in and --grade take several")
    if watched is not None:
        return _watch(find(lessons[0]), watched, output)
    return _open_lesson(lessons[0], present, output) if lessons else _list_lessons(output)


def _watch(lesson: Lesson, name: str, output: CommandOutput) -> int:
    """Check a file now and at every save, and keep its text as progress; without a terminal, once."""
    file, progress, fails = writing.SavedFile(target_path(name), writing.starter_file(lesson)), load(), 0
    notes = [progress.notice, "" if file.path.exists() else f"{quote(name)} is new: it has the task"]
    for note in filter(None, notes):
        print_note(note)
    with closing(started_worker(timeout=300.0)) as worker:
        while True:
            if (text := file.saved()) is None:
                time.sleep(POLL_S)
                continue
            with working("checking"):
                check = writing.check_written(lesson, text, worker, file.path, output=2)
            try:
                left = load().left(lesson) or progress.attempt(lesson)  # the application may have gone on
                progress.save(left.wrote(text, not check.wrong))
            except state_file.StateError as error:
                print_note(error.message)
            output.show(lesson_view.written_lines(lesson, check, output.width, fails))
            output.show([])
            if not check.wrong or not sys.stdout.isatty():
                return ExitCode.CHECK_FAILED if check.wrong else ExitCode.FINE
            if not fails:
                print_note(f"{quote(name)} is checked again at every save; ctrl-c ends")
            fails += 1


def _open_lesson(text: str, present: bool, output: CommandOutput) -> int:
    lesson = find(text)
    reason = "" if output.as_json else no_terminal()
    if not output.as_json and not reason:
        return cli_open_app.open_app(lesson=lesson, present=present)
    if reason:
        print_note(reason)
    output.answer(
        lambda: KINDS["lesson"].document(lesson=lesson), lambda: lesson_view.lesson_page(lesson, output.width)
    )
    return ExitCode.FINE


def _hand_in(name: str, lessons: Sequence[str], file: str | None) -> int:
    progress = load()
    if progress.notice:
        print_note(progress.notice)
    text = hand_in.hand_in(name, progress, [*map(find, lessons)] or course())
    stem = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
    path = new_path(file or free_name(f"hand-in-{stem}", "json"))
    write_file(path, text)
    click.echo(f"{path}: {name}'s answers, tries, hints and minutes; hand in this file")
    return ExitCode.FINE


def _grade(folder: str, lessons: Sequence[str], runs: bool, file: str | None, output: CommandOutput) -> int:
    if output.as_json:
        raise QuestionError("--grade prints no JSON", "leave out --json; a pipe gets CSV")
    path = None if file is None else new_path(file)
    with working("checking"), closing(started_worker(lesson_check.TIME_LIMIT_S)) as worker:
        graded = [*map(find, lessons)] or course()
        rows, said = hand_in.grades(Path(folder), graded, worker if runs else None)
    for note in said:
        print_note(note)
    if not rows:
        hint = "pupils write them with shardviz lesson --hand-in NAME"
        raise QuestionError(f"no file in {quote(folder)} can be graded", hint)
    if path is not None:
        write_file(path, lesson_view.grades_csv(rows))
    if sys.stdout.isatty():
        output.show(lesson_view.grades_page(rows, output.width))
    else:
        click.echo(lesson_view.grades_csv(rows), nl=False)
    return ExitCode.FINE


def _notebook(lessons: Sequence[str], file: str | None) -> int:
    if len(lessons) != 1:
        raise QuestionError("--notebook needs one lesson", "give its number or its name: 8 --notebook")
    lesson = find(lessons[0])
    path = new_path(file or free_name(lesson.name, "ipynb"))
    write_file(path, lesson_files.lesson_notebook(lesson))
    click.echo(f"{path}: open it in Jupyter or Colab")
    return ExitCode.FINE


def _list_lessons(output: CommandOutput) -> int:
    progress = load()
    if progress.notice:
        print_note(progress.notice)
    for fault in faults():
        print_note(fault.message)
    entries = [progress.entry(lesson) for lesson in course()]
    output.answer(
        lambda: KINDS["lessons"].document(lessons=entries),
        lambda: lesson_view.course_page(entries, output.width),
    )
    return ExitCode.FINE
