"""`shardviz lesson --check`: lessons checked by shardviz, then against JAX, which runs their programs too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from shardviz.cli.output import print_json, print_note, working
from shardviz.cli.process import ExitCode, on_signal
from shardviz.cli.target_session import started_worker
from shardviz.collectives.frames import Frames
from shardviz.compiler.child_process import simulated_environment, stderr_tail
from shardviz.documents.fields import KINDS
from shardviz.errors import ShardvizError, TargetError, plural
from shardviz.lessons.checking import Complaint, complaints, unchecked_figures
from shardviz.lessons.course import file_names, find
from shardviz.lessons.jax_questions import (
    ArraysQuestion,
    JaxQuestion,
    PlanQuestion,
    RunQuestion,
    jax_questions,
)
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.lesson_file import LessonError, quote_name
from shardviz.lessons.writing import check_written
from shardviz.render.lesson_view import fits
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.stepping.collective_run import compare_with_jax
from shardviz.targets import TARGETS

SIZE = "80x24"
"""The key of errors about texts that are too long for such a terminal."""
TIME_LIMIT_S = 60.0
"""The time limit of one question to JAX, and of one program."""
_ANY = ShardedArray("A", ("i",), (2,), "f32", PartitionSpec(((),)))

Verdict = Callable[[], str]
"""Waits for JAX and returns its disagreement; empty where it agrees."""


class Asked(NamedTuple):
    """A question to JAX: the key that it is about, and whether JAX says the answer of a prediction itself."""

    key: str
    verdict: Verdict
    is_of_answer: bool = False


@dataclass
class Checked:
    """A lesson's file, its errors, and the questions to JAX about it: verdicts by key."""

    file: str
    lesson: Lesson | None = None
    complaints: list[Complaint] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    @classmethod
    def begin(cls, text: str) -> Checked:
        """Check what can be checked without JAX. Raises `LessonError` where `text` names no lesson."""
        names = file_names()
        file = names[int(text) - 1] if text in map(str, range(1, len(names) + 1)) else text
        try:
            lesson = find(text)
        except LessonError as error:
            if not error.name:
                raise
            reason = f"{error.reason} ({error.hint})" if error.hint else error.reason
            return cls(file, None, [Complaint(error.key, reason)])
        if lesson.number:
            file = names[lesson.number - 1]
        wrong = complaints(lesson)
        # Only what can be computed can be laid out.
        return cls(file, lesson, wrong or [Complaint(SIZE, reason) for reason in fits(lesson)])

    @property
    def lines(self) -> list[str]:
        """A line for each error, or one that says what of the lesson JAX was asked for."""
        file = quote_name(self.file)
        if self.complaints:
            return [
                ": ".join(filter(None, (file, complaint.key, complaint.reason)))
                for complaint in self.complaints
            ]
        assert self.lesson is not None
        answers = len(self.lesson.questions)
        checked = len({asked.key for asked in self.asked if asked.is_of_answer})
        others = ", the others are consistent" if checked < answers else ""
        goal = ["goal checked by JAX"] if any(key.startswith("goal.") for key in self.asked_of_jax) else []
        ran = ["its program runs"] * self.asked_of_jax.count("program")
        ran += ["what is written passes"] * ("write.solution" in self.asked_of_jax)
        said = f"{checked} of {plural(answers, 'answer')} checked by JAX{others}"
        count = len(unchecked_figures(self.lesson))
        verb = "is" if count == 1 else "are"
        figures = [f"{plural(count, 'figure')} in its text {verb} not checked"] if count else []
        return [f"{file}: {'; '.join([said, *goal, *ran, *figures])}"]

    @property
    def asked_of_jax(self) -> list[str]:
        """Keys of the file whose answers JAX was asked for."""
        return [asked.key for asked in self.asked]


def check_lessons(texts: Sequence[str], as_json: bool) -> int:
    """Check the lessons that `texts` name, all of the course where there are none; a line each on stdout.
    Raises `LessonError` for a name or a number that no lesson has."""
    with closing(LessonVerifier()) as verifier:
        with working("checking"):
            every = texts or [str(number) for number, _ in enumerate(file_names(), 1)]
            checked = [Checked.begin(text) for text in every]
        with working("loading JAX"):
            silence = verifier.silence()
        if silence:
            print_note(f"JAX checked nothing, and no program ran: {silence}")
        for lesson_check in checked:
            # Asked where shardviz finds nothing wrong.
            if lesson_check.lesson is not None and not lesson_check.complaints and not silence:
                lesson_check.asked = verifier.ask(lesson_check.lesson)
        for lesson_check in checked:
            with working(f"{lesson_check.file}: waiting for JAX"):
                for asked in lesson_check.asked:
                    try:
                        reason = asked.verdict()
                    except ShardvizError as error:
                        reason = f"JAX gives no answer: {error.message}"
                    if reason:
                        lesson_check.complaints.append(Complaint(asked.key, reason))
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


