"""The plan screen: steps to choose from, and the targets' answers beside them as they arrive."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from shardviz.compiler.requests import CompilerRequest
from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.render.programs.target_answers import SPINNER
from shardviz.tui import targets_pane
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

DRAFTS = {
    "usual": ProblemForm(),
    "many": ProblemForm(targets="shardy,cpu,v5e:4x4"),
    "four": ProblemForm(mesh="X=4,Y=4", specs=("XY", "YX", "XY"), targets="shardy"),
}


class Timeless:
    """The real compilers, each of which takes a quarter of a second by its own account."""

    def __init__(self, worker):
        self.worker = worker

    def start(self, *targets):
        self.worker.start(*targets)

    def submit(self, problem, target, *_, **__):
        request = CompilerRequest(None, str)

        def settle(asked):
            request.settle(replace(asked.result(), elapsed_s=0.25))

        self.worker.submit(problem, target).add_done_callback(settle)
        return request


def all_here(app):
    answers = app.state.queries.answers
    return (
        answers
        and all(each.state == "answered" for each in answers.values())
        and "alternatives" in vars(app.pane._cost)
    )


@pytest.mark.parametrize(
    ("size", "draft"),
    [("small", "usual"), ("wide", "many"), ("wide", "four")],
)
def test_it_looks_like_this(size, draft, worker):
    async def script(pilot):
        pilot.app.pane.query_one("#steps").focus()
        await until(pilot, lambda: all_here(pilot.app))
        await pilot.pause()
        check_snapshot(f"plan-{draft}-{size}", text_of(pilot.app))

    drive(script, SIZES[size], DRAFTS[draft], "plan", Timeless(worker))


def test_very_wide_the_targets_stand_beside_the_plan(worker):
    async def script(pilot):
        await until(pilot, lambda: all_here(pilot.app))
        await pilot.press("z")
        await until(pilot, lambda: "Layout──" not in text_of(pilot.app))
        line = next(line for line in text_of(pilot.app).splitlines() if "moves" in line)
        assert "shardy" in line or "target " in line

    drive(script, (200, 60), ProblemForm(), "plan", Timeless(worker))


def test_the_arrows_choose_a_step_and_bring_it_on_screen():
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one("#steps").focus()
        assert pane.state.step_number == 1
        for number in (2, 3, 4):
            await pilot.press("down")
            await until(pilot, lambda number=number: f"▌{number}  " in text_of(pilot.app))
            assert pane.state.step_number == number
        await pilot.press("up", "up", "up")
        await until(pilot, lambda: "▌1  all_gather A" in text_of(pilot.app))
        await pilot.press("enter", "home")
        await until(pilot, lambda: "case 3 over Y, case 4 over X" in text_of(pilot.app))

    drive(script, SIZES["small"], DRAFTS["four"], "plan")


def test_below_the_last_step_a_target_is_selected_with_its_reason(worker):
    async def script(pilot):
        pilot.app.pane.query_one("#steps").focus()
        await until(pilot, lambda: all_here(pilot.app))
        assert "all_reduce_and_slice" not in text_of(pilot.app)
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: "≠ all_reduce_and_slice: cpu" in text_of(pilot.app))
        await pilot.press("up", "up")
        await until(pilot, lambda: "all_reduce_and_slice" not in text_of(pilot.app))
        assert pilot.app.state.step_number == 2

    drive(script, (120, 50), ProblemForm(specs=("XY", "Y_", "XY")), "plan", Timeless(worker))


def test_the_first_collective_is_chosen_and_stays_so_while_its_plan_does():
    async def script(pilot):
        app = pilot.app
        pane = app.pane
        assert (pane.state.step_number, app.state.resolved.plan.steps[1].op) == (2, "psum")
        app.state.edit(enter(app.state.history.draft, "sizes", "b=64,d=64,f=64"))
        await pilot.pause()
        assert pane.state.step_number == 2
        app.state.edit(replace(app.state.history.draft, specs=("_X", "__", "__")))
        await until(pilot, lambda: pane.state.step_number == 1)
        assert app.state.resolved.plan.steps[0].op == "all_gather"

    drive(script, draft=ProblemForm(), screen="plan")


def test_space_plays_a_collective_round_by_round_and_the_plan_from_any_other_step():
    async def script(pilot):
        app = pilot.app
        app.pane.query_one("#steps").focus()
        await pilot.press("up", "space")
        await until(pilot, lambda: app.pane.area == "step" and "step 1 of 2" in text_of(app))
        assert app.pane.player.playing
        await pilot.press("space", "2", "down", "space")
        await until(pilot, lambda: app.pane.area == "step" and "psum over Y" in text_of(app))
        assert app.pane.player.playing

    drive(script, screen="plan")


def test_enter_shows_the_arithmetic_and_the_totals_and_hides_them_again():
    said = ("case 3 over Y", "21.802 µs", "without overlap")

    async def script(pilot):
        await pilot.press("2")
        await until(pilot, lambda: "alternatives" in vars(pilot.app.pane._cost))
        assert not any(words in text_of(pilot.app) for words in said)
        await pilot.press("up", "enter")
        await until(pilot, lambda: all(words in text_of(pilot.app) for words in said))
        await pilot.press("enter")
        await until(pilot, lambda: not any(words in text_of(pilot.app) for words in said))

    drive(script, (120, 50), ProblemForm(targets="none"), "plan")


def test_r_asks_what_waits_and_what_was_cancelled():
    async def script(pilot):
        app = pilot.app
        app.pane.query_one("#steps").focus()
        states = lambda: [each.state for each in app.state.queries.answers.values()]  # noqa: E731
        await until(pilot, lambda: "v5e:2x4  waits for a pause in typing; r compiles now" in text_of(app))
        await pilot.press("r")
        await until(pilot, lambda: states() == ["asked"])
        await pilot.press("escape")
        await until(pilot, lambda: "cancelled; r recompiles" in text_of(app))
        await pilot.press("r")
        await until(pilot, lambda: states() == ["asked"])

    drive(script, draft=ProblemForm(targets="v5e:2x4"), screen="plan")


def test_who_waits_sees_for_how_long_and_nothing_turns_where_nothing_may(monkeypatch):
    async def script(pilot):
        app = pilot.app
        app.animation_level = "none"
        await until(pilot, lambda: "… shardy  asked" in text_of(app))
        since = app.state.queries.answers["shardy"].since
        monkeypatch.setattr(targets_pane, "time", SimpleNamespace(monotonic=lambda: since + 65.04))
        await until(pilot, lambda: "… shardy  asked  65.0 s" in text_of(app))
        assert not set(SPINNER) & set(text_of(app))

    drive(script, draft=ProblemForm(targets="shardy"), screen="plan")


def test_the_alternatives_are_looked_for_on_another_thread(monkeypatch):
    """Planning them takes longer than a frame."""
    from threading import current_thread, main_thread

    from shardviz.planner.pricing import costs

    found, usual = [], costs.plan
    monkeypatch.setattr(costs, "plan", lambda *of: found.append(current_thread()) or usual(*of))

    async def script(pilot):
        await pilot.press("2", "enter")
        await until(pilot, lambda: found and "without overlap" in text_of(pilot.app))
        assert main_thread() not in found

    drive(script, SIZES["wide"], screen="plan")
