"""What is shown to all who follow is what the teacher shows; who has taken over says where they are."""

from __future__ import annotations

import asyncio

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, from_string, to_string
from shardviz.lessons.attempt import UNKNOWN, begin, shared_of, stages
from shardviz.lessons.course import course
from shardviz.serve.apps import FollowerApp, PupilApp, TeacherApp
from shardviz.serve.lecture import PagePointer, pointer_in
from shardviz.serve.visitor import VisitorsWorker
from shardviz.tui.layout_pane import LayoutView
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


class HeardFollower(Heard, FollowerApp):
    CSS_PATH = None

    async def go(self, shared, pointer=None):
        self.led = to_string(shared), pointer or PagePointer()
        await self.follow()


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


def test_a_follower_goes_from_stage_to_stage_and_from_lesson_to_lesson():
    async def script(app, _pilot):
        for shared in (at(1), at(2), at(1, SECOND), Shared(ProblemForm(mesh="Z=4"), "plan"), at(0)):
            await app.go(shared)
            shown = app.shared()
            assert (shown.lesson, shown.stage, shown.screen) == (shared.lesson, shared.stage, app.state.area)
            assert app.lesson is None or app.lesson.controller.is_presented
            assert app.lesson is not None or app.state.resolved.draft == shared.draft

    drive(HeardFollower, at(0), script)


def test_a_follower_shows_the_teachers_sandbox():
    change = next(number for number, stage in enumerate(stages(FIRST)) if stage.kind == "change")

    async def script(app, _pilot):
        await app.go(Shared(FIRST.solution, at(0).screen, FIRST.name, change))
        assert app.state.resolved.draft == FIRST.solution

    drive(HeardFollower, at(change), script)


def test_a_pupil_who_took_over_says_where_and_goes_back_with_a_key():
    async def script(app, pilot):
        assert app.said == [{"type": "stands", "lesson": FIRST.name, "stage": 0}]
        await pilot.press("n")
        assert await look(app, pilot) == {"type": "stands", "lesson": FIRST.name, "stage": 1}
        await pilot.press("enter")
        assert app.lesson.controller.kind == "reveal"
        predicted = {"type": "predicts", "lesson": FIRST.name, "number": 0}
        assert any(predicted.items() <= said.items() for said in app.said)
        assert await look(app, pilot) == {"type": "stands", "lesson": FIRST.name, "stage": 2}
        await pilot.press("T")
        assert app.said[-1] == {"type": "follows"}

    drive(HeardPupil, at(0), script)


def test_the_teachers_page_tells_what_it_asks_and_whether_it_shows_the_answer():
    async def script(app, pilot):
        for key, is_shown in (("n", False), ("space", True)):
            await pilot.press(key)
            app._lead()
            asks = app.said[-1]["asks"]
            assert (asks["number"], asks["is_shown"]) == (0, is_shown)
            assert asks["question"] == FIRST.predictions[0].question
            assert {asks["answer"], UNKNOWN} < {*asks["choices"]}
        await pilot.press("Q")
        app._lead()
        assert app.said[-1]["asks"] is None

    drive(HeardTeacher, at(0), script)


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


def test_a_follower_looks_at_the_teachers_device_and_step():
    async def script(app, pilot):
        led = Shared(PLAN, "plan")
        await app.go(led, PagePointer(5, 2))
        await pilot.pause()
        assert (app.state.lens, app.state.step_number) == (5, 2)
        await app.go(led, PagePointer(None, 99))
        assert (app.state.lens, app.state.step_number) == (None, 2)

    drive(HeardFollower, Shared(PLAN, "plan"), script)


def test_a_follower_has_the_teachers_cursor_and_view():
    async def script(app, pilot):
        for view in (LayoutView("W", 3), LayoutView("Out", 6, True), LayoutView("A", 5, False, True)):
            await app.go(Shared(PLAN, "layout"), PagePointer(None, 1, 0, view))
            await until(pilot, lambda view=view: app.pane.view == view)

    drive(HeardFollower, Shared(PLAN, "layout"), script)


def test_the_teachers_cursor_is_told():
    async def script(app, pilot):
        await until(pilot, lambda: app.pane.view.array == "A")
        app.pane.action_move(0, 1)
        app.pane.action_view()
        app._lead()
        assert pointer_in(app.said[-1]).layout == app.pane.view
        assert app.pane.view.position > 0
        assert app.pane.view.by_device

    drive(HeardTeacher, Shared(PLAN, "layout"), script)


def test_a_follower_sees_the_teachers_round():
    async def script(app, pilot):
        for number in (2, 4, 1):
            await app.go(Shared(PLAN, "step"), PagePointer(None, 2, number))
            await until(pilot, lambda number=number: app.pane.player.number == number)

    drive(HeardFollower, Shared(PLAN, "plan"), script)


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
