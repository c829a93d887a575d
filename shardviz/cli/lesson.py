"""`shardviz lesson`: the course, one of its lessons, what a learner writes for it, files for a teacher."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json, print_note, working
from shardviz.cli.process import ExitCode, on_signal
from shardviz.cli.streams import no_terminal
from shardviz.cli.target_session import started_worker
from shardviz.documents.fields import KINDS
from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.lessons.course import course, faults, file_names, find
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.lesson_file import LessonError, quote_name
from shardviz.lessons.progress import load
from shardviz.user_files import free_name, new_path, target_path, write_file

with LazyImports():
    from shardviz.cli import export, open_app as cli_open_app
    from shardviz.forms import resolve, state_file
    from shardviz.lessons import checking, hand_in, verifier, writing
    from shardviz.render import lesson_view
    from shardviz.render.exports import lesson_files

POLL_S = 0.2
SIZE = "80x24"
"""The key of errors about texts that are too long for such a terminal."""


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
        return _check(lessons, output.as_json)
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


@command.exports
def _shown(ctx: click.Context, part: export.Part | None) -> export.Subject:
    """The lesson's own program, else its solution, or its start."""
    if len(ctx.params["lessons"]) != 1:
        raise QuestionError("an export needs one lesson", "give its number or its name: lesson 11")
    lesson = find(ctx.params["lessons"][0])
    if lesson.program and part is None:
        return export.Subject(lesson.program, lesson.full_title)
    draft, part = (lesson.setup, None) if part == "start" else (lesson.solution, part)
    return export.subject_of_form(resolve.resolve(draft), lesson.screen, part, lesson.full_title)


@dataclass
class _Checked:
    """A lesson's file, its errors, and the questions to JAX about it."""

    file: str
    lesson: Lesson | None = None
    complaints: list[checking.Complaint] = field(default_factory=list)
    asked: list[verifier.Asked] = field(default_factory=list)

    @classmethod
    def begin(cls, text: str) -> _Checked:
        """Check what can be checked without JAX. Raises `LessonError` where `text` names no lesson."""
        names = file_names()
        file = names[int(text) - 1] if text in map(str, range(1, len(names) + 1)) else text
        try:
            lesson = find(text)
        except LessonError as error:
            if not error.name:
                raise
            reason = f"{error.reason} ({error.hint})" if error.hint else error.reason
            return cls(file, None, [checking.Complaint(error.key, reason)])
        if lesson.number:
            file = names[lesson.number - 1]
        wrong = checking.complaints(lesson)
        if not wrong:  # only what can be computed can be laid out
            wrong = [checking.Complaint(SIZE, reason) for reason in lesson_view.fits(lesson)]
        return cls(file, lesson, wrong)

    @property
    def lines(self) -> list[str]:
        """A line for each error, or one that says what of the lesson JAX was asked for."""
        file = quote_name(self.file)
        if self.complaints:
            return [": ".join(filter(None, (file, one.key, one.reason))) for one in self.complaints]
        assert self.lesson is not None
        answers = len(self.lesson.questions)
        checked = len({asked.key for asked in self.asked if asked.is_of_answer})
        others = ", the others are consistent" if checked < answers else ""
        goal = ["goal checked by JAX"] if any(key.startswith("goal.") for key in self.asked_of_jax) else []
        ran = ["its program runs"] * self.asked_of_jax.count("program")
        ran += ["what is written passes"] * ("write.solution" in self.asked_of_jax)
        said = f"{checked} of {plural(answers, 'answer')} checked by JAX{others}"
        count = len(checking.unchecked_figures(self.lesson))
        verb = "is" if count == 1 else "are"
        figures = [f"{plural(count, 'figure')} in its text {verb} not checked"] if count else []
        return [f"{file}: {'; '.join([said, *goal, *ran, *figures])}"]

    @property
    def asked_of_jax(self) -> list[str]:
        """Keys of the file whose answers JAX was asked for."""
        return [asked.key for asked in self.asked]


def _check(texts: Sequence[str], as_json: bool) -> int:
    """Check the lessons that `texts` name, all of the course where there are none; a line each on stdout.
    Raises `LessonError` for a name or a number that no lesson has."""
    with closing(verifier.LessonVerifier(started_worker(verifier.TIME_LIMIT_S))) as jax:
        on_signal(jax.programs.kill)
        with working("checking"):
            every = texts or [str(number) for number, _ in enumerate(file_names(), 1)]
            checked = [_Checked.begin(text) for text in every]
        with working("loading JAX"):
            silence = jax.silence()
        if silence:
            print_note(f"JAX checked nothing, and no program ran: {silence}")
        for lesson_check in checked:
            # Asked where shardviz finds nothing wrong.
            if lesson_check.lesson is not None and not lesson_check.complaints and not silence:
                lesson_check.asked = jax.ask(lesson_check.lesson)
        for lesson_check in checked:
            with working(f"{lesson_check.file}: waiting for JAX"):
                for asked in lesson_check.asked:
                    try:
                        reason = asked.disagreement()
                    except ShardvizError as error:
                        reason = f"JAX gives no answer: {error.message}"
                    if reason:
                        lesson_check.complaints.append(checking.Complaint(asked.key, reason))
            if not as_json:
                click.echo("\n".join(lesson_check.lines))
    wrong = [checked for checked in checked if checked.complaints]
    if as_json:
        print_json(KINDS["lesson_check"].document(lessons=checked, note=silence))
    else:
        lessons, errors = plural(len(checked), "lesson"), sum(len(checked.complaints) for checked in wrong)
        some = f"{plural(errors, 'error')} in {len(wrong)} of {lessons}"
        click.echo(some if wrong else f"{lessons}, no errors")
    return ExitCode.CHECK_FAILED if wrong else ExitCode.FINE


def _watch(lesson: Lesson, name: str, output: CommandOutput) -> int:
    """Check a file now and at every save, and keep its text as progress; without a terminal, once."""
    if not name.endswith(".py"):
        raise QuestionError(f"{quote(name)} is not a Python file", "its name ends in .py, such as ring.py")
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
    with working("checking"), closing(started_worker(verifier.TIME_LIMIT_S)) as worker:
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
