"""Pupils' pages follow the teacher's until they go elsewhere, and come back."""

from __future__ import annotations

import asyncio

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, from_string, to_string
from shardviz.lessons.attempt import UNKNOWN, begin, shared_of, stages
from shardviz.lessons.course import course
from shardviz.serve.apps import PupilApp, TeacherApp
from shardviz.serve.lecture import PagePointer, pointer_in
from shardviz.serve.visitor import VisitorsWorker
from shardviz.tui.lines_view import LinesView

FIRST, SECOND = course()[3], course()[4]
SIZE = (100, 30)


def at(stage, lesson=FIRST, draft=None):
    """The string of a teacher's page at a stage of a lesson."""
    shared = shared_of(begin(lesson), lesson.screen)
    return Shared(draft or shared.draft, shared.screen, lesson.name, stage)


class Heard:
    """An application without a server: what it says is a list."""

    def __init__(self, shared, worker):
        super().__init__(shared, worker)
        self.said = []

    def tell(self, said):
        self.said.append(said)


class HeardPupil(Heard, PupilApp):
    CSS_PATH = None


class HeardTeacher(Heard, TeacherApp):
    CSS_PATH = None


def drive(kind, shared, script):
    """Run a script with the application, as the server starts it."""

    async def run():
        with VisitorsWorker() as worker:
            app = kind(shared, worker)
            async with app.run_test(size=SIZE) as pilot:
                await pilot.pause(0.3)
                await script(app, pilot)

    asyncio.run(run())


async def until(pilot, condition):
    """Let the application go on until a condition holds."""
    for _ in range(500):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(pilot.app.pane)


async def look(app, pilot):
    """The last thing that the page has said of itself."""
    app._look()
    await pilot.pause()
    return app.said[-1]


def test_a_pupil_follows_from_stage_to_stage_and_from_lesson_to_lesson():
    async def script(app, pilot):
        assert app.said == [{"type": "stands", "lesson": FIRST.name, "stage": 0, "follows": True}]
        for shared in (at(1), at(2), at(1, SECOND), Shared(ProblemForm(mesh="Z=4"), "plan"), at(0)):
            await app.follow(to_string(shared), PagePointer())
            said = await look(app, pilot)
            assert said == {"type": "stands", "lesson": shared.lesson, "stage": shared.stage, "follows": True}
            assert app.state.area == app.shared().screen

    drive(HeardPupil, at(0), script)


def test_a_pupil_takes_over_with_a_key_and_comes_back_with_another():
    async def script(app, pilot):
        await pilot.press("n")
        assert await look(app, pilot) == {
            "type": "stands",
            "lesson": FIRST.name,
            "stage": 1,
            "follows": False,
        }
        await app.follow(to_string(at(2)), PagePointer())
        assert app.shared().stage == 1
        assert "follow" in [command.name for command in app.commands]
        await pilot.press("T")
        assert (await look(app, pilot))["follows"]
        assert app.shared().stage == 2
        assert "follow" not in [command.name for command in app.commands]
        await pilot.press("2")
        assert not (await look(app, pilot))["follows"]

    drive(HeardPupil, at(0), script)


def test_a_cursor_a_list_and_help_are_not_taking_over():
    async def script(app, pilot):
        await pilot.press("right", "x", "down")
        await app.follow(to_string(at(1)), PagePointer())
        await pilot.press("escape", "?")
        await app.follow(to_string(at(2)), PagePointer())
        await pilot.press("escape")
        assert await look(app, pilot) == {"type": "stands", "lesson": FIRST.name, "stage": 2, "follows": True}

    drive(HeardPupil, at(0), script)


def test_the_answer_to_a_prediction_waits_for_the_teacher():
    async def script(app, pilot):
        await pilot.press("down", "enter")
        choice = app.lesson.controller.choice
        assert app.said[-1] == {"type": "predicts", "lesson": FIRST.name, "number": 0, "choice": choice}
        assert (await look(app, pilot))["type"] == "predicts"
        assert app.lesson.controller.kind == "predict"
        await app.follow(to_string(at(2)), PagePointer())
        assert app.lesson.controller.kind == "reveal"
        assert app.lesson.controller.attempt.answers[0] == choice

    drive(HeardPupil, at(1), script)


def test_who_goes_on_alone_sees_the_answer_at_once_and_is_counted():
    async def script(app, pilot):
        await pilot.press("n", "enter")
        assert app.lesson.controller.kind == "reveal"
        assert [said["type"] for said in app.said][:3] == ["stands", "stands", "predicts"]

    drive(HeardPupil, at(0), script)


