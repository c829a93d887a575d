"""The application's questions: what is asked when, what is kept, and compilers that die."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from shardviz.compiler import Worker, requests
from shardviz.compiler.question import question_for
from shardviz.compiler.requests import CompilerRequest
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.stepping.plan_step import question_of_step
from shardviz.targets import TARGETS
from shardviz.tui.compiler_queries import CompilerQueries

PATIENCE_S = 60


def scene(number=1, targets="shardy,cpu", **fields):
    """A problem of its own for every number."""
    sizes = f"b={8 * number},d=64,f=64"
    return resolve(ProblemForm(**{"sizes": sizes, "targets": targets, **fields}))


class Watched(CompilerQueries):
    """The application's questions, and who waits until something is known there."""

    def __init__(self, worker=None):
        self.changed = threading.Condition()
        super().__init__(self.post_message, worker)

    def post_message(self, _message):
        with self.changed:
            self.changed.notify_all()

    def until(self, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, self.answers
            with self.changed:
                self.changed.wait(0.05)

    def state(self, target):
        return self.answers[target].state

    def compiled(self, target):
        self.until(lambda: self.state(target) == "answered")
        return self.answers[target].compiled


class SilentProcess(WorkerProcess):
    """A process that says nothing: what is under way ends when the test ends it."""

    def __init__(self):
        self.requests = []
        self.withdrawn = []
        super().__init__("simulated", {}, math.inf)
        self._scheduler._stop = self.withdrawn.append

    @property
    def asked(self):
        """What was asked, without the folder for what the compiler writes."""
        return [replace(each.call.arguments[0], folder="") for each in self.requests]

    def _answer(self, request):
        over = threading.Event()
        request.add_done_callback(lambda _: over.set())
        self.requests.append(request)
        request.progress("compiling")
        over.wait()


class Held(Worker):
    """A worker with one such process for all targets."""

    def __init__(self):
        super().__init__()
        self.process = SilentProcess()
        self._processes["simulated"] = self.process

    def _process(self, _):
        return self.process


@pytest.fixture
def held():
    with Held() as worker:
        queries = Watched(worker)
        yield queries, worker.process
        queries.close()


@pytest.fixture
def real(worker):
    queries = Watched(worker)
    yield queries
    queries.close()


def test_targets_answer_with_what_differs_from_the_plan(real):
    real.ask(scene())
    assert real.compiled("shardy").status == real.compiled("cpu").status == "ok"
    assert real.answers["shardy"].differences == ()
    assert [each.code for each in real.answers["cpu"].differences] == ["promoted_dtype"]
    assert [*real.answers] == ["shardy", "cpu"]


def test_of_twenty_edits_the_first_and_the_last_are_asked(held, monkeypatch):
    monkeypatch.setattr(requests, "PATIENCE_S", PATIENCE_S)  # however long the edits take
    queries, process = held
    queries.ask(scene(1, "shardy"))
    queries.until(lambda: process.requests)
    for number in range(2, 21):
        queries.ask(scene(number, "shardy"))
    assert queries.answers["shardy"].state == "waiting"
    process.requests[0].cancel()
    queries.until(lambda: queries.state("shardy") == "asked")
    assert process.asked == [question_for(scene(number).problem, TARGETS["shardy"]) for number in (1, 20)]


def test_what_is_typed_fast_reaches_a_slow_compiler_once(real, monkeypatch):
    asked = []
    answer = WorkerProcess._answer

    def counting(process, request):
        asked.append(request.call.arguments[0].mesh.target)
        answer(process, request)

    monkeypatch.setattr(WorkerProcess, "_answer", counting)
    for typed in [scene(number) for number in range(40, 60)]:
        real.ask(typed)
    assert real.compiled("cpu").collectives[0].operand_shape == (8 * 59 // 2, 64)
    assert asked.count("cpu") == 1


def test_what_was_known_before_an_edit_is_there_at_once_after_it_is_undone(real):
    real.ask(scene())
    real.compiled("cpu")
    before = real.answers
    real.ask(scene(2))
    real.ask(scene())
    assert real.answers == before


def test_an_old_question_may_end_but_not_hold_up_the_next_for_long(held, monkeypatch):
    queries, process = held
    monkeypatch.setattr(requests, "PATIENCE_S", 0.0)
    queries.ask(scene(1, "real"))
    queries.ask_now()
    queries.until(lambda: process.requests)
    queries.ask(scene(2, "real"))
    assert process.withdrawn == []
    queries.ask_now()
    queries.until(lambda: len(process.requests) == 2)
    assert process.withdrawn == process.requests[:1]


def test_an_old_question_goes_on_where_it_is_asked_again(held, monkeypatch):
    queries, process = held
    monkeypatch.setattr(requests, "PATIENCE_S", 3600)
    for number in (1, 2, 1):
        queries.ask(scene(number, "shardy"))
        queries.until(lambda: process.requests)
    monkeypatch.setattr(requests, "PATIENCE_S", 0)
    process.requests[0]._end_dropped()  # as its timer does
    assert (queries.state("shardy"), process.withdrawn) == ("asked", [])
    assert len(process.requests) == 1


def test_cancelling_stops_all_and_asking_now_goes_on(held):
    queries, process = held
    queries.ask(scene())
    queries.until(lambda: queries.state("shardy") == "asked")
    assert queries.cancel()
    assert [each.state for each in queries.answers.values()] == ["cancelled", "cancelled"]
    queries.until(lambda: process.withdrawn)
    assert not queries.cancel()
    queries.ask_now("shardy")
    queries.until(lambda: queries.state("shardy") == "asked")
    assert queries.state("cpu") == "cancelled"
    assert len(process.requests) == 2


def test_passes_are_kept_with_the_problem(real):
    real.ask(scene(1, "shardy"))
    real.until(lambda: real.traced("shardy").state == "answered")
    traced = real.traced("shardy").answer
    assert traced.stages
    real.ask(scene(2, "shardy"))
    assert real.traced("shardy").answer is not traced
    real.ask(scene(1, "shardy"))
    assert real.traced("shardy").answer is traced


def test_jax_says_whether_a_collective_is_right(real):
    question = question_of_step(scene().plan, 2)
    real.until(lambda: real.verified(question).state == "answered")
    assert real.verified(question).answer.agrees


@pytest.mark.usefixtures("own_compilers")
def test_a_worker_that_is_killed_twice_leaves_sentences_and_then_answers(monkeypatch):
    queries = Watched()
    progress = CompilerRequest.progress

    def at_stage(stage, number):
        """The child gets this signal then: a busy machine would look too late."""

        def strike(request, said):
            progress(request, said)
            if said == stage:
                os.kill(queries.worker.pids()[0], number)

        monkeypatch.setattr(CompilerRequest, "progress", strike)

    try:
        for number in (1, 2):
            at_stage("importing jax", signal.SIGKILL)
            queries.ask(scene(number, "shardy"))
            killed = queries.compiled("shardy")
            assert killed.status == "error"
            assert killed.error == "the shardy compiler was killed by SIGKILL while importing jax"
            assert killed.hint.startswith("ask again")
        at_stage("", 0)
        queries.ask_now()
        assert queries.compiled("shardy").status == "ok"
        at_stage("compiling", signal.SIGSTOP)
        # In the middle of a compilation, as `q` may come.
        queries.ask(scene(7, "cpu"))
        queries.until(lambda: queries.answers["cpu"].stage == "compiling")
        (pid,) = queries.worker.pids()
    finally:
        queries.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
