"""The dialog of meshes and shardings: rows, a comparison of two, and a row that opens as the problem."""

from __future__ import annotations

from textual.widgets import OptionList

from shardviz.forms.options import form_from_options
from shardviz.tui.dialogs.tables import ShardingsDialog
from tests.tui.conftest import SIZES, drive, text_of, until

FORM = form_from_options(
    "bd,df->bf", mesh="X=2,Y=4", specs="XY,Y_->X_", sizes="b=64,d=512,f=1024", machine="v5e:2x4"
)


async def opened(pilot):
    await pilot.press("R")
    assert isinstance(pilot.app.screen, ShardingsDialog)
    await until(pilot, lambda: pilot.app.screen.query_one(OptionList).option_count)


def test_a_row_opens_as_the_problem():
    async def script(pilot):
        await opened(pilot)
        assert "X=8" in text_of(pilot.app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        resolved = pilot.app.state.resolved
        assert resolved.faults == ()
        assert resolved.problem.mesh.size == 8
        assert resolved.draft != FORM
        await pilot.press("u")
        assert pilot.app.state.resolved.draft == FORM

    drive(script, draft=FORM, screen="plan")


def test_meshes_with_the_same_figures_are_one_row():
    async def script(pilot):
        await opened(pilot)
        await until(pilot, lambda: "the same: X=2, Y=4 or X=4, Y=2" in text_of(pilot.app))
        assert pilot.app.screen.query_one(OptionList).option_count == 2

    drive(script, SIZES["wide"], draft=FORM, screen="plan")


def test_a_machine_that_is_too_small_names_one_that_would_do():
    form = form_from_options("bd,df->bf", mesh="X=2,Y=4", sizes="b=64Ki,d=64Ki,f=1Mi", machine="v5e:2x4")

    async def script(pilot):
        await pilot.press("R")
        await until(pilot, lambda: "The smallest machine that fits is v5e:" in text_of(pilot.app))

    drive(script, SIZES["wide"], draft=form, screen="plan")


def test_a_row_of_several_lines_is_one_choice():
    """In a small window a row may take two lines; the choice is a row nevertheless."""
    form = form_from_options("bd,df->bf; bf,fd->bd", mesh="data_axis=4,tensor_axis=4", machine="v5e:4x4")

    async def script(pilot):
        await opened(pilot)
        screen = pilot.app.screen
        assert screen.query_one(OptionList).option_count == len(screen._answer.alike) + 1 > 2
        await pilot.press("end", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        last = screen._answer.alike[-1][0].mesh
        axes = {name: size for name, size in last.shape.items() if size > 1}
        await until(pilot, lambda: dict(pilot.app.state.resolved.problem.mesh.shape) == axes)

    drive(script, (40, 15), draft=form, screen="plan")
