"""The questions of the session: beside the fields, and in the dialog that opens and compares them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import OptionList

from shardviz.forms.form import ProblemForm
from shardviz.tui.dialogs.tables import QuestionsDialog
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

FIRST = ProblemForm(targets="none")
SECOND = replace(FIRST, specs=("X_", "_Y", "XY"))
THIRD = replace(FIRST, mesh="X=4,Y=4", specs=("XY", "YX", "XY"))


async def opened(pilot, *forms):
    for form in forms:
        pilot.app.state.edit(form)
    await pilot.press("h")
    assert isinstance(pilot.app.screen, QuestionsDialog)
    await until(pilot, lambda: pilot.app.screen.query_one(OptionList).option_count > len(forms))


@pytest.mark.parametrize("size", one_in(2, ["small", "wide"]))
def test_it_looks_like_this(size):
    async def script(pilot):
        await opened(pilot, SECOND, THIRD)
        await pilot.press("equals_sign")
        await pilot.pause()
        check_snapshot(f"questions-{size}", text_of(pilot.app))

    drive(script, SIZES[size], FIRST)


def test_one_opens_again_as_one_step_of_undo():
    async def script(pilot):
        await opened(pilot, SECOND, THIRD)
        await pilot.press("down", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        state = pilot.app.state
        assert state.resolved.draft == FIRST
        assert [each.draft for each in state.questions.newest_first] == [FIRST, THIRD, SECOND]
        await pilot.press("u")
        assert state.resolved.draft == THIRD

    drive(script, draft=FIRST)


def test_equals_puts_it_beside_the_one_that_is_shown_until_it_is_pressed_again():
    async def script(pilot):
        await opened(pilot, SECOND, THIRD)
        assert "compute-bound" in text_of(pilot.app)
        await pilot.press("equals_sign")
        await until(pilot, lambda: "no overlap" in text_of(pilot.app))
        shown = text_of(pilot.app)
        assert all(word in shown for word in ("sent", "memory", "collectives", "× 3.6"))
        await pilot.press("down")
        await until(pilot, lambda: "psum" in text_of(pilot.app).split("collectives")[-1])
        await pilot.press("equals_sign")
        await until(pilot, lambda: "compute-bound" in text_of(pilot.app))

    drive(script, SIZES["wide"], FIRST)


def test_what_is_typed_and_what_is_wrong_are_no_questions():
    async def script(pilot):
        state = pilot.app.state
        pilot.app.panel.cursor = replace(pilot.app.panel.cursor, field="sizes", index=0)
        await pilot.press("enter", *"b=64")
        assert state.resolved.problem.arguments[0].shape[0] == 64
        assert len(state.questions.newest_first) == 1
        await pilot.press("enter")
        assert len(state.questions.newest_first) == 2
        state.edit(replace(state.resolved.draft, specs=("XQ", "Y_", "X_")))
        assert state.resolved.faults
        assert len(state.questions.newest_first) == 2

    drive(script, draft=FIRST)


def test_the_figures_stand_below_the_fields_where_there_is_room():
    async def script(pilot):
        await pilot.pause()
        assert "time      162 µs" in text_of(pilot.app)
        pilot.app.state.edit(SECOND)
        await until(pilot, lambda: "was 162 µs" in text_of(pilot.app))
        await pilot.resize_terminal(80, 20)
        await until(pilot, lambda: "was 162 µs" not in text_of(pilot.app))

    drive(script, SIZES["usual"], FIRST)


def test_a_lesson_keeps_its_questions_to_itself():
    async def script(pilot):
        app = pilot.app
        own = app.state.questions
        from shardviz.lessons.course import course

        await app.open_lesson(course()[0])
        await app.action_lesson("leave")
        assert app.state.questions is own
        assert [each.draft for each in own.newest_first] == [FIRST]

    drive(script, draft=FIRST)
