"""The application as a whole: from start to the compiled program by keys, at any size, through errors."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from textual import events

from shardviz.errors import ShardvizError
from shardviz.forms.form import SCREENS, ProblemForm
from shardviz.forms.state_file import load_session
from shardviz.tui.kept import KEEP_AFTER_S
from shardviz.tui.registry import AREAS, COMMANDS
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until
from tests.tui.recorded import Recorded


@pytest.mark.parametrize("size", one_in(2, ["small", "wide"]))
def test_the_first_screen(size):
    async def script(pilot):
        check_snapshot(f"app-{size}", text_of(pilot.app))

    drive(script, SIZES[size])


class Keys:
    """Presses keys, and counts them."""

    def __init__(self, pilot):
        self.pilot, self.pressed = pilot, 0

    async def __call__(self, *keys):
        for key in keys:
            await self.pilot.press(key)
            self.pressed += 1
        await self.pilot.pause()
        return text_of(self.pilot.app)


def test_from_start_to_the_compiled_program_in_under_25_keys(worker):
    async def script(pilot):
        keys, app = Keys(pilot), pilot.app
        await keys("x", *"scat", "enter")
        seen = await keys("p", "+")
        assert "X=4  Y=2" in seen
        seen = await keys("1")
        assert "A[I_X, J_Y]" in seen
        assert "device  0  X0 Y0" in seen
        seen = await keys("2")
        assert "2  psum_scatter C " in seen
        await keys("space")
        await until(pilot, lambda: "round 0 of 1" in text_of(app))
        assert "psum_scatter over Y" in text_of(app)
        seen = await keys("right")
        assert "round 1 of 1" in seen
        assert "AFTER" in seen
        await keys("4")
        await until(pilot, lambda: "all-reduce" in text_of(app) and "ENTRY" in text_of(app))
        assert keys.pressed < 25

    drive(script, worker=worker)


@pytest.mark.parametrize("area", one_in(3, AREAS))
def test_every_command_runs_wherever_one_is(area):
    async def script(pilot):
        app = pilot.app
        for command in COMMANDS:
            if command.area == area and command.name != "quit":
                with suppress(ShardvizError):  # which the application tells
                    await app.action_run_command(command)
                await pilot.pause()
                assert app.is_running
                assert text_of(app).strip()
                while len(app.screen_stack) > 1:
                    app.pop_screen()

    drive(script, SIZES["usual"])


def test_the_plan_of_65536_devices_opens():
    async def script(pilot):
        await pilot.press("p", "right", "p", "right", "down")
        await pilot.pause()
        assert "X=256  Y=256" in text_of(pilot.app)

    drive(script, draft=ProblemForm(mesh="X=256,Y=256"), screen="plan")


def test_an_error_stands_in_its_field_and_the_picture_stays():
    async def script(pilot):
        app = pilot.app
        await pilot.press("down", "enter", *"[b", "enter")
        await pilot.pause()
        assert app.state.resolved.faults
        assert "✗" in text_of(app)
        assert app.state.resolved.problem.arguments[0].shape == (1024, 2048)
        assert "α 0" in text_of(app)
        await pilot.press("u")
        await pilot.pause()
        assert not app.state.resolved.faults
        assert "✗" not in text_of(app)

    drive(script)


def test_a_thread_of_a_screen_that_fails_leaves_the_application_alive(monkeypatch):
    def broken(*_):
        raise RuntimeError("unforeseen")

    async def script(pilot):
        app = pilot.app
        monkeypatch.setattr("shardviz.planner.pricing.costs.PlanCost.thresholds", property(broken))
        await pilot.press("2")
        await until(pilot, lambda: any("That failed:" in note.message for note in app._notifications))
        app._exception = None  # every other test ends with the one that it meets
        await pilot.press("1")
        await pilot.pause()
        assert "α 0" in text_of(app)

    drive(script)


def test_a_handler_that_fails_says_so_once_and_the_rest_goes_on(monkeypatch):
    def broken(*_):
        raise RuntimeError("unforeseen")

    async def script(pilot):
        app = pilot.app
        monkeypatch.setattr("shardviz.tui.dialogs.dialog.HelpDialog.lines", broken)
        monkeypatch.setattr(app, "action_undo", broken)
        for key in ("u", "question_mark", "escape", "u"):
            await pilot.press(key)
            await pilot.pause()
        app._exception, met = None, app._exception  # every other test ends with the one that it meets
        assert str(met) == "unforeseen"
        assert len(app.screen_stack) == 1
        (said,) = app._failures
        assert said.startswith("That failed: RuntimeError: unforeseen (test_app.py, line ")
        assert said in {note.message for note in app._notifications}
        await pilot.press("2")
        await until(pilot, lambda: app.pane.area == "plan")

    drive(script)


def test_a_part_whose_handler_fails_goes_on(monkeypatch):
    def broken(*_):
        raise RuntimeError("unforeseen")

    async def script(pilot):
        app = pilot.app
        with monkeypatch.context() as patch:
            patch.setattr(type(app.workspace.left), "on_key", broken, raising=False)
            app.workspace.left.post_message(events.Key("z", "z"))
            await pilot.pause()
        app._exception, met = None, app._exception
        assert str(met) == "unforeseen"
        await pilot.press("+")
        assert app.state.resolved.draft.mesh == "X=4,Y=4"

    drive(script)


def test_undo_and_redo_go_on_after_a_restart():
    async def first(pilot):
        await pilot.press("plus", "plus", "u", "2")
        await pilot.pause()
        assert pilot.app.state.history.draft.mesh == "X=4,Y=4"

    async def second(pilot):
        state = pilot.app.state
        await pilot.press("u")
        assert state.history.draft == ProblemForm()
        await pilot.press("U", "U")
        assert state.history.draft.mesh == "X=8,Y=4"

    async def third(pilot):
        state = pilot.app.state
        await pilot.press("minus")
        here = state.history.draft
        await pilot.app.action_restore()
        assert pilot.app.pane.area == "plan"
        await pilot.press("U")
        assert state.history.draft.mesh == "X=8,Y=4"
        await pilot.press("u", "u", "u")
        assert state.history.draft == here

    drive(first)
    drive(second, draft=load_session().history)
    drive(first)
    drive(third)


def test_what_is_said_in_passing():
    def said(app):
        (note,) = app._notifications
        return note.message

    async def script(pilot):
        app = pilot.app
        await pilot.press("ctrl+c")
        assert said(app) == "q quits; in a field, ctrl+q."
        app.post_message(events.Paste("X=2"))
        await pilot.pause()
        assert said(app).startswith("No field is open")
        await pilot.press("e")
        assert not app._notifications
        await pilot.press("escape", *["down"] * 4, "Y")
        assert said(app) == "Y moves here from d of A."
        await pilot.press("f1")
        assert "Help: Problem" in text_of(app)
        await pilot.press("f1")
        assert len(app.screen_stack) == 1

    drive(script)


def test_all_tabs_are_seen_and_where_there_is_room_all_keys():
    async def script(pilot):
        for width in (40, 77, 120):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            lines = text_of(pilot.app).splitlines()
            tabs = next(line for line in lines[:2] if "Layout" in line and "Time" in line)
            assert re.search("4 ?Compiler 5 ?Time|4 Compiler   5 Time", tabs)
        for area in SCREENS:
            await pilot.app.action_show(area)
            await pilot.pause()
            assert "q quit" in text_of(pilot.app).splitlines()[-1], area

    drive(script, (40, 24), worker=Recorded())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema": "shardviz-session/9"}', "Until then, no session is saved."),
        ("{", "was damaged: "),
        (None, "cannot be written: "),
    ],
)
def test_why_no_session_is_kept_or_read_is_said_once_and_nothing_is_lost(state_home, content, said):
    path = state_home / "shardviz"
    if content is None:
        path.write_text("a file in the place of the folder")
    else:
        path.mkdir()
        (path / "session.json").write_text(content)

    async def script(pilot):
        app = pilot.app
        await pilot.press("plus")
        await until(pilot, lambda: app._notifications)
        assert said in "".join(each.message for each in app._notifications)
        app.clear_notifications()
        await pilot.press("plus")
        await pilot.pause(KEEP_AFTER_S + 0.1)
        await app.workers.wait_for_complete()
        assert not app._notifications
        assert app.state.history.draft.mesh == "X=8,Y=4"

    drive(script)
    if content is None:
        assert path.read_text() == "a file in the place of the folder"
    elif content != "{":
        assert (path / "session.json").read_text() == content
    else:
        assert (path / "session.json.damaged").read_text() == content
        assert load_session().draft.mesh == "X=8,Y=4"
