"""The dialog of all ways to split the arrays: the lines are those of the command line, and one opens."""

from __future__ import annotations

from textual.widgets import OptionList

from shardviz.forms.form import ProblemForm
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.ranking import rank
from shardviz.tui.dialogs.tables import RankingDialog
from tests.tui.conftest import drive, text_of, until


async def opened(pilot):
    await pilot.press("W")
    assert isinstance(pilot.app.screen, RankingDialog)
    await until(pilot, lambda: pilot.app.screen.query_one(OptionList).option_count)


def test_the_fastest_opens_as_the_problem():
    async def script(pilot):
        app = pilot.app
        resolved = app.state.resolved
        question = problem_from_text("bd,df->bf", mesh=resolved.problem.mesh, ranked=True)
        found = rank(question, resolved.placed)
        await opened(pilot)
        assert app.screen.query_one(OptionList).option_count == len(found) + 1
        await until(pilot, lambda: "beside the plan on screen" in " ".join(text_of(app).split()))
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        after = app.state.resolved
        assert after.faults == ()
        assert price(after.plan, after.placed).serial_seconds == found[0].cost.serial_seconds
        await pilot.press("u")
        assert app.state.history.draft == ProblemForm()

    drive(script, screen="plan")


def test_what_cannot_be_ranked_says_why(monkeypatch):
    monkeypatch.setattr("shardviz.planner.ranking.MAX_PLANS", 10)

    async def script(pilot):
        await pilot.press("W")
        await until(pilot, lambda: "more than 10 shardings" in " ".join(text_of(pilot.app).split()))

    drive(script, screen="plan")
