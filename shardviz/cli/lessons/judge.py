"""JAX as the judge of lessons: it is asked for what it can compute too, and runs their programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from types import TracebackType

from shardviz.cli.interrupt import before_the_end
from shardviz.cli.lessons.programs import Programs
from shardviz.collectives import Frames
from shardviz.compiler import TARGETS, Compiled, Worker
from shardviz.compiler.environments import simulated_environment
from shardviz.errors import ShardvizError, TargetError
from shardviz.lessons.jax_questions import (
    ArraysQuestion,
    JaxQuestion,
    PlanQuestion,
    RunQuestion,
    jax_questions,
)
from shardviz.lessons.lesson import Lesson
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.stepping.verdict import ask_jax, compare_with_jax

TIME_LIMIT_S = 60.0
"""What JAX may take for one question, and a program for its run."""
_ANY = ShardedArray("A", ("i",), (2,), "f32", PartitionSpec(((),)))

Verdict = Callable[[], str]
"""Waits for JAX, and says what it says otherwise; empty where it agrees."""


class LessonJudge:
    """Who says whether lessons are right. Leaving the context ends JAX's processes."""

    def __init__(self) -> None:
        self._worker = Worker(TIME_LIMIT_S)
        self._programs = Programs(simulated_environment(os.environ), TIME_LIMIT_S)
        before_the_end(self._worker.kill)
        before_the_end(self._programs.kill)
        self._is_installed = find_spec("jax") is not None
        if self._is_installed:
            self._first = self._worker.layout(_ANY, Mesh(("X",), (2,)))

    def __enter__(self) -> LessonJudge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._programs.close()
        self._worker.close()

    def silence(self) -> str:
        """Why JAX cannot be asked here, as soon as that is known; empty where it can."""
        if not self._is_installed:
            return "JAX is not installed"
        try:
            self._first.result()
        except ShardvizError as error:
            return error.message
        return ""

    def ask(self, lesson: Lesson) -> list[tuple[str, Verdict]]:
        """Send all questions about a lesson at once; a verdict for each, with the key that it is about.

        What nobody here can answer, as of a mesh with too many devices, is left out.
        """
        asked = []
        for question in jax_questions(lesson):
            with suppress(TargetError):
                asked.append((question.key, self._verdict(question)))
        if lesson.program:
            asked.append(("program", self._programs.start(lesson.program).result))
        return asked

    def _verdict(self, question: JaxQuestion) -> Verdict:
        """Ask at once, and wait when the verdict is wanted. Raises `TargetError` where nobody can answer."""
        worker = self._worker
        match question:
            case ArraysQuestion():
                layouts = [worker.layout(array, question.mesh) for array in question.arrays]
                return _said(lambda: question.disagreement([each.result() for each in layouts]))
            case RunQuestion():
                asked = question.question
                run = ask_jax(worker, asked, TARGETS["cpu"])
                frames = Frames(asked.schedule, asked.operation, asked.layout.mesh, asked.shards)
                return _said(lambda: question.disagreement(compare_with_jax(asked, frames, run.result())))
            case PlanQuestion():
                first = worker.submit(question.plan.problem, TARGETS["shardy"])
                return _said(lambda: _of_either(worker, question, first.result()))


def _of_either(worker: Worker, question: PlanQuestion, shardy: Compiled) -> str:
    """What Shardy says otherwise; where it does, XLA's program for simulated devices may agree still."""
    if not question.disagreement([shardy]):
        return ""
    answers = [shardy]
    with suppress(TargetError):
        answers.append(worker.submit(question.plan.problem, TARGETS["cpu"]).result())
    return question.disagreement(answers)


def _said(verdict: Verdict) -> Verdict:
    """The same, where JAX's failure is a verdict too."""

    def said() -> str:
        try:
            return verdict()
        except ShardvizError as error:
            return f"JAX gives no answer: {error.message}"

    return said
