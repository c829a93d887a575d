"""The workspace: one pane or three beside the problem, which of them has the keys, and what they have in
common."""

from __future__ import annotations

import asyncio
import re
import sys

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.tui import workspace
from shardviz.tui.workspace import DASHBOARD
from tests.tui.conftest import check_snapshot, drive, text_of, until
from tests.tui.recorded import Recorded

NONE = ProblemForm(targets="none")
LARGE = 160, 45
TOGETHER = ["layout", "plan", "time"]


def shown(app) -> list[str]:
    """The areas of the panes on screen, from left to right and from above."""
    panes = [pane for pane in app.workspace.shown if pane.display and pane.size]
    return [pane.area for pane in sorted(panes, key=lambda pane: (pane.region.y, pane.region.x))]


def on_dashboard(script, size=LARGE, draft=NONE, screen="layout", **others):
    async def settled(pilot):
        await until(pilot, lambda: len(shown(pilot.app)) == 3)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await script(pilot)

    drive(settled, size, draft, screen, **others)


def test_it_looks_like_this():
    async def script(pilot):
        await pilot.press("p", "right", "enter")
        await pilot.pause()
        check_snapshot("dashboard-140", text_of(pilot.app))

    on_dashboard(script, (140, 40))


def test_the_compilers_pane_takes_the_last_place_where_one_begins_with_it():
    async def script(pilot):
        assert shown(pilot.app) == ["layout", "plan", "compiler"]
        assert pilot.app.state.area == "compiler"

    on_dashboard(script, screen="compiler")


def test_a_number_goes_to_its_pane_and_the_footer_follows():
    async def script(pilot):
        app = pilot.app
        for key, area, areas in (
            ("2", "plan", TOGETHER),
            ("5", "time", TOGETHER),
            ("4", "compiler", ["layout", "plan", "compiler"]),
            ("1", "layout", ["layout", "plan", "compiler"]),
            ("3", "step", ["step"]),
            ("2", "plan", ["layout", "plan", "compiler"]),
        ):
            await pilot.press(key)
            await pilot.pause()
            assert app.state.area == area
            assert shown(app) == areas
            assert app.pane in app.focused.ancestors_with_self
            (word, *_) = [command.footer for command in app.pane.commands if command.footer] or ["help"]
            assert word in text_of(app).splitlines()[-1]

    on_dashboard(script)


def test_tab_and_the_mouse_take_the_keys_to_another_pane():
    async def script(pilot):
        app = pilot.app
        await pilot.press("1", "tab", "tab")
        await pilot.pause()
        assert app.state.area == "plan"
        await pilot.click("#time TimeChart")
        await pilot.pause()
        assert app.state.area == "time"
        await pilot.press("p")
        assert app.workspace.is_left
        assert app.state.area == "time"

    on_dashboard(script)


def test_a_pane_can_be_seen_alone_and_the_others_come_back():
    async def script(pilot):
        app = pilot.app
        await pilot.press("2", "z")
        await pilot.pause()
        assert shown(app) == ["plan"]
        assert app.pane.size.width > LARGE[0] - 40
        await pilot.press("5")
        await pilot.pause()
        assert shown(app) == ["time"]
        await pilot.press("z")
        await pilot.pause()
        assert shown(app) == TOGETHER

    on_dashboard(script)


@pytest.mark.parametrize("size", [(DASHBOARD[0] - 1, 60), (200, DASHBOARD[1] - 1)])
def test_in_a_smaller_window_a_pane_is_alone_anyway(size):
    async def script(pilot):
        app = pilot.app
        await pilot.press("1", "z")
        await pilot.pause()
        assert shown(app) == ["layout"]
        assert "only this" not in text_of(app).splitlines()[-1]
        (note,) = app._notifications
        assert "140×30" in note.message
        await pilot.resize_terminal(*LARGE)
        await until(pilot, lambda: shown(app) == TOGETHER)
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: shown(app) == ["layout"])

    drive(script, size, NONE)


def test_answers_reach_every_pane():
    async def script(pilot):
        app = pilot.app
        await pilot.press("4", "1")
        await until(pilot, lambda: "ENTRY" in text_of(app) and "all-reduce over Y" in text_of(app))

    on_dashboard(script, (200, 90), ProblemForm(targets="shardy,cpu"), worker=Recorded())


