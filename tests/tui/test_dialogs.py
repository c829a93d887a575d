"""What opens above the screens: help, examples, code, export, command line. By keys, at three sizes."""

from __future__ import annotations

import json
import shlex
from html import escape

import pytest
from textual import events
from textual.widgets import Input, OptionList

from shardviz.forms.examples import examples
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.share import Shared, from_string
from shardviz.tui.dialogs.dialog import help_of_areas
from shardviz.tui.dialogs.export import exports_of
from shardviz.tui.opening.dialog import OpenDialog
from shardviz.tui.opening.pages import CommandDialog, LineEntry, TranslationDialog
from shardviz.tui.registry import COMMANDS
from shardviz.tui.resilient_app import MOST_AHEAD
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until


def shown(app):
    """What is exported."""
    return app.screen_stack[0], app.pane, app.jax_code


DIALOGS = {"help": "question_mark", "examples": "x", "code": "c", "export": "e", "command-line": "y"}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def window_of(app):
    """What is in the dialog's window."""
    left, top, width, height = app.screen.query_one("#window").region
    lines = text_of(app).split("\n")[top : top + height]
    return "\n".join(line[left : left + width].rstrip() for line in lines)


def words_of(app):
    """The words in the dialog's window, however they wrap."""
    return " ".join(window_of(app).replace("│", " ").split())


@pytest.mark.parametrize("size", one_in(2, ["small", "wide"]))
def test_dialogs_as_they_look(size, monkeypatch):
    # What a string packs depends on the zlib that Python was built with.
    monkeypatch.setattr("shardviz.tui.dialogs.export.to_string", lambda _: "shardviz1-and-what-it-says")

    async def script(pilot):
        for name, key in DIALOGS.items():
            await pilot.press(key)
            await pilot.pause()
            check_snapshot(f"dialog-{name}-{size}", window_of(pilot.app))
            await pilot.press("escape")
            assert len(pilot.app.screen_stack) == 1

    drive(script, SIZES[size], screen="plan")


def test_help_has_every_key_of_the_screen_and_scrolls():
    said = "\n".join(line.plain for line in help_of_areas(("plan", "problem")).lines(100))
    for command in COMMANDS:
        if command.area in ("plan", "problem", "app"):
            assert f"  {command.title}" in said
    assert "All of the text" not in said

    async def script(pilot):
        await pilot.press("question_mark", "end")
        await pilot.pause(0.3)
        assert "Leave shardviz." in window_of(pilot.app)
        await pilot.press("question_mark")
        assert len(pilot.app.screen_stack) == 1

    drive(script, SIZES["small"], screen="plan")


def test_an_example_is_found_by_typing_and_is_one_step_of_undo():
    async def script(pilot):
        before = pilot.app.state.history.draft
        await pilot.press("x", *"shift", "down", "up", "enter")
        await pilot.pause()
        chosen = next(each for each in examples() if "shift" in f"{each.title} {each.look}".lower())
        assert pilot.app.state.history.draft == chosen.draft
        assert pilot.app.pane.area == chosen.screen
        await pilot.press("u")
        assert pilot.app.state.history.draft == before

    drive(script, screen="plan")


def test_words_that_no_example_has_leave_the_menu_open():
    async def script(pilot):
        before = pilot.app.state.history.draft
        await pilot.press("x", "left_square_bracket", *"red", "right_square_bracket", "enter")
        await pilot.pause()
        assert "[red]" in window_of(pilot.app)
        assert "No example matches" in window_of(pilot.app)
        await pilot.press("escape")
        assert pilot.app.state.history.draft == before

    drive(script, screen="plan")


def test_code_is_copied_and_saved(empty_folder):
    async def script(pilot):
        await pilot.press("c", "y")
        code = pilot.app.clipboard
        assert code == pilot.app.jax_code()
        compile(code, "code", "exec")
        await pilot.press("s", "enter")
        await pilot.pause()
        assert (empty_folder / "shardviz-plan.py").read_text() == code
        assert len(pilot.app.screen_stack) == 1

    drive(script, screen="plan")


def test_code_that_cannot_be_run_is_said_to_be():
    async def script(pilot):
        await pilot.press("c")
        await pilot.pause()
        assert len(pilot.app.screen_stack) == 1
        # Said as a sentence, once, however often one asks.
        await pilot.press("c", "c")
        await pilot.pause()
        (said,) = pilot.app._notifications
        assert "too much to simulate. Use up to 2,048 devices, and smaller arrays." in said.message

    drive(script, draft=ProblemForm(mesh="X=64,Y=64", collective=CollectiveFields("psum")), screen="step")


