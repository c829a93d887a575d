"""The line in which one types where to go."""

from __future__ import annotations

import pytest

from shardviz.forms.form import ProblemForm
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

NONE = ProblemForm(targets="none")
FOUR = ProblemForm(specs=("X_Y", "Y_", "X_"), targets="none")


@pytest.mark.parametrize("size", one_in(2, ["small", "wide"]))
def test_it_looks_like_this(size):
    async def script(pilot):
        await pilot.press(":", *"psum")
        await pilot.pause()
        check_snapshot(f"jump-{size}", text_of(pilot.app))

    drive(script, SIZES[size], NONE)


def test_a_device_is_marked():
    async def script(pilot):
        for typed, position in {"5": 5, "X=1,Y=2": 6, "x1": 4, "X1 Y3": 7, "device 2": 2}.items():
            await pilot.press(":", *typed, "enter")
            await pilot.pause()
            assert pilot.app.state.lens == position
            assert f"device ▹{position}◃" in text_of(pilot.app)

    drive(script, draft=NONE)


def test_a_device_of_a_large_mesh_that_is_not_listed():
    async def script(pilot):
        await pilot.press(":", *"40000", "enter")
        await pilot.pause()
        assert pilot.app.state.lens == 40000
        assert "40000" in text_of(pilot.app)

    drive(script, draft=ProblemForm(mesh="X=256,Y=256", targets="none"))


MISSING = {
    "9": "Device '9' does not exist. The mesh has 8 devices, 0 to 7.",
    "X=5": "X=5 is not on the mesh. X has the coordinates 0 to 1.",
    "nonsense": "No device and no collective has this name.",
}


def test_what_does_not_exist_is_said_and_enter_does_nothing():
    async def script(pilot):
        app = pilot.app
        for typed, said in MISSING.items():
            await pilot.press(":", *typed)
            await pilot.pause()
            assert said in " ".join(text_of(app).split())
            await pilot.press("enter")
            assert len(app.screen_stack) == 2
            await pilot.press("escape")
            assert app.state.lens is None

    drive(script, draft=NONE)


def test_a_collective_of_the_plan():
    async def script(pilot):
        app = pilot.app
        await pilot.press("2", "up", "up", "1", ":", *"psum", "enter")
        await pilot.pause()
        assert app.state.area == "plan"
        assert app.state.step_number == 2
        await pilot.press("3", ":", *"psum", "enter")
        await pilot.pause()
        assert app.state.area == "step"

    drive(script, draft=NONE)


def test_with_three_panes_every_cursor_follows():
    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: len(app.workspace.shown) == 3)
        await app.workers.wait_for_complete()
        await pilot.pause()
        layout, plan, time = (app.workspace._pane(area) for area in ("layout", "plan", "time"))
        await until(pilot, lambda: time.chart.parts)
        await pilot.press(":", *"psum", "enter")
        await pilot.pause()
        assert (plan.state.step_number, time.chart.selected, layout.cursor.array) == (2, 1, 2)
        await pilot.press("5", "up")
        await pilot.pause()
        assert (plan.state.step_number, time.chart.selected) == (1, 0)
        await pilot.press("2", "down")
        await pilot.pause()
        assert (plan.state.step_number, time.chart.selected) == (2, 1)

    drive(script, (160, 45), NONE)