def test_many_edits_at_once_leave_every_pane_with_the_last():
    async def script(pilot):
        app = pilot.app
        await pilot.press(*"+++---+")
        await pilot.pause()
        for pane in app.workspace.shown:
            assert pane.state.resolved.problem.mesh.size == 16
        assert not app.workspace._waiting
        assert app.workspace._pane("plan")._cost.plan is app.state.resolved.plan

    on_dashboard(script)


def test_a_lesson_has_one_pane():
    async def script(pilot):
        app = pilot.app
        await pilot.press("L", "enter")
        await until(pilot, lambda: app.lesson is not None)
        await pilot.pause()
        assert shown(app) == ["layout"]
        await pilot.press("z")
        await pilot.pause()
        assert shown(app) == ["layout"]
        await pilot.press("Q")
        await until(pilot, lambda: shown(app) == TOGETHER)

    on_dashboard(script)


def test_the_marked_device_is_named_in_the_group_of_every_pane():
    async def script(pilot):
        app = pilot.app
        await pilot.press("4")
        await until(pilot, lambda: "ENTRY" in text_of(app))
        app.state.set_lens(5)
        await until(pilot, lambda: re.search("▹ *κ 1,5 *◃", text_of(app)) and not app.workspace._waiting)
        text = text_of(app)
        assert "group {4,▹5◃,6,7}" in text  # the plan sums over Y
        assert "group {1,▹5◃}" in text  # the program gathers over X first
        await pilot.press("5")
        await until(pilot, lambda: app.pane.chart.parts)
        await pilot.pause()
        assert text_of(app).count("group {4,▹5◃,6,7}") == 1  # said once, by the plan beside it
        await pilot.press("n")
        await until(pilot, lambda: [part.name for part in app.pane.chart.parts] == ["cpu"])
        await pilot.pause()
        assert text_of(app).count("group {") == 2
        await pilot.press("escape")
        await until(pilot, lambda: "◃" not in text_of(app))

    draft = ProblemForm(targets="shardy,cpu", machine="v5e:2x4")
    on_dashboard(script, (200, 70), draft, worker=Recorded())


def test_a_plan_that_is_drawn_anew_has_one_step_under_all_cursors():
    usual = {"einsum": "bd,df->bf; bf,fd->bd", "specs": "X_,_Y->?; ?,Y_->X_", "sizes": "b=8Ki,d=4Ki,f=16Ki"}
    chain = form_from_options(**usual, mesh="X=4,Y=2", targets="none", machine="v5e:2x4")

    async def script(pilot):
        panes = {pane.area: pane for pane in pilot.app.workspace.shown}
        plan, time = panes["plan"], panes["time"]
        await until(
            pilot,
            lambda: time.chart.selected is not None and time.chart.selected + 1 == plan.state.step_number,
        )

    on_dashboard(script, draft=chain)


def test_the_pane_that_is_asked_for_last_is_shown_also_where_another_takes_longer_to_load(monkeypatch):
    async def script(pilot):
        is_loaded, space = asyncio.Event(), pilot.app.workspace

        async def slowly(*_):
            await is_loaded.wait()

        monkeypatch.setattr(workspace, "to_thread", slowly)
        monkeypatch.delitem(sys.modules, "shardviz.tui.time.pane", raising=False)
        slow = asyncio.create_task(space.put_on("time"))
        await asyncio.sleep(0)
        await space.put_on("layout")
        is_loaded.set()
        await slow
        assert pilot.app.state.area == "layout"

    drive(script, draft=NONE, screen="layout")


def test_a_screen_that_was_away_follows_the_step_when_it_comes_back():
    async def script(pilot):
        app = pilot.app
        await pilot.press("5")
        await until(pilot, lambda: app.pane.area == "time" and app.pane.chart.place is not None)
        assert app.pane.chart.place[1] + 1 == app.state.step_number == 2
        await pilot.press("2")
        await until(pilot, lambda: app.pane.area == "plan" and app.pane.display)
        await pilot.press("up")
        await until(pilot, lambda: app.state.step_number == 1)
        await pilot.press("5")
        await until(pilot, lambda: app.pane.area == "time" and app.pane.chart.place[1] == 0)

    drive(script, draft=NONE)
