"""The checklist of a good terminal tool, row by row: each names the tests that show it, or is tested here."""

from __future__ import annotations

import ast
import re
import shlex
from itertools import product
from pathlib import Path

from shardviz.cli.group import COMMANDS as COMMAND_LINE
from shardviz.cli.group import command_named, run
from shardviz.forms.form import SCREENS, ProblemForm
from shardviz.tui.dialogs.export import strips_of
from shardviz.tui.registry import AREAS, COMMANDS, NAMED, textual_name
from tests.tui.conftest import SIZES, drive, text_of, until

ROOT = Path(__file__).parents[2]
HERE = "tests/tui/test_checklist.py"

CHECKLIST = {
    "one-shot twin of every view": (
        f"{HERE}::test_every_screen_has_a_command_that_prints_the_same",
        "tests/tui/test_compiler_screen.py::test_the_command_line_shows_the_same",
        "tests/tui/test_step_pane.py::test_the_last_view_is_the_matmul_beside_the_collective",
    ),
    "no application without a terminal": ("tests/cli/test_tui.py::test_without_a_terminal_there_is_help",),
    "data on stdout, narration on stderr": (
        "tests/cli/test_bad_input.py::test_errors_go_to_stderr_with_json_too",
        "tests/cli/test_streams.py::test_words_that_nobody_can_hear_change_nothing",
    ),
    "exit codes": (
        "tests/cli/test_bad_input.py::test_one_sentence_and_one_hint",
        "tests/cli/test_process.py::test_a_killed_compiler_is_one_clear_line",
        "tests/cli/test_diff.py::test_limits",
    ),
    "--json everywhere": (
        f"{HERE}::test_every_command_with_an_answer_has_json",
        "tests/cli/test_schema.py::test_what_a_command_prints_keeps_to_the_schema_that_is_printed",
    ),
    "--plain": (
        "tests/cli/test_help.py::test_every_command_that_prints_text_prints_it_plainly",
        "tests/cli/test_streams.py::test_plain_is_ascii_on_a_terminal_that_has_more",
    ),
    "NO_COLOR, --color, --width": (
        "tests/cli/test_output.py::test_color_system",
        "tests/cli/test_output.py::test_the_width_asked_for_wins",
        "tests/cli/test_process.py::test_colours_in_a_pipe",
    ),
    "help with two runnable examples": (
        "tests/cli/test_help.py::test_every_command_has_two_examples_at_the_top_of_its_help",
        "tests/cli/test_help.py::test_example_runs",
    ),
    "suggestions for typos": ("tests/cli/test_bad_input.py::test_one_sentence_and_one_hint",),
    "error and hint, no traceback": ("tests/cli/test_bad_input.py::test_one_sentence_and_one_hint",),
    "pattern and shapes in errors": ("tests/cli/test_bad_input.py::test_one_sentence_and_one_hint",),
    "info --json": ("tests/cli/test_commands.py::test_info",),
    "--help without jax or textual": (
        "tests/test_imports.py::test_help_and_schemas_load_no_room_that_answers",
    ),
    "first frame before jax": (
        "tests/test_imports.py::test_the_first_screen_loads_textual_and_no_other_screen",
        "tests/test_imports.py::test_the_compilers_are_not_loaded_here_even_when_they_are_asked",
    ),
    "completion": ("tests/cli/test_completion.py::test_a_shell_loads_its_script_and_completes",),
    "? first in the footer": (
        "tests/tui/test_palette.py::test_the_footer_shows_help_first_and_whole_words_and_a_click_presses_the_key",
    ),
    "the palette lists every command with its key": (
        "tests/tui/test_palette.py::test_the_palette_finds_every_command_by_its_title_and_runs_it_on_its_screen",
    ),
    "one registry": (
        "tests/test_docs.py::test_every_key_is_on_one_page",
        "tests/tui/test_dialogs.py::test_help_has_every_key_of_the_screen_and_scrolls",
    ),
    "the footer follows the mode and cuts nothing important": (
        "tests/tui/test_problem.py::test_the_footer_tells_the_keys_that_work_now_and_help_those_of_the_problem_first",
        "tests/tui/test_palette.py::test_the_footer_shows_help_first_and_whole_words_and_a_click_presses_the_key",
        "tests/tui/test_palette.py::test_the_words_of_a_screen_stand_before_those_that_are_everywhere",
    ),
    "F1 for the part with the keys": (f"{HERE}::test_f1_is_about_the_part_that_has_the_keys",),
    "plain keys only": (f"{HERE}::test_every_key_is_one_that_every_terminal_sends",),
    "keys can be remapped": (
        "tests/tui/test_own_keys.py::test_the_application_has_them_everywhere_and_again_when_the_file_changes",
        "tests/tui/test_own_keys.py::test_what_cannot_be_is_refused_by_name",
        "tests/tui/test_own_keys.py::test_a_refused_file_leaves_the_usual_keys_and_says_why",
    ),
    "the keyboard alone": (
        "tests/tui/test_app.py::test_from_start_to_the_compiled_program_in_under_25_keys",
        "tests/tui/test_app.py::test_every_command_runs_wherever_one_is",
    ),
    "numbers jump": ("tests/tui/test_workspace.py::test_a_number_goes_to_its_pane_and_the_footer_follows",),
    "a cursor in reverse video": (f"{HERE}::test_without_colours_the_cursor_is_in_reverse_video",),
    "colour, id and glyph": (
        "tests/render/test_palette.py::test_glyphs",
        "tests/tui/test_themes.py::test_without_colours_pictures_and_theme_have_none",
    ),
    "256 and 16 colours, dark and light": (
        "tests/tui/test_themes.py::test_axes_and_shards_have_a_colour_each",
        "tests/tui/test_themes.py::test_axes_and_words_read_on_their_background",
        "tests/tui/test_themes.py::test_sixteen_colours_are_the_terminals_own",
    ),
    "breakpoints": (
        f"{HERE}::test_a_wider_window_has_more_side_by_side",
        "tests/tui/test_workspace.py::test_from_140_columns_on_three_panes_stand_together",
    ),
    "40×15, 80×24, 120×36, 200×60": (f"{HERE}::test_every_screen_fits_at_every_size",),
    "too small says so": (
        "tests/tui/test_problem.py::test_a_window_that_is_too_small_says_so_until_it_is_larger",
    ),
    "step forward, back, home, end, play, speed": (
        "tests/tui/test_player.py::test_playing_stops_at_the_last_round_and_starts_over",
        "tests/tui/test_player.py::test_stepping_pauses_and_stays_among_the_rounds",
        "tests/tui/test_player.py::test_speeds_double_and_end",
        "tests/tui/test_app.py::test_every_command_runs_wherever_one_is",
    ),
    "undo and reset": (
        "tests/tui/test_app.py::test_undo_and_redo_go_on_after_a_restart",
        "tests/tui/test_lesson.py::test_a_whole_lesson_by_keyboard",
    ),
    "busy text at once, which can be cancelled": (
        "tests/tui/test_step_pane.py::test_what_takes_long_is_worked_out_beside_the_screen",
        "tests/tui/test_dialogs.py::test_escape_stops_the_compilers_and_says_so",
        "tests/tui/test_compiler_screen.py::test_what_was_cancelled_says_how_to_ask",
    ),
    "code": ("tests/tui/test_dialogs.py::test_code_is_copied_and_saved",),
    "export": ("tests/tui/test_dialogs.py::test_every_form_has_its_text",),
    "share": (
        "tests/tui/test_dialogs.py::test_what_is_on_screen_is_copied_as_a_string_that_opens_it",
        "tests/forms/test_share.py::test_a_string_of_this_version_is_read_for_ever",
    ),
    "state atomic and versioned": (
        "tests/forms/test_state_file.py::test_a_crash_while_writing_leaves_the_last_session",
        "tests/forms/test_state_file.py::test_a_file_of_another_version_stays",
    ),
    "large meshes at constant cost": (
        "tests/tui/test_layout_pane.py::test_65536_devices_scroll",
        "tests/tui/test_step_pane.py::test_65536_devices_open_and_step",
    ),
    "a switch for animation": (
        "tests/tui/test_plan_pane.py::test_who_waits_sees_for_how_long_and_nothing_turns_where_nothing_may",
    ),
    "browser": ("tests/serve/test_browser.py::test_ten_visitors_at_once_and_a_key_changes_the_picture",),
}


def test_every_row_of_the_checklist_is_shown_by_tests_that_are_there():
    assert len(CHECKLIST) == 40
    for row, tests in CHECKLIST.items():
        assert tests, row
        for each in tests:
            file, _, name = each.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            named = {part.name for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)}
            assert name in named, f"{row}: {each}"


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