DOCUMENTS = {"1": "problem", "2": "problem", "3": "rounds", "4": "problem"}
"""What the JSON of each screen has."""
TITLES = {"1": "bd,df", "2": "The plan of bd,df", "3": "psum over Y", "4": "bd,df"}
"""How its page begins."""
PROGRAMS = {"1": "jax.jit(program", "2": "jax.lax.psum(Out", "3": "def by_hand", "4": "jax.jit(program"}
"""What its code has: jit's program, the plan by hand, or the rounds by hand."""


def test_every_form_has_its_text():
    async def script(pilot):
        for key, part in DOCUMENTS.items():
            await pilot.press(key)
            if key == "3":
                await until(pilot, lambda: pilot.app.pane.page.prepared)
            texts = {each.suffix: each.text() for each in exports_of(*shown(pilot.app))}
            assert part in json.loads(texts["json"]), key
            title, command = TITLES[key], escape(pilot.app.pane.command_line())
            assert f"<h1>{title}" in texts["html"]
            assert f"<code>{command}</code>" in texts["html"]
            cells = json.loads(texts["ipynb"])["cells"]
            code, last = pilot.app.jax_code().split(), "".join(cells[-1]["source"]).split()
            assert code[-len(last) :] == last
            assert PROGRAMS[key] in pilot.app.jax_code()
        await pilot.press("2")
        await pilot.pause()
        seen = text_of(pilot.app)
        texts = {export.suffix: export.text() for export in exports_of(*shown(pilot.app))}
        assert texts["txt"].rstrip("\n") == seen.rstrip()
        assert texts["svg"].startswith("<svg")
        assert "bd,df-&gt;bf" in texts["svg"]
        assert json.loads(texts["json"])["problem"]["einsum"] == "bd,df->bf"
        assert texts["py"] == pilot.app.jax_code()

    drive(script, screen="plan")


def test_a_file_is_written_under_a_free_name_and_over_another_only_when_asked_twice(empty_folder):
    (empty_folder / "shardviz-plan.txt").write_text("mine")

    async def script(pilot):
        await pilot.press("e", "down")
        assert "shardviz-plan-2.txt" in window_of(pilot.app)
        pilot.app.screen.query_one(Input).value = "shardviz-plan.txt"
        await pilot.press("enter")
        await pilot.pause()
        assert "enter again to overwrite" in words_of(pilot.app)
        assert (empty_folder / "shardviz-plan.txt").read_text() == "mine"
        await pilot.press("enter")
        await pilot.pause()
        assert "psum" in (empty_folder / "shardviz-plan.txt").read_text()
        assert [path.name for path in empty_folder.iterdir()] == ["shardviz-plan.txt"]
        assert len(pilot.app.screen_stack) == 1

    drive(script, screen="plan")


def test_the_ending_chooses_the_form_and_the_form_the_ending():
    async def script(pilot):
        await pilot.press("e")
        field = pilot.app.screen.query_one(Input)
        field.value = "mine.json"
        await pilot.pause()
        assert "▸ JSON" in window_of(pilot.app)
        await pilot.press("down")
        assert field.value == "mine.py"
        await pilot.press("down", "up", "up")
        assert field.value == "mine.json"

    drive(script, screen="plan")


UNWRITABLE = {
    "": "✗ The file has no name. Type one, such as layout.svg.",
    "nowhere/a.svg": "No such file or directory. Use another name or folder.",
    ".": "'.' is a folder",
    "[bold]" + "a" * 300 + ".svg": "'[bold]aaa",
    "a\0b.svg": "cannot be the name of a file",
}


def test_what_cannot_be_written_is_said_in_the_dialog():
    async def script(pilot):
        await pilot.press("e")
        for name, said in UNWRITABLE.items():
            pilot.app.screen.query_one(Input).value = name
            await pilot.press("enter")
            await pilot.pause()
            assert said in words_of(pilot.app)
        assert len(pilot.app.screen_stack) == 2

    drive(script, screen="plan")


def test_escape_stops_the_compilers_and_says_so():
    async def script(pilot):
        await until(pilot, lambda: pilot.app.state.queries.answers)
        await pilot.press("escape")
        assert {answer.state for answer in pilot.app.state.queries.answers.values()} == {"cancelled"}
        assert "r recompiles" in " ".join(note.message for note in pilot.app._notifications)

    drive(script, screen="plan")


def test_what_is_on_screen_is_copied_as_a_string_that_opens_it():
    draft = form_from_options("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", sizes="B=8,D=16,F=32")

    async def script(pilot):
        await pilot.press("y", "s")
        await pilot.pause()
        words = shlex.split(pilot.app.clipboard)
        assert words[:3] == ["shardviz", "tui", "--from"]
        assert from_string(words[3]) == Shared(draft, "plan")
        shown = window_of(pilot.app)
        start = shown.index("shardviz tui --from")
        in_lines = shown[start : shown.index("\n\n", start)]
        assert from_string(shlex.split(in_lines)[3]) == Shared(draft, "plan")

    drive(script, SIZES["small"], draft=draft, screen="plan")


