"""The layout screen: the picture, the cursor in it, and its cell in words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.render.layouts.cells import CellIndex
from shardviz.tui.layout_pane import LayoutPane
from shardviz.tui.registry import LAYOUT
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of

NONE = ProblemForm(targets="none")
POD = ProblemForm(mesh="X=256,Y=256", targets="none")


def pane_text(app) -> str:
    """What the screen shows, without the problem and the keys."""
    region = app.pane.region
    lines = text_of(app).splitlines()[region.y : region.bottom]
    return "\n".join(line[region.x : region.right].rstrip() for line in lines)


def lit(text: str, marks: str = "▹◃") -> list[str]:
    """The labels of the cells that are marked."""
    return [label.replace(" ", "") for label in re.findall("(.*?)".join(marks), text)]


def lay_out(script, size=SIZES["wide"], draft=NONE):
    """Run a script on the layout screen of an application, which has the focus."""

    async def focused(pilot):
        if not pilot.app.pane.display:
            await pilot.press("p")
        pilot.app.pane.query_one("#cells").focus()
        await pilot.pause()
        await script(pilot)

    drive(focused, size, draft, "layout")


@pytest.mark.parametrize(("name", "keys"), [("arrays", ["right"]), ("devices", ["v", "down", "right"])])
@pytest.mark.parametrize("size", one_in(2, [SIZES["small"], SIZES["wide"]]), ids=["small", "wide"])
def test_it_looks_like_this(size, name, keys, request):
    async def script(pilot):
        await pilot.press(*keys)
        await pilot.pause()
        check_snapshot(f"layout-{name}-{request.node.callspec.id.split('-')[0]}", pane_text(pilot.app))

    lay_out(script, size)


def test_very_wide_the_words_stand_beside_the_picture():
    async def script(pilot):
        await pilot.press("z")
        first = pane_text(pilot.app).splitlines()[0]
        assert first.startswith("A[b_X, d_Y]")
        assert "by array" in first

    lay_out(script, (200, 60))


WALK = [
    ("right", 0, (0, 0, 1)),
    ("down", 0, (0, 1, 1)),
    ("end", 0, (0, 1, 3)),
    ("right", 1, (0, 1, 0)),
    ("pagedown", 1, (0, 3, 0)),
    ("up", 1, (0, 2, 0)),
    ("pageup", 1, (0, 0, 0)),
    ("left", 0, (0, 0, 3)),
    ("home", 0, (0, 0, 0)),
    ("n", 1, (0, 0, 0)),
    ("N", 0, (0, 0, 0)),
    ("N", 2, (0, 0, 0)),
    ("v", 2, (0, 0, 0)),
    ("m", 2, (0, 0, 0)),
    ("enter", 2, (0, 0, 0)),
]


def test_keys_move_the_cursor():
    async def script(pilot):
        for key, array, spot in WALK:
            await pilot.press(key)
            assert (key, *pilot.app.pane.cursor) == (key, array, spot)
            assert pane_text(pilot.app).count("▸") == 1

    lay_out(script)


def test_these_are_all_commands_of_the_screen():
    assert {key for command in LAYOUT for key in command.keys} == {key for key, *_ in WALK}
    for command in LAYOUT:
        assert hasattr(LayoutPane, f"action_{command.name.partition('(')[0]}")


def test_by_device_the_cursor_stays_with_its_device():
    async def script(pilot):
        await pilot.press("down", "right", "right")
        assert "device  6  X1 Y2" in pane_text(pilot.app)
        await pilot.press("v")
        assert "device   6  X1 Y2" in pane_text(pilot.app)
        assert "and of the other arrays" in pane_text(pilot.app)
        await pilot.press("n", "v")
        assert "devices  0, 4  X0–1 Y0  2 copies" in pane_text(pilot.app)

    lay_out(script)


def test_a_device_is_marked_in_every_array_however_that_is_shown():
    async def script(pilot):
        app = pilot.app
        await pilot.press("down", "right", "enter", "home")
        assert app.state.lens == 5
        assert lit(pane_text(app)) == ["κ1,5", "ζ5", "ξ4,5,6,7"]
        assert "device ▹5◃ X1 Y1" in text_of(app)
        await pilot.press("v", "n")
        assert lit(pane_text(app)) == ["ζ5", "κ5", "ξ5"]
        app.state.set_lens(2)
        await pilot.pause()
        assert lit(pane_text(app)) == ["γ2", "ν2"]
        assert lit(pane_text(app), "▸◂") == ["λ2"]
        await pilot.press("enter")
        assert app.state.lens is None
        assert "device ▹" not in text_of(app)
        await pilot.press("enter", "escape")
        assert app.state.lens is None

    lay_out(script)


def test_a_mesh_without_the_marked_device_marks_none():
    async def script(pilot):
        app = pilot.app
        app.state.set_lens(7)
        app.state.edit(enter(NONE, "mesh", "X=2,Y=2"))
        assert app.state.lens is None

    lay_out(script)


def test_a_click_moves_the_cursor():
    async def script(pilot):
        there = pilot.app.pane.canvas.cursor_at(60, 6)
        x, y, _ = pilot.app.pane.canvas.place_of(there)
        await pilot.click("#cells", offset=(x + 1, y))
        await pilot.pause()
        assert pilot.app.pane.cursor == there
        assert pane_text(pilot.app).splitlines()[y][x] == "▸"

    lay_out(script)


def test_after_an_edit_the_cursor_is_where_it_was_if_that_is_still_there():
    async def script(pilot):
        await pilot.press("down", "right", "right", "right")
        pilot.app.state.edit(enter(NONE, "mesh", "X=2,Y=2"))
        await pilot.pause()
        assert pilot.app.pane.cursor == (0, CellIndex(0, 1, 1))
        assert lit(pane_text(pilot.app), "▸◂") == ["δ3"]
        pilot.app.state.edit(replace(NONE, einsum="b,->b", specs=("X", "()", "X")))
        await pilot.pause()
        assert "▸" in pane_text(pilot.app)

    lay_out(script)


def test_what_cannot_be_drawn_is_said_and_keys_do_no_harm():
    sizes = ",".join(f"{dim}=2" for dim in "abcdefghi")
    many = ProblemForm(
        einsum="abcdefghi,->abcdefghi", specs=("_" * 9, "()", "_" * 9), sizes=sizes, targets="none"
    )

    async def script(pilot):
        assert "A has 9 dimensions. Layouts show up to 8." in " ".join(pane_text(pilot.app).split())
        await pilot.press(*[key for command in LAYOUT for key in command.keys])
        pilot.app.state.edit(NONE)
        await pilot.pause()
        assert "α 0" in pane_text(pilot.app)

    lay_out(script, draft=many)


def test_65536_devices_scroll():
    async def script(pilot):
        await pilot.press("v", "end", *["pagedown"] * 4, "left")
        text = pane_text(pilot.app)
        assert "▸" in text
        assert "Y254" in text.splitlines()[0]
        cursor = pilot.app.pane.cursor
        row, column = cursor.cell[1:]
        assert f"X{row} Y{column}" in text
        assert f"X{row} " in next(line for line in text.splitlines() if "▸" in line)

    lay_out(script, SIZES["small"], POD)


def test_the_place_on_each_target_and_on_the_machine_is_told():
    draft = ProblemForm(targets="v5e:2x4,h100:8,v4:2x2x4", machine="v2:2x2")

    async def script(pilot):
        await pilot.press("down", "right", "right")
        text = pane_text(pilot.app)
        assert "v5e:2x4  chip x1 y2 (device 5)" in text
        assert "h100:8   GPU 6" in text
        assert "v2:2x2   chip x0 y1 core 0 (device 4)" in text
        # It has another size.
        assert "v4:2x2x4" not in text

    lay_out(script, draft=draft)


def test_at_the_einsum_operands_have_been_moved_and_results_are_partial_sums():
    async def script(pilot):
        pilot.app.action_problem()
        await pilot.press("m", "n", "n")
        text = text_of(pilot.app)
        assert "Out[b_X, f]{U_Y}" in text
        assert "4 partial sums over Y" in text
        assert "m as given" in text
        await pilot.press("m")
        assert "{U_Y}" not in text_of(pilot.app)
        pilot.app.state.edit(ProblemForm(specs=("X_", "X_", "X_")))
        await pilot.press("m")
        assert "A[b, d_X]" in text_of(pilot.app)

    drive(script, draft=ProblemForm())
