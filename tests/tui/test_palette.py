"""One registry: the palette finds every command, the footer shows what fits, every one is documented."""

from __future__ import annotations

import re

import pytest
from textual.widgets import Input

from shardviz.forms.form import SCREENS
from shardviz.tui.registry import AREAS, COMMANDS
from tests.tui.conftest import SIZES, drive, text_of, until


def test_the_palette_finds_every_command_by_its_title_and_runs_it_on_its_screen():
    async def script(pilot):
        await pilot.press("ctrl+p")
        palette = pilot.app.screen
        offered = [row.value for row in palette.rows]
        assert offered == [command for command in COMMANDS if command.name != "command_palette"]
        for command in offered[::10]:
            palette.query_one(Input).value = command.title
            await pilot.pause()
            assert command in [row.value for row in palette._shown]
        palette.query_one(Input).value = "light"
        await pilot.pause()
        assert [row.value.title for row in palette._shown] == ["Theme"]
        await pilot.press("escape")
        command = next(each for each in COMMANDS if (each.area, each.name) == ("compiler", "diff"))
        await pilot.app.action_run_command(command)
        assert pilot.app.pane.area == "compiler"
        await pilot.press("ctrl+p", *"exam")
        await until(pilot, lambda: "Examples" in text_of(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: "type to find" in text_of(pilot.app))

    drive(script)


@pytest.mark.parametrize("size", [SIZES["small"], (200, 60)], ids=str)
def test_the_footer_shows_help_first_and_whole_words_and_a_click_presses_the_key(size):
    async def script(pilot):
        for area in SCREENS:
            await pilot.app.action_show(area)
            await pilot.pause()
            line = text_of(pilot.app).split("\n")[-1]
            first, *others, last = line.split("  ")
            assert (first, last) == ("? help", "q quit")
            shown = [f"{each.key_text} {each.footer}" for each in pilot.app.commands if each.footer]
            assert others == shown[1 : len(others) + 1]
            assert len(others) >= 2
        await pilot.click("KeyFooter", offset=(1, 0))
        await pilot.pause()
        assert "Help:" in text_of(pilot.app)

    drive(script, size)


def test_every_command_has_an_area_a_title_and_a_sentence():
    for command in COMMANDS:
        assert command.area in AREAS
        assert command.title
        assert re.fullmatch(r"[A-Z/←→↑↓`].*\.", command.help), command.help


def test_the_words_of_a_screen_stand_before_those_that_are_everywhere():
    async def script(pilot):
        await until(pilot, lambda: "view" in text_of(pilot.app).split("\n")[-1])
        line = text_of(pilot.app).split("\n")[-1]
        words = ["space play", "←→ round", "v view", "a algorithm", "m compare", "d device"]
        assert line == "  ".join(["? help", *words, "q quit"])

    drive(script, SIZES["usual"], screen="step")