def test_the_teachers_sandbox_is_everybodys_and_ones_own_is_a_step_of_undo_away():
    change = next(number for number, stage in enumerate(stages(FIRST)) if stage.kind == "change")
    edited = Shared(FIRST.solution, at(0).screen, FIRST.name, change)

    async def script(app, pilot):
        own = app.state.resolved.draft
        await app.follow(to_string(edited), PagePointer())
        assert app.state.resolved.draft == FIRST.solution
        assert (await look(app, pilot))["follows"]
        await pilot.press("u")
        assert app.state.resolved.draft == own
        assert not (await look(app, pilot))["follows"]

    drive(HeardPupil, at(change), script)


def test_the_teacher_leads_by_what_is_on_screen_and_presents():
    async def script(app, pilot):
        app._lead()
        assert from_string(app.said[-1]["shared"]) == app.shared()
        await pilot.press("n", "space")
        app._lead()
        led = from_string(app.said[-1]["shared"])
        assert (led.lesson, led.stage) == (FIRST.name, 2)
        assert app.lesson.controller.attempt.answers[0] == UNKNOWN
        count = len(app.said)
        app._lead()
        assert len(app.said) == count
        await pilot.press("Q")
        app._lead()
        assert from_string(app.said[-1]["shared"]).lesson == ""
        await app.open_lesson(SECOND)
        assert app.lesson.controller.is_presented

    drive(HeardTeacher, at(0), script)


PLAN = ProblemForm(specs=("XY", "Y_", "X_"))


def test_a_pupil_looks_at_the_teachers_device_and_step_until_the_pupil_looks_elsewhere():
    async def script(app, pilot):
        led = to_string(Shared(PLAN, "plan"))
        await app.follow(led, PagePointer(5, 2))
        await pilot.pause()
        assert (app.state.lens, app.pane.chosen) == (5, 2)
        await pilot.press("up")
        app.state.set_lens(1)
        assert (await look(app, pilot))["follows"]
        await app.follow(led, PagePointer(6, 2))
        assert (app.state.lens, app.pane.chosen) == (6, 2)
        await app.follow(led, PagePointer(None, 99))
        assert (app.state.lens, app.pane.chosen) == (None, 2)

    drive(HeardPupil, Shared(PLAN, "plan"), script)


def test_a_pupil_sees_the_teachers_round():
    async def script(app, pilot):
        led = to_string(Shared(PLAN, "step"))
        await app.follow(led, PagePointer(None, 2, 2))
        await until(pilot, lambda: app.pane.player.number == 2)
        await pilot.press("right")
        assert (await look(app, pilot))["follows"]
        assert app.pane.player.number == 3
        await app.follow(led, PagePointer(None, 2, 4))
        await pilot.pause()
        assert app.pane.player.number == 4
        await pilot.press("1")
        await look(app, pilot)
        await app.follow(led, PagePointer(None, 2, 1))
        await pilot.press("3")
        assert app.pane.player.number == 4
        await pilot.press("T")
        await pilot.pause()
        assert app.pane.player.number == 1

    drive(HeardPupil, Shared(PLAN, "plan"), script)


def test_the_teachers_page_tells_at_what_it_looks():
    async def script(app, pilot):
        await until(pilot, lambda: app.pane.player.rounds == 4)
        await pilot.press("right", "right", "d")
        app._lead()
        assert pointer_in(app.said[-1]) == PagePointer(0, 2, 2)

    drive(HeardTeacher, Shared(PLAN, "step"), script)


def test_the_key_that_follows_is_in_a_pupils_help_and_palette_alone():
    for kind, count in ((HeardPupil, 1), (HeardTeacher, 0)):

        async def script(app, pilot, count=count):
            await pilot.press("?")
            view = app.screen.query_one(LinesView)
            lines = [view.canvas.line(y, 0, 200).plain for y in range(view.canvas.height)]
            assert sum("T  Follow the teacher" in line for line in lines) == count
            await pilot.press("escape")
            await pilot.press("ctrl+p")
            assert sum(row.value.title == "Follow the teacher" for row in app.screen.rows) == count

        drive(kind, at(0), script)


def test_a_pupil_whose_connection_broke_has_the_predictions_again():
    async def script(app, _pilot):
        await app.remember([(FIRST.name, 0, "3:4"), (SECOND.name, 0, "here"), (FIRST.name, 9, "nothing")])
        assert app.lesson.controller.attempt.answers[0] == "3:4"
        await app.follow(to_string(at(2)), PagePointer())
        assert app.lesson.controller.attempt.answers[0] == "3:4"
        await app.follow(to_string(at(2, SECOND)), PagePointer())
        assert app.lesson.controller.attempt.answers[0] == "here"

    drive(HeardPupil, at(1), script)
