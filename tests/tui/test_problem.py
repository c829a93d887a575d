"""The problem panel and the top line, by keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events

from shardviz.forms.form import OPEN, ProblemForm
from shardviz.tui.bars import Headline
from shardviz.tui.problem.fields import MAX_TEXT, Cursor, Entry
from shardviz.tui.registry import PROBLEM
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

DOWN_TO_A = ("down",) * 4
NARROW = SIZES["small"]


def panel_text(app) -> str:
    """The panel, as it is on screen."""
    x, y, width, height = app.panel.region
    lines = text_of(app).splitlines()[y : y + height]
    return "\n".join(line[x : x + width].rstrip() for line in lines)


async def paste(pilot, text: str) -> None:
    pilot.app.focused.post_message(events.Paste(text))
    await pilot.pause()


MESH, EINSUM, SIZES_FIELD = Cursor("mesh"), Cursor("einsum"), Cursor("sizes")
W = Cursor("specs.1")
A, A_B, A_D, OUT = Cursor("specs.0"), Cursor("specs.0", 1), Cursor("specs.0", 2), Cursor("specs.2")
KEYS = [
    (MESH, "plus", {"mesh": "X=4,Y=4"}),
    (EINSUM, "a plus less_than_sign", {"mesh": "X=2,Z=4,Y=4"}),
    (MESH, "greater_than_sign plus", {"mesh": "Y=4,X=4"}),
    (MESH, "d", {"mesh": "Y=4", "specs": ("_Y", "Y_", "__")}),
    (A_B, "space", {"specs": ("_Y", "Y_", "X_")}),
    (A_B, "backspace right X", {"specs": ("_(YX)", "Y_", "X_")}),
    (A, "X s", {}),
    (W, "s", {"specs": ("XY", "Y_{U_X}", "X_")}),
    (W, "s right right right X", {"specs": ("XY", "Y_", "X_")}),
    (OUT, "space", {"specs": ("XY", "Y_", OPEN)}),
    (Cursor("axis_types"), "space", {"axis_types": "explicit"}),
    (MESH, "enter 8 enter", {"mesh": "X=8,Y=4"}),
    (SIZES_FIELD, "enter b = 9 enter", {"sizes": "b=9,d=2048,f=8192"}),
    (A_D, "enter Y _ enter", {"specs": ("Y_", "Y_", "X_")}),
    (A_D, "enter Q escape", {}),
    (EINSUM, "enter q u question_mark 1 escape", {}),
    (EINSUM, "down up left left right", {}),
    (MESH, "enter f o o [ enter", {"mesh": "foo[=2,Y=4"}),
]


@pytest.fixture(scope="module")
def made() -> list[ProblemForm]:
    """The drafts that the keys make, all in one application."""
    found = []

    async def script(pilot):
        for cursor, keys, _ in KEYS:
            pilot.app.state.edit(ProblemForm())
            pilot.app.panel.cursor = cursor
            await pilot.press(*keys.split())
            found.append(pilot.app.state.history.draft)

    drive(script)
    return found


@pytest.mark.parametrize("number", range(len(KEYS)), ids=[f"{c.field}: {keys}" for c, keys, _ in KEYS])
def test_keys(made, number):
    assert made[number] == replace(ProblemForm(), **KEYS[number][2])


@pytest.mark.parametrize("size", one_in(2, [SIZES["small"], SIZES["wide"]]), ids=["small", "wide"])
def test_the_panel_and_the_line_above_it(size):
    async def script(pilot):
        name = next(name for name, known in SIZES.items() if known == size)
        if size == NARROW:
            await pilot.press("p")
        await pilot.press(*DOWN_TO_A, "enter", *"XQ")
        typed = panel_text(pilot.app)
        await pilot.press("enter", "right", "down", "down")
        headline = text_of(pilot.app).splitlines()[0]
        check_snapshot(f"problem_{name}", "\n".join((headline, panel_text(pilot.app), "", "typing:", typed)))

    drive(script, size)


def test_what_is_typed_is_seen_at_once_and_esc_leaves_it_and_enter_is_one_step_of_undo():
    async def script(pilot):
        app = pilot.app
        app.panel.cursor, before = A, app.state.resolved
        await pilot.press("enter", *"_Y", "escape")
        assert app.state.resolved == before
        assert app.focused is app.panel.view
        await pilot.press("enter", *"Y_")
        assert app.state.resolved.problem.arguments[0].spec.dims == (("Y",), ())
        assert app.state.history.draft == ProblemForm()
        await pilot.press("Q")
        assert app.state.resolved.problem == before.problem
        assert "✗" in text_of(app)
        await pilot.press("backspace", "enter", "u")
        assert app.state.history.draft == ProblemForm()
        assert app.state.resolved.draft == ProblemForm()
        await pilot.press("U")
        assert app.state.resolved.draft.specs[0] == "Y_"

    drive(script)


def test_the_footer_tells_the_keys_that_work_now_and_help_those_of_the_problem_first():
    def footer(pilot):
        return text_of(pilot.app).splitlines()[-1]

    async def script(pilot):
        app = pilot.app
        await pilot.press(*DOWN_TO_A)
        assert "x y u shard" in footer(pilot)
        assert "undo" not in footer(pilot)
        for letters in ("u undo", "examples", "copy"):
            assert letters not in footer(pilot)
        await pilot.press("x", "up")
        assert app.state.resolved.draft.specs[0] == "x_"
        assert "x examples" in footer(pilot)
        assert "u undo" in footer(pilot)
        await pilot.press("enter")
        assert footer(pilot) == "enter keep  esc discard"
        await pilot.press("escape", "question_mark")
        await pilot.pause(0.2)  # a page longer than the screen is laid out twice
        said = text_of(app).splitlines()
        assert "Help: Problem" in "".join(said[:4])
        assert next(line for line in said if line.strip(" │").startswith("Problem"))
        await pilot.press("escape", "y")
        assert footer(pilot) == ""
        await pilot.press("escape")
        assert footer(pilot).startswith("? help")

    drive(script, draft=ProblemForm(mesh="x=2,y=2,u=2", specs=("__", "__", "__")))


def test_no_key_of_a_burst_is_lost():
    keys = [*DOWN_TO_A, "backspace", "right", "X", "enter", "Y", "_", "enter"]

    async def script(pilot):
        for key in keys:
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        history = pilot.app.state.history
        await until(pilot, lambda: history.draft.specs[0] == "Y_" and not pilot.app.panel.is_typing)
        await pilot.press("u")
        assert history.draft.specs[0] == "_(YX)"

    drive(script)


BURSTS = (
    ("ctrl+u", *"a->b"),
    (*"a->c", "backspace", "b"),
    (*"->b", "home", "a", "end", *"z", "left", "delete"),
    (*"bad", "ctrl+w", *"a->b"),
)


@pytest.mark.parametrize("is_open", [True, False], ids=["in a field", "that opens a field"])
def test_in_a_burst_the_keys_of_a_field_work_in_their_order(is_open):
    async def script(pilot):
        history = pilot.app.state.history
        for keys in BURSTS:
            pilot.app.state.edit(ProblemForm())
            pilot.app.panel.cursor = EINSUM
            if is_open:
                await pilot.press("enter")
            for key in (*["enter"] * (not is_open), *keys, "enter"):
                pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
            await pilot.pause()
            assert (history.draft.einsum, pilot.app.panel.is_typing) == ("a->b", False), keys

    drive(script)


def test_another_part_that_takes_the_focus_keeps_the_text_another_window_does_not_end_it():
    async def script(pilot):
        await pilot.press("down", "enter", *"a->")
        pilot.app.post_message(events.AppBlur())
        await pilot.pause()
        pilot.app.post_message(events.AppFocus())
        await until(pilot, lambda: isinstance(pilot.app.focused, Entry))
        await pilot.press("z", "tab")
        await until(pilot, lambda: pilot.app.state.history.draft.einsum == "a->z")
        assert "a->z" in panel_text(pilot.app)
        assert "✗" in panel_text(pilot.app)

    drive(script)


PASTED = {
    "several lines": ("bd,\ndk->\r\nbk\n", {"einsum": "bd,dk->bk"}),
    "a command line": (
        "shardviz explain 'bd,df->bf' \\\n  --mesh X=4 --specs 'X_,__->X_'",
        {"mesh": "X=4", "specs": ("X_", "__", "X_")},
    ),
    "markup and control characters": ("[bold]\x1b[31m[/x]", {"einsum": "[bold]\ufffd[31m[/x]"}),
}


def test_pasted_text_and_a_huge_one_is_cut_and_said_so():
    async def script(pilot):
        for text, wanted in PASTED.values():
            pilot.app.state.edit(ProblemForm())
            pilot.app.panel.cursor = Cursor("einsum")
            await pilot.press("enter")
            await paste(pilot, text)
            await pilot.press("enter")
            assert pilot.app.state.history.draft == replace(ProblemForm(), **wanted)
        await pilot.press("enter")
        await paste(pilot, "a" * 1_000_000)
        assert len(pilot.app.focused.value) == MAX_TEXT
        assert ["1,000,000 characters" in note.message for note in pilot.app._notifications] == [True]

    drive(script)


def test_a_click_puts_the_cursor_there_two_open_the_field_and_one_elsewhere_keeps_the_text():
    async def script(pilot):
        app = pilot.app
        place = next(place for place in app.panel.picture.places if place.cell.axes == ("Y",))
        offset = (place.left, place.y)
        await pilot.click(app.panel.view, offset=offset)
        assert app.panel.cell == place.cell
        await pilot.click(app.panel.view, offset=offset, times=2)
        await until(pilot, lambda: isinstance(app.focused, Entry))
        assert app.focused.value == "Y=4"
        await pilot.press("8")
        await pilot.click(app.panel.view, offset=(12, 12))
        await until(pilot, lambda: app.state.history.draft.mesh == "X=2,Y=8")

    drive(script)


def test_every_field_of_a_large_problem_is_reached_with_the_arrows():
    chain = ";".join(
        ["ab,bc->ac", *(f"a{x},{x}{y}->a{y}" for x, y in zip("cdefghijklm", "defghijklmn", strict=True))]
    )
    draft = ProblemForm(mesh=",".join(f"{axis}=2" for axis in "STUVWXYZ"), specs=("__", "__", OPEN))
    draft = replace(draft, einsum=chain, specs=("__", "__", OPEN, *((OPEN, "__", OPEN) * 11)))

    async def script(pilot):
        await pilot.press("p")
        panel, view = pilot.app.panel, pilot.app.panel.view
        reached = {panel.cell}

        def moves(direction):
            """Whether the cursor can go on."""
            before = panel.cell
            panel.action_move(direction)
            reached.add(panel.cell)
            place = next(place for place in panel.picture.places if place.cell == panel.cell)
            assert view.scroll_y <= place.y < view.scroll_y + view.size.height
            return panel.cell != before

        is_going = True
        while is_going:
            for direction in ("left", "right"):
                while moves(direction):
                    pass
            is_going = moves("down")
        assert {cell.field for cell in reached} >= {"mesh", "targets", *(f"specs.{n}" for n in range(36))}

    drive(script, NARROW, draft)


def test_narrow_the_problem_takes_the_place_of_the_screen():
    async def script(pilot):
        app = pilot.app
        assert not app.panel.display
        assert app.pane.display
        await pilot.press("p")
        assert app.panel.display
        assert not app.pane.display
        assert app.focused is app.panel.view
        await pilot.resize_terminal(*SIZES["usual"])
        await until(pilot, lambda: app.pane.display)
        assert app.panel.display
        await pilot.press("p")
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: not app.panel.display)
        assert app.pane.display
        await app.action_run_command(PROBLEM[0])
        assert app.panel.display

    drive(script, NARROW)


def test_the_headline_stands_only_where_there_is_no_room_for_fields_and_pane():
    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: app.pane.display)
        headline = app.query_one(Headline)
        assert not headline.display
        for size, is_shown in ((NARROW, True), (SIZES["usual"], False)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda is_shown=is_shown: headline.display is is_shown)

    drive(script, SIZES["usual"])


def test_a_window_that_is_too_small_says_so_until_it_is_larger():
    async def script(pilot):
        app = pilot.app
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: "window is 30×8" in text_of(app))
        await pilot.press("plus")
        assert app.state.history.draft == ProblemForm()
        await pilot.resize_terminal(*SIZES["usual"])
        await until(pilot, lambda: "X=2  Y=4" in text_of(app))
        await pilot.press("plus")
        assert app.state.history.draft.mesh == "X=4,Y=4"

    drive(script, SIZES["usual"])


def test_a_refused_value_greys_the_panes_until_esc_takes_it_back():
    async def script(pilot):
        app = pilot.app
        await pilot.press("down", "enter", *"[b", "enter")
        await pilot.pause()
        assert app.workspace.room.has_class("of-before")
        assert "of the last valid problem" in panel_text(app)
        for key in "WR":
            await pilot.press(key)
            await pilot.pause()
            (note,) = app._notifications
            assert "esc restores the last valid problem" in note.message
        await pilot.press("escape")
        await pilot.pause()
        assert not app.state.resolved.faults
        assert not app.workspace.room.has_class("of-before")
        assert app.state.history.draft.einsum == "bd,df->bf"
        # The refused text is what a redo brings, and no step of undo.
        await pilot.press("u")
        assert not app.state.resolved.faults
        await pilot.press("U")
        assert app.state.history.draft.einsum == "[b"

    drive(script, (120, 36))


def test_a_padded_dimension_is_said_beside_the_sizes():
    async def script(pilot):
        await until(pilot, lambda: "b padded to 1,026" in panel_text(pilot.app))

    drive(script, draft=ProblemForm(mesh="X=3,Y=4"))