BURSTS = {
    "lessons at once": ([], ["L", "enter", "enter"]),
    "palette typed": (["ctrl+p"], [*"exam", "enter", "enter", *"plan", "enter", "enter"]),
    "left": ([], ["q", "+", "x", "L", "enter", "1", "2", "q"]),
}


@pytest.mark.parametrize(("before", "burst"), [*BURSTS.values()], ids=BURSTS)
def test_keys_that_wait_while_the_application_is_busy(before, burst):
    async def script(pilot):
        app = pilot.app
        await pilot.press(*before)
        await pilot.pause()
        for key in burst:
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.is_running != ("q" in burst)
        assert app.return_code in (None, 0)
        assert not any("defect" in note.message for note in app._notifications)
        assert "+" not in burst or app.state.history.draft == ProblemForm()

    drive(script)


def type_ahead(app, keys):
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


AHEAD = {
    "an example": (
        ["x", *"scat", "enter"],
        lambda app: app.state.history.draft == example_with("scat").draft,
    ),
    "a command": (["ctrl+p", *"exam", "enter", *"shift"], lambda app: values_of(app) == ["shift"]),
    "closed": (["x", "escape", "L", "escape", "f1", "f1", "2"], lambda app: app.pane.area == "plan"),
    "a line": (
        ["3", "i", "ctrl+u", *"pmax", "enter"],
        lambda app: app.state.resolved.draft.collective == CollectiveFields("pmax"),
    ),
}


def example_with(words):
    return next(each for each in examples() if words in f"{each.title} {each.look}".lower())


def values_of(app):
    return [field.value for field in app.screen.query(Input)]


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(("keys", "came_to_be"), [*AHEAD.values()], ids=AHEAD)
def test_keys_typed_ahead_of_a_dialog_reach_it(keys, came_to_be):
    async def script(pilot):
        type_ahead(pilot.app, keys)
        await until(pilot, lambda: came_to_be(pilot.app))

    drive(script)


def test_of_more_keys_than_one_types_ahead_those_for_a_screen_that_has_gone_are_dropped():
    async def script(pilot):
        type_ahead(pilot.app, ["x", *"z" * (MOST_AHEAD + 20)])
        await until(pilot, lambda: values_of(pilot.app) == ["z" * (MOST_AHEAD + 1)])

    drive(script)


def test_what_was_typed_before_the_key_that_quits_does_not_hold_it_up_for_long():
    async def script(pilot):
        app = pilot.app
        app._typing_ends = 0.0  # as long after it was pressed
        type_ahead(app, ["2", "x", "ctrl+q"])
        await until(pilot, lambda: app._exit)
        assert (app.pane.area, len(app.screen_stack)) == ("layout", 1)

    drive(script)


def click(app):
    """On the tab of another screen."""
    for kind in (events.MouseDown, events.MouseUp):
        app.post_message(kind(None, 60, 0, 0, 0, 1, False, False, False, 60, 0))


def test_a_click_is_meant_on_the_screen_that_was_seen():
    async def script(pilot):
        app = pilot.app
        type_ahead(app, ["x"])
        click(app)
        await pilot.pause()
        assert (app.pane.area, len(app.screen_stack)) == ("layout", 2)
        await pilot.press("escape")
        click(app)
        await pilot.pause()
        assert app.pane.area != "layout"

    drive(script)


def test_a_double_click_opens_one_example():
    async def script(pilot):
        await pilot.press("x")
        listed = pilot.app.screen.query_one(OptionList)
        for _ in range(2):
            listed.post_message(OptionList.OptionSelected(listed, listed.get_option_at_index(1), 1))
        await pilot.pause()
        assert len(pilot.app.screen_stack) == 1
        pilot.app.action_undo()
        assert pilot.app.state.history.draft == ProblemForm()

    drive(script)


@pytest.mark.parametrize("keys", ["x", "enter"])
def test_ctrl_q_quits_from_everywhere(keys):
    async def script(pilot):
        await pilot.press(keys, "ctrl+q")
        assert pilot.app._exit

    drive(script)


def test_a_dialog_that_another_covers_stays():
    async def script(pilot):
        await pilot.press("x")
        covered = pilot.app.screen
        pilot.app.action_help()
        covered.dismiss()
        await pilot.pause()
        assert len(pilot.app.screen_stack) == 3
        await pilot.press("escape", "escape")
        assert len(pilot.app.screen_stack) == 1

    drive(script)


@pytest.mark.parametrize(
    "window",
    [OpenDialog, LineEntry, CommandDialog, TranslationDialog],
)
def test_every_command_of_a_window_that_o_opens_runs_from_its_palette(window):
    for command in (*window.commands, *getattr(window, "taken", ())):
        assert hasattr(window, f"action_{command.action}") or command.name == "app.help", command
        assert command.keys
        assert command.help
