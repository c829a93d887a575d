"""What a good terminal tool has: every screen at every size, in words of a command, by plain keys."""

from __future__ import annotations

import re
import shlex
from itertools import product
from pathlib import Path

from shardviz.cli.group import COMMANDS as COMMAND_LINE, command_named, run
from shardviz.forms.form import SCREENS, ProblemForm
from shardviz.tui.dialogs.export import strips_of
from shardviz.tui.registry import AREAS, COMMANDS, NAMED, textual_name
from tests.tui.conftest import SIZES, drive, text_of, until

ROOT = Path(__file__).parents[2]
NO_COMPILER = ProblemForm(targets="none")


def test_every_screen_has_a_command_that_prints_the_same(capsys, monkeypatch):
    lines = {}

    async def script(pilot):
        for area in SCREENS:
            await pilot.app.action_show(area)
            if area == "step":
                await until(pilot, lambda: pilot.app.pane.page.prepared)
            lines[area] = pilot.app.pane.command_line()

    drive(script, draft=NO_COMPILER)
    monkeypatch.setenv("COLUMNS", "100")
    for area, line in lines.items():
        capsys.readouterr()
        assert run(shlex.split(line)[1:]) == 0, (area, line)
        assert capsys.readouterr().out, area


WITHOUT_ANSWER = {"export", "launch", "schema", "serve"}
"""A file, what other programs print, a schema, which is JSON, and a server's address."""


def test_every_command_with_an_answer_has_json():
    without = set()
    for name in COMMAND_LINE:
        command = command_named(name)
        if "--json" not in {option for parameter in command.params for option in parameter.opts}:
            without.add(name)
    assert without == WITHOUT_ANSWER


def test_the_page_says_where_every_command_is_in_the_application():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    table = page.partition("| command | answers |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {re.match(r"\w+", each)[0] for row in rows for each in row.split("`")[1::2]} == {*COMMAND_LINE}


def test_f1_is_about_the_part_that_has_the_keys():
    async def script(pilot):
        for number, area in enumerate(SCREENS, 1):
            await pilot.press(str(number), "f1")
            assert f"Help: {AREAS[area]}" in text_of(pilot.app)
            await pilot.press("f1")
        await pilot.press("p", "f1")
        assert "Help: Problem" in text_of(pilot.app)

    drive(script)


CHARACTERS = {textual_name(chr(code)) for code in range(33, 127)}


def test_every_key_is_one_that_every_terminal_sends():
    for command in COMMANDS:
        always = {"ctrl+q", "ctrl+z"}
        assert set(command.keys) <= {*NAMED, *CHARACTERS, *always}, command
        plain = [key for key in command.keys if not key.startswith(("ctrl+", "shift+"))]
        assert plain or not command.keys or command.name in ("suspend_process", "command_palette"), command


def test_without_colours_the_cursor_is_in_reverse_video(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot):
        assert pilot.app.no_color
        segments = (segment for strip in strips_of(pilot.app.screen) for segment in strip)
        marked = [segment.text for segment in segments if segment.style is not None and segment.style.reverse]
        assert "X=2" in "".join(marked)

    drive(script)


def test_a_wider_window_has_more_side_by_side():
    async def script(pilot):
        app = pilot.app
        for width, is_beside in ((79, False), (80, True)):
            await pilot.resize_terminal(width, 36)
            await pilot.pause()
            assert (app.panel.display and app.pane.display) == is_beside, width
        await pilot.press("x")
        for width, is_beside in ((71, False), (100, True), (99, False)):
            await pilot.resize_terminal(width, 36)
            about, choices = (app.screen.query_one(name) for name in ("#about", "OptionList"))
            await until(pilot, lambda b=is_beside, a=about, c=choices: (a.region.x >= c.region.right) == b)

    drive(script)


def test_every_screen_fits_at_every_size():
    async def script(pilot):
        for size, area in product([*SIZES.values(), (200, 60)], SCREENS):
            await pilot.resize_terminal(*size)
            await pilot.app.action_show(area)
            await pilot.pause()
            lines = text_of(pilot.app).split("\n")
            assert len(lines) == size[1]
            assert max(map(len, lines)) <= size[0]
            assert lines[-1].startswith("? help")
            tabs = next(line for line in lines if re.search(r"4 ?Compiler", line))
            assert re.search(r"1 ?Layout.*5 ?Time", tabs)

    drive(script, draft=NO_COMPILER)
