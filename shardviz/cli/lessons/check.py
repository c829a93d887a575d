"""`shardviz lesson --check`: whether lessons keep their word, by our own means first, then by JAX's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from shardviz.cli.exit_code import ExitCode
from shardviz.cli.lessons.judge import LessonJudge, Verdict
from shardviz.cli.narration import working
from shardviz.errors import plural
from shardviz.lessons.checking import Complaint, complaints
from shardviz.lessons.course import file_names, find
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.table import LessonError, quote_name
from shardviz.render.lessons.fits import fits

SIZE = "80x24"
"""The key of complaints about texts that are too long for such a terminal."""


@dataclass
class Checked:
    """A lesson's file, what is wrong with it, and what JAX is asked about it: verdicts by key."""

    file: str
    lesson: Lesson | None = None
    complaints: list[Complaint] = field(default_factory=list)
    asked: list[tuple[str, Verdict]] = field(default_factory=list)

    @classmethod
    def begin(cls, text: str) -> Checked:
        """Check what can be checked without JAX. Raises `LessonError` where `text` names no lesson."""
        names = file_names()
        file = names[int(text) - 1] if text in _numbers() else text
        try:
            lesson = find(text)
        except LessonError as error:
            if not error.name:
                raise
            reason = f"{error.reason} ({error.hint})" if error.hint else error.reason
            return cls(file, None, [Complaint(error.key, reason)])
        if lesson.number:
            file = names[lesson.number - 1]
        found = complaints(lesson)
        # Only what can be computed can be laid out.
        return cls(file, lesson, found or [Complaint(SIZE, reason) for reason in fits(lesson)])

    def ask(self, judge: LessonJudge) -> None:
        """Have JAX asked, where the lesson is right as far as we can say."""
        if self.lesson is not None and not self.complaints:
            self.asked = judge.ask(self.lesson)

    def wait(self) -> None:
        """Take JAX's verdicts."""
        for key, verdict in self.asked:
            if reason := verdict():
                self.complaints.append(Complaint(key, reason))

    @property
    def lines(self) -> list[str]:
        """A line for each complaint, or the one that says that there is none."""
        file = quote_name(self.file)
        if self.complaints:
            return [": ".join(filter(None, (file, each.key, each.reason))) for each in self.complaints]
        keys = self.asked_of_jax
        said = [f"JAX agrees {_times(len(keys) - keys.count('program'))}"] if keys != ["program"] else []
        ran = ["its program runs"] * keys.count("program")
        return [f"{file}: {', '.join(['right', *said * bool(keys), *ran])}"]

    @property
    def asked_of_jax(self) -> list[str]:
        """Keys of the file whose answers JAX was asked for."""
        return [key for key, _ in self.asked]


def check_lessons(texts: Sequence[str], as_json: bool) -> int:
    """Check the lessons that `texts` name, all of the course where there are none; a line each on stdout.

    Raises `LessonError` for a name or a number that no lesson has.
    """
    with LessonJudge() as judge:
        with working("checking"):
            checked = [Checked.begin(text) for text in texts or _numbers()]
        with working("loading JAX"):
            silence = judge.silence()
        if silence:
            click.echo(f"shardviz: note: JAX was not asked, and no program ran: {silence}", err=True)
        else:
            for each in checked:
                each.ask(judge)
        for each in checked:
            with working(f"{each.file}: waiting for JAX"):
                each.wait()
            if not as_json:
                click.echo("\n".join(each.lines))
    wrong = [each for each in checked if each.complaints]
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.course import LESSON_CHECK

        print_json(LESSON_CHECK.document(lessons=checked, note=silence))
    else:
        click.echo(_total(len(checked), wrong))
    return ExitCode.CHECK_FAILED if wrong else ExitCode.FINE


def _numbers() -> list[str]:
    return [str(number) for number, _ in enumerate(file_names(), 1)]


def _total(count: int, wrong: Sequence[Checked]) -> str:
    if not wrong:
        return f"{plural(count, 'lesson')}, nothing to complain about"
    found = sum(len(each.complaints) for each in wrong)
    return f"{plural(found, 'complaint')} about {plural(len(wrong), 'lesson')} of {count}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
