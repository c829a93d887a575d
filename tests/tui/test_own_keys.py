"""Keys of one's own: read from TOML, refused by name where they clash, and known to the whole application."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from textual.keys import _character_to_key
from textual.widgets import Input

from shardviz.tui.bars import KeyFooter
from shardviz.tui.registry import COMMANDS, keymap, keys_path, textual_name, use_own_keys
from tests.tui.conftest import drive, text_of, until

ROOT = Path(__file__).parents[2]


def test_the_path_is_in_the_configuration_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert keys_path() == tmp_path / "shardviz" / "keys.toml"


def test_characters_have_the_names_that_textual_gives_them():
    for code in range(33, 127):
        assert textual_name(chr(code)) == _character_to_key(chr(code)), chr(code)


def test_every_command_has_a_name_of_its_own_in_its_table():
    names = Counter((command.area, command.setting) for command in COMMANDS)
    assert [name for name, number in names.items() if number > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", setting) for _, setting in names)


def test_the_usual_keys_do_not_clash():
    """Those of a lesson take the place of others: it has the keys first."""
    of_others = [command for command in COMMANDS if command.area != "lesson"]
    for one, other in combinations(of_others, 2):
        if one.area == other.area or "app" in (one.area, other.area):
            assert not set(one.usual) & set(other.usual), (one.id, other.id)


@pytest.fixture
def path(tmp_path):
    """A file of keys; after the test, all keys are the usual ones."""
    yield tmp_path / "keys.toml"
    use_own_keys(tmp_path / "none")


REFUSED = [
    ("[step", "is not TOML"),
    ("quit = 'Q'", "'quit' is outside any table"),
    ("[step]\nplay = 3", "[step] play is not a key"),
    ("[step]\nplay = 'ctrl+enter'", "'ctrl+enter' is not a key that every terminal sends"),
    ("[step]\nplay = 'ctrl+q'", "'ctrl+q' is not a key"),
    ("[steps]\nplay = 'P'", "unknown table [steps]"),
    ("[step]\nplai = 'P'", "[step] has no command 'plai'"),
    ("[step]\nplay = 'q'", "q is the key of [everywhere] quit and of [step] play"),
    ("[everywhere]\nquit = 'r'", "r is the key of [everywhere] quit and of [plan] recompile"),
    ("[step]\nplay = 'g'", "g is the key of [step] play and of [step] next-group"),
    ("[plan]\nplay = 'K'\nrecompile = ['K']", "K is the key of [plan] play and of [plan] recompile"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_cannot_be_is_refused_by_name(path, text, message):
    path.write_text(text)
    error = use_own_keys(path)
    assert message in error.message
    assert error.hint
    assert all(command.keys == command.usual for command in COMMANDS)


def test_a_usual_key_that_a_lesson_takes_may_have_another_beside_it(path):
    """``h`` is a lesson's hint too, while one is open."""
    path.write_text("[everywhere]\nhistory = ['h', 'f3']")
    assert use_own_keys(path) is None


def test_the_example_of_the_documentation_is_not_refused(path):
    page = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    path.write_text(page.split("```toml\n")[1].split("```")[0])
    assert use_own_keys(path) is None
    assert keymap()["everywhere.quit"] == "f10"


def test_the_application_has_them_everywhere_and_again_when_the_file_changes(path):
    path.write_text(
        "[everywhere]\nquit = 'Q'\nplan = ['X', 'f3']\nundo = []\n[lesson]\nleave-the-lesson = 'D'\n"
    )

    async def script(pilot):
        app = pilot.app
        await pilot.press("X", "J")
        assert app.pane.area == "plan"
        draft = app.state.history.draft
        app.state.edit(replace(draft, dtype="f32"))
        await pilot.press("q", "u", "ctrl+y")
        assert app.is_running
        assert app.state.history.draft != draft
        await pilot.press("question_mark", "end")
        await pilot.pause(0.3)
        assert "Q  Quit" in text_of(app), text_of(app)
        path.write_text("[everywhere]\nquit = 'W'\nrank-shardings = 'f9'\n")
        os.utime(path, (1, 1))
        await until(pilot, lambda: "everywhere.rank-shardings" in app._keymap)
        await pilot.press("escape", "Q", "1")
        assert "W quit" in text_of(app)
        assert app.pane.area == "layout"
        path.unlink()
        await until(pilot, lambda: not app._keymap)
        assert "q quit" in text_of(app)
        await pilot.press("q")
        assert app._exit

    drive(script, keys=path)


def test_commands_without_usual_keys_have_them_and_some_keys_always_work(path):
    path.write_text("[everywhere]\nquit = 'f10'\nlast-session = 'f7'\ntheme = 'f6'\n")

    async def script(pilot):
        app = pilot.app
        await pilot.press("f7")
        assert "No last session is saved." in [said.message for said in app._notifications]
        await pilot.press("enter")
        assert isinstance(app.focused, Input)
        await pilot.press("f6")
        assert app.theme == "shardviz-light"
        await pilot.press("ctrl+q")
        assert app._exit

    drive(script, keys=path)


def test_a_refused_file_leaves_the_usual_keys_and_says_why(path):
    path.write_text("[everywhere]\nquit = 'r'\nplan = 'X'\n")

    async def script(pilot):
        app = pilot.app
        (note,) = app._notifications
        assert "r is the key of [everywhere] quit and of [plan] recompile." in note.message
        assert "The default keys apply." in note.message
        await pilot.press("2")
        assert app.pane.area == "plan"
        await pilot.press("q")
        assert app._exit

    drive(script, keys=path)


def test_a_file_that_cannot_be_read_is_told(path):
    assert use_own_keys(path) is None
    path.mkdir()
    assert "keys.toml' cannot be read" in use_own_keys(path).message
    path.rmdir()
    os.mkfifo(path)
    assert "keys.toml' cannot be read: it is not a file" in use_own_keys(path).message
    path.unlink()
    path.write_text("#" * 100_001)
    assert "keys.toml' has more than 100,000 bytes" in use_own_keys(path).message


def test_a_command_whose_keys_were_taken_away_is_not_in_the_footer():
    async def script(pilot):
        pilot.app.query_one(KeyFooter).commands = [replace(COMMANDS[0], usual=(), shown=""), COMMANDS[1]]
        await pilot.pause()
        assert "help" not in text_of(pilot.app)

    drive(script)
