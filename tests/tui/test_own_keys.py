"""Keys of one's own: read from TOML, refused by name where they clash, and known to the whole application."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from textual.keys import _character_to_key

from shardviz.errors import QuestionError
from shardviz.tui.bars import KeyFooter
from shardviz.tui.own_keys import (
    keys_path,
    read_own_keys,
    table_of,
    textual_name,
)
from shardviz.tui.own_keys_check import check_own_keys, use_own_keys
from shardviz.tui.registry import AREAS, COMMANDS
from tests.tui.conftest import drive, text_of

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
    everything = {table_of(area): {} for area in AREAS}
    for command in COMMANDS:
        if command.area != "lesson":
            everything[table_of(command.area)][command.setting] = command.keys
    check_own_keys(everything, [each for each in COMMANDS if each.area != "lesson"], AREAS, Path("keys.toml"))


REFUSED = [
    ("[step", "is not TOML"),
    ("quit = 'Q'", "'quit' stands in no table"),
    ("[step]\nplay = 3", "[step] play is not a key"),
    ("[step]\nplay = 'ctrl+enter'", "'ctrl+enter' is not a key that every terminal sends"),
    ("[step]\nplay = 'ctrl+q'", "'ctrl+q' is not a key"),
    ("[steps]\nplay = 'P'", "there is no table [steps]"),
    ("[step]\nplai = 'P'", "[step] has no command 'plai'"),
    ("[step]\nplay = 'q'", "q is the key of [everywhere] quit and of [step] play"),
    ("[everywhere]\nquit = 'r'", "r is the key of [everywhere] quit and of [plan] ask-now"),
    ("[step]\nplay = 'g'", "g is the key of [step] play and of [step] next-group"),
    ("[plan]\nplay = 'K'\nask-now = ['K']", "K is the key of [plan] play and of [plan] ask-now"),
]


def commands_with(chosen):
    """The registry's commands with other keys."""
    return [
        replace(each, keys=tuple(map(textual_name, chosen[table_of(each.area)][each.setting])))
        if each.setting in chosen.get(table_of(each.area), {})
        else each
        for each in COMMANDS
    ]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_cannot_be_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "keys.toml"
    path.write_text(text)

    def read_and_check():
        chosen = read_own_keys(path)
        check_own_keys(chosen, commands_with(chosen), AREAS, path)

    with pytest.raises(QuestionError) as error:
        read_and_check()
    assert message in error.value.message
    assert error.value.hint


def test_a_usual_key_that_a_lesson_takes_may_have_another_beside_it():
    """``h`` is a lesson's hint too, while one is open."""
    chosen = {"everywhere": {"history": ("h", "f3")}}
    check_own_keys(chosen, commands_with(chosen), AREAS, Path("keys.toml"))


def test_the_example_of_the_documentation_is_not_refused(tmp_path):
    page = (ROOT / "docs" / "application.md").read_text(encoding="utf-8")
    path = tmp_path / "keys.toml"
    path.write_text(page.split("```toml\n")[1].split("```")[0])
    chosen = read_own_keys(path)
    assert chosen
    check_own_keys(chosen, commands_with(chosen), AREAS, path)


SCRIPT = """
from shardviz.tui.own_keys_check import use_own_keys
use_own_keys()
from tests.tui.conftest import drive, text_of
from textual.widgets import OptionList

async def script(pilot):
    app = pilot.app
    await pilot.press("X", "J")
    assert app.pane.area == "plan"
    await pilot.press("q", "ctrl+y")
    assert app.is_running
    await pilot.press("question_mark", "end")
    await pilot.pause(0.3)
    assert "Q  Quit" in text_of(app), text_of(app)
    await pilot.press("escape", "Q")
    await pilot.pause()
    print("left", app._exit)

drive(script)
"""


def ran_with(home, script):
    """What a script prints in a process of its own, where the configuration directory is `home`."""
    environment = os.environ | {"XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_application_has_them_everywhere(tmp_path):
    (tmp_path / "shardviz").mkdir()
    (tmp_path / "shardviz" / "keys.toml").write_text(
        "[everywhere]\nquit = 'Q'\nplan = ['X', 'f3']\n[lesson]\nleave-the-lesson = 'D'\n"
    )
    assert ran_with(tmp_path, SCRIPT) == "left True\n"


WITH_USUAL_KEYS = """
from shardviz.tui.own_keys_check import use_own_keys
refused = use_own_keys()
from tests.tui.conftest import drive, text_of, until
from shardviz.tui.bars import RefusedKeys

async def script(pilot):
    app = pilot.app
    said = " ".join(text_of(app).split())
    assert "r is the key of [everywhere] quit and of [plan] ask-now. All keys are the usual ones" in said
    await pilot.press("2")
    assert app.pane.area == "plan"
    app.notify("something else")
    await pilot.pause()
    assert app.query(RefusedKeys)
    await pilot.press("escape")
    await pilot.pause()
    assert not app.query(RefusedKeys)
    await pilot.press("q")
    await pilot.pause()
    print("left", app._exit)

drive(script, refused=refused)
"""


def test_a_refused_file_leaves_the_usual_keys_and_a_line_that_stays(tmp_path):
    (tmp_path / "shardviz").mkdir()
    (tmp_path / "shardviz" / "keys.toml").write_text("[everywhere]\nquit = 'r'\nplan = 'X'\n")
    assert ran_with(tmp_path, WITH_USUAL_KEYS) == "left True\n"


def test_a_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert use_own_keys() is None
    keys_path().mkdir(parents=True)
    assert "keys.toml' cannot be read" in use_own_keys().message


def test_a_command_whose_keys_were_taken_away_is_not_in_the_footer():
    async def script(pilot):
        pilot.app.query_one(KeyFooter).show_commands([replace(COMMANDS[0], keys=(), shown=""), COMMANDS[1]])
        await pilot.pause()
        assert "help" not in text_of(pilot.app)

    drive(script)