class LessonVerifier:
    """JAX, which computes the answers of lessons too and runs their programs; `close` ends its processes."""

    def __init__(self) -> None:
        self._worker = started_worker(TIME_LIMIT_S)
        self._programs = Programs(simulated_environment(os.environ), TIME_LIMIT_S)
        on_signal(self._programs.kill)
        self._first = self._worker.layout(_ANY, Mesh(("X",), (2,)))

    def close(self) -> None:
        self._programs.close()
        self._worker.close()

    def silence(self) -> str:
        """The reason why JAX cannot be asked here, as soon as that is known; empty where it can."""
        try:
            self._first.result()
        except ShardvizError as error:
            return error.message
        return ""

    def ask(self, lesson: Lesson) -> list[Asked]:
        """Send all questions about a lesson at once; a verdict for each, with the key that it is about. What
        nobody here can answer, as of a mesh with too many devices, is left out."""
        asked = []
        for question in jax_questions(lesson):
            with suppress(TargetError):
                asked.append(Asked(question.key, self._verdict(question), question.is_of_answer))
        if lesson.program:
            asked.append(Asked("program", self._programs.start(lesson.program).result))
        if (writing := lesson.writing) is not None:
            check = partial(check_written, lesson, worker=self._worker)
            passes = "it passes already"
            asked.append(Asked("write.starter", lambda: "" if check(writing.starter).wrong else passes))
            asked.append(Asked("write.solution", lambda: check(writing.solution).wrong))
        return asked

    def _verdict(self, question: JaxQuestion) -> Verdict:
        """Ask at once, and wait when the verdict is wanted. Raises `TargetError` where nobody can answer."""
        worker = self._worker
        match question:
            case ArraysQuestion():
                layouts = [worker.layout(array, question.mesh) for array in question.arrays]
                return lambda: question.disagreement([layout.result() for layout in layouts])
            case RunQuestion():
                asked = question.question
                run = worker.run(*asked.for_jax(), TARGETS["cpu"])
                frames = Frames(asked.schedule, asked.operation, asked.layout.mesh, asked.shards)
                return lambda: question.disagreement(compare_with_jax(asked, frames, run.result()))
            case PlanQuestion():
                first = worker.submit(question.plan.problem, TARGETS["shardy"])

                def of_either() -> str:
                    answers = [first.result()]
                    with suppress(TargetError):
                        if question.disagreement(answers):
                            answers.append(worker.submit(question.plan.problem, TARGETS["cpu"]).result())
                    return question.disagreement(answers)

                return of_either


MAX_BYTES = 16_000_000
"""No file that a program writes may be longer, what it prints included."""
_RUN = f"""\
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, ({MAX_BYTES}, {MAX_BYTES}))
runpy.run_path("program.py", run_name="__main__")
"""


class Programs:
    """Programs that run one after the other, each in a process and a folder of its own."""

    def __init__(self, environment: Mapping[str, str], time_limit: float = TIME_LIMIT_S) -> None:
        self._environment = environment
        self._time_limit = time_limit
        self._pool = ThreadPoolExecutor(1)
        self._running: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def start(self, program: str) -> Future[str]:
        """Run a program after those before it; the result is why it failed, empty where it did not."""
        return self._pool.submit(self._run, program)

    def close(self) -> None:
        """End what runs, and wait for its end."""
        self.kill()
        self._pool.shutdown(cancel_futures=True)

    def kill(self) -> None:
        """End what runs, with all that it started; for a signal handler too: nothing is waited for."""
        self._is_over = True
        if self._running is not None:
            _end(self._running)

    def _run(self, program: str) -> str:
        with tempfile.TemporaryDirectory(prefix="shardviz-") as name:
            folder = Path(name)
            (folder / "program.py").write_text(program, encoding="utf-8")
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                # A session of its own, so that whatever it starts can be ended with it.
                process = self._running = subprocess.Popen(
                    [sys.executable, "-c", _RUN],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=folder,
                    env=self._environment,
                    start_new_session=True,
                )
            if self._is_over:
                _end(process)
            try:
                code = process.wait(self._time_limit)
            except subprocess.TimeoutExpired:
                return f"it was stopped after {self._time_limit:g} s"
            finally:
                _end(process)
                process.wait()
            printed, said = ((folder / stream).read_bytes() for stream in ("out", "err"))
            if len(printed) + len(said) >= MAX_BYTES:
                return f"it prints more than {MAX_BYTES:,} bytes"
            if code:
                words = stderr_tail(said.decode(errors="replace"))
                return f"it ended with {code}{f': {words}' if words else ''}"
            return "" if printed.strip() else "it prints nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
