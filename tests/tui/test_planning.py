"""Plans that take longer than a key may: the last one stays on screen, and what is stale is stopped."""

from __future__ import annotations

import os
import queue
import signal
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from shardviz.compare import adoption
from shardviz.compare.adoption import cheaper_if_split, split_as
from shardviz.compiler.child_process import ChildProcess
from shardviz.errors import CompilerError, QuestionError
from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import planned, resolve
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.lessons.course import find
from shardviz.planner import planner
from shardviz.planner.planner import is_planned_quickly, plan
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.tui import planning
from shardviz.tui.app import ShardvizApp
from shardviz.tui.planning import PlanningProcess, Plans
from tests.tui.conftest import drive, text_of, until

TRAINED = replace(ProblemForm(), backward="yes", targets="shardy")
GATED = enter(
    ProblemForm(targets="shardy"),
    "einsum",
    "H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]",
)
MESH = Mesh(("X", "Y"), (2, 4))
PLACED = place_mesh(assumed_machine(), MESH)


def has_plan(app):
    return app.state.resolved.planning is None


def opened(gate):
    while gate.exists():
        time.sleep(0.01)


def planned_once_open(gate, *arguments):
    opened(gate)
    return planned(*arguments)


def followed_once_open(gate, *arguments):
    opened(gate)
    return cheaper_if_split(*arguments)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A file; while it is there, no plan is made, and none follows Shardy. A fast machine would have the plan
    before a test has looked."""
    closed = tmp_path / "closed"
    monkeypatch.setattr(planning, "planned", partial(planned_once_open, closed))
    monkeypatch.setattr(adoption, "cheaper_if_split", partial(followed_once_open, closed))
    return closed


def test_what_is_not_planned_yet_is_not_searched(gate):
    async def script(pilot):
        app = pilot.app
        gate.touch()
        app.state.edit(replace(app.state.history.draft, backward="yes"))
        await pilot.press("R")
        assert "still being planned" in next(iter(app._notifications)).message
        gate.unlink()
        await until(pilot, lambda: has_plan(app))
        await pilot.press("R")
        assert app.screen.title_text == "Meshes and their best shardings"

    drive(script, draft=replace(TRAINED, backward="no"))


def test_the_last_plan_stays_until_the_next_is_here(gate):
    async def script(pilot):
        app = pilot.app
        last = app.state.resolved
        gate.touch()
        app.state.edit(replace(app.state.history.draft, backward="yes"))
        await pilot.pause()
        assert app.state.resolved.plan is last.plan
        assert app.state.resolved.draft.backward == "yes"
        assert app.state.resolved.faults == ()
        assert "planning …" in text_of(app)
        assert "Planning your problem" in text_of(app)
        assert "train   yes" in text_of(app)
        gate.unlink()
        await until(pilot, lambda: has_plan(app))
        await until(pilot, lambda: "planning …" not in text_of(app))
        resolved = app.state.resolved
        assert resolved.plan == resolve(TRAINED).plan
        assert resolved.shown == resolved.draft
        app.state.undo()
        assert app.state.resolved.plan is last.plan
        app.state.redo()  # it is kept
        assert app.state.resolved.plan is resolved.plan

    drive(script, draft=ProblemForm(targets="shardy"), screen="plan")


def test_until_the_first_plan_is_here_there_is_nothing_to_see(gate):
    gate.touch()

    async def script(pilot):
        app = pilot.app
        assert app.state.is_empty
        assert app.state.queries.answers == {}
        assert "psum" not in text_of(app)
        assert "train   yes" in text_of(app)
        gate.unlink()
        await until(pilot, lambda: has_plan(app))
        await until(pilot, lambda: "backward" in text_of(app).partition("2 Plan")[2])
        assert [*app.state.queries.answers] == ["shardy"]

    drive(script, draft=TRAINED, screen="plan")


def test_a_lesson_shows_its_own_plan_or_none(gate, monkeypatch):
    """Until it is planned nothing is drawn: what was on screen before is another problem."""
    frames: list[str] = []
    display = ShardvizApp._display

    def displayed(app, *frame):
        display(app, *frame)
        frames.append(text_of(app))

    async def script(pilot):
        app = pilot.app
        assert "psum Out over Y" in text_of(app)
        gate.touch()
        await app.open_lesson(find("fully-sharded-training"))
        await pilot.pause()
        assert app.state.is_empty
        assert "psum Out over Y" not in text_of(app)
        assert "planning …" in text_of(app)
        monkeypatch.setattr(ShardvizApp, "_display", displayed)
        gate.unlink()
        await until(pilot, lambda: "does not fit" in text_of(app))
        assert frames
        assert not [
            frame for frame in frames if "psum Out over Y" in frame or "Planning your problem" in frame
        ]
        await pilot.press("Q")
        assert "psum Out over Y" in text_of(app)

    drive(script, draft=ProblemForm(targets="none"), screen="plan")


def test_each_character_is_echoed_and_only_the_last_text_is_planned(gate):
    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: has_plan(app))
        gate.touch()
        app.state.edit(enter(app.state.history.draft, "sizes", "b=64,d=64,f=64"))
        for size in (128, 256, 512):
            app.state.edit(enter(app.state.history.draft, "sizes", f"b={size},d=64,f=64"))
            await pilot.pause()
            assert f"b={size}" in text_of(app)
        gate.unlink()
        await until(pilot, lambda: has_plan(app))
        assert app.state.resolved.problem.arguments[0].shape == (512, 64)
        assert len(app.state.plans._found) == 2

    drive(script, draft=TRAINED, screen="plan")


def test_the_alternatives_of_a_train_step_follow_its_plan():
    async def script(pilot):
        pane = pilot.app.pane
        await until(pilot, lambda: has_plan(pilot.app) and "alternatives" in vars(pane._cost))
        await until(pilot, lambda: "alternatives" in vars(pane._cost))
        assert pane._cost.plan == pilot.app.state.resolved.plan
        assert "alternatives" in vars(pane._cost)

    drive(script, draft=TRAINED, screen="plan")


def test_quick_problems_are_planned_at_once():
    assert is_planned_quickly(resolve(ProblemForm()).problem)
    assert not is_planned_quickly(resolve(TRAINED).problem)
    found = Plans(print)
    assert found.plan(resolve(ProblemForm()).problem, PLACED) is not None
    assert "_process" not in vars(found)


def slow(path):
    path.touch()
    time.sleep(60)


def refused():
    raise QuestionError("no such plan", "ask for another")


def dead():
    os._exit(3)


@pytest.fixture
def process():
    found = PlanningProcess()
    yield found
    found.close()


def test_what_is_stale_is_stopped(process, tmp_path):
    stale = process.submit(slow, tmp_path / "begun")
    waiting = process.submit(slow, tmp_path / "never")
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    assert waiting.cancel()
    assert stale.cancel()
    assert process.submit(max, 2, 3).result(30) == 3
    assert not (tmp_path / "never").exists()


def test_errors_of_the_planner_come_back(process):
    with pytest.raises(QuestionError, match="no such plan") as caught:
        process.submit(refused).result(30)
    assert caught.value.hint == "ask for another"


def test_a_process_that_dies_is_started_anew(process):
    with pytest.raises(CompilerError, match="the planner's process ended with status 3"):
        process.submit(dead).result(30)
    assert process.submit(max, 2, 3).result(30) == 3


@pytest.fixture
def worse():
    """A problem, and a plan of it that the planner would not make: it has an array whole that need not be."""
    problem = resolve(GATED).problem
    found = plan(split_as(problem, {"H": PartitionSpec((("X",), ()))}), PLACED)
    return problem, replace(found, problem=problem, optimal=False, at_most=1.5)


def test_a_plan_follows_shardy_where_that_costs_less(worse):
    problem, dear = worse
    splits = (("H", PartitionSpec((("X",), ("Y",)))), ("G", PartitionSpec((("X",), ("Y",)))))
    sent = queue.Queue()
    found = Plans(partial(sent.put, "found"))
    found._found[problem, PLACED] = dear
    found.follow(dear, PLACED, SimpleNamespace(target="shardy", splits=splits, moves=()))
    assert sent.get(timeout=60)
    assert found.plan(problem, PLACED).teller == "shardy"
    assert found.plan(problem, PLACED).wire_bytes < dear.wire_bytes
    found.close()


def test_the_screen_says_that_a_plan_is_shardys(worse, worker, gate, monkeypatch):
    problem, dear = worse
    gate.touch()
    monkeypatch.setattr(planner, "is_planned_quickly", lambda _: True)
    monkeypatch.setattr(planning, "planned", lambda *asked: dear if asked[0] == problem else planned(*asked))

    async def script(pilot):
        app = pilot.app
        assert app.state.resolved.plan is dear
        gate.unlink()
        await until(pilot, lambda: app.state.resolved.plan.teller == "shardy")
        await until(pilot, lambda: "sharded as by Shardy" in text_of(app))
        answer = app.state.queries.answers["shardy"]
        assert answer.plan is app.state.resolved.plan

    drive(script, draft=GATED, screen="plan", worker=worker)


def test_no_interrupt_reaches_a_child_that_loads():
    child = ChildProcess(planning.PLANNERS_CHILD, os.environ)
    try:
        for _ in range(30):
            os.kill(child.pid, signal.SIGINT)
            time.sleep(0.01)
        child.send((abs, (-3,)))
        assert child.receive(60) == 3
    finally:
        child.reap()
