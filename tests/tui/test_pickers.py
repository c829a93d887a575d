"""The lists of dtypes, targets and machines: found by typing, chosen by enter, left by esc."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from shardviz.forms.form import ProblemForm
from shardviz.tui.dialogs.filtered_list import FilteredList
from shardviz.tui.problem.fields import Cursor
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of


async def opened(pilot, field):
    """Open the list of a field."""
    pilot.app.panel.cursor = Cursor(field)
    if not pilot.app.workspace.is_left:
        pilot.app.action_problem()
    await pilot.press("space")
    assert isinstance(pilot.app.screen, FilteredList)


PICKED = [
    ("dtype", ["down", "enter"], "f32"),
    ("dtype", [*"e4m3b11", "enter"], "f8e4m3b11fnuz"),
    ("dtype", [*"s8", "escape"], "bf16"),
    ("machine", [*"2*v5e:2x2", "enter"], "2*v5e:2x2"),
    ("targets", [*"h100", "enter"], "shardy,cpu,h100:8"),
    ("targets", ["enter"], "shardy,cpu,real"),
]


def test_a_value_is_found_by_typing_and_is_one_step_of_undo():
    async def script(pilot):
        for field, keys, text in PICKED:
            await opened(pilot, field)
            await pilot.press(*keys)
            assert len(pilot.app.screen_stack) == 1
            draft = pilot.app.state.history.draft
            assert getattr(draft, field) == text
            assert pilot.app.state.resolved.faults == ()
            await pilot.press("u")
            assert pilot.app.state.history.draft == ProblemForm()

    drive(script, screen="plan")


def test_names_that_mean_nothing_keep_the_list_open():
    async def script(pilot):
        for field, typed in (("dtype", "[red]"), ("machine", "v9:2"), ("targets", "v5e:3x")):
            await opened(pilot, field)
            pilot.app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            assert isinstance(pilot.app.screen, FilteredList)
            assert "has this name." in text_of(pilot.app)
            await pilot.press("escape")
            assert pilot.app.state.history.draft == ProblemForm()

    drive(script, screen="plan")


def test_a_key_takes_the_next_theme():
    async def script(pilot):
        for name in ("light", "projector", "terminal", "dark"):
            await pilot.press("t")
            assert pilot.app.theme == f"shardviz-{name}"
            assert f"The theme is {name}." in [said.message for said in pilot.app._notifications]

    drive(script)


@pytest.mark.parametrize("size", one_in(2, ["small", "wide"]))
def test_lists_as_they_look(size):
    async def script(pilot):
        for field in ("dtype", "targets", "machine"):
            await opened(pilot, field)
            await pilot.press("down")
            await pilot.pause()
            check_snapshot(f"list-{field}-{size}", text_of(pilot.app))
            await pilot.press("escape")

    drive(script, SIZES[size])
