"""The step screen, by its keys."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from shardviz.forms.enter import enter
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.hardware.timelines import NotCompared
from shardviz.hardware.topology import Switch
from shardviz.stepping import collective_run
from shardviz.stepping.collective_run import compare_with_jax, prepare_run
from shardviz.tui.dialogs.tables import AlgorithmsDialog
from shardviz.tui.step.page import Rounds
from shardviz.tui.step.pane import StepPane
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

KEYS = {" ": "space", "/": "slash"}
"""Textual's names of what is typed."""
SMALL = ProblemForm(sizes="b=8,d=16,f=8")
HOLD_S = 60.0
"""How long an answer is held back at most."""
TWO_STEPS = ProblemForm(specs=("_Y", "XY", "X_"), sizes="b=8,d=16,f=8")
"""A plan of an all-gather, an einsum and more."""


def play(keys, check, draft=SMALL, size=SIZES["wide"], worker=None):
    """Press keys on the step screen, then look at the pane."""

    async def script(pilot):
        pane = pilot.app.pane
        assert isinstance(pane, StepPane)
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press(*keys)
        await until(pilot, lambda: is_ready(pane))
        await pilot.pause()
        check(pane)

    drive(script, size, draft, "step", worker)


def is_ready(pane) -> bool:
    """Whether all is loaded and worked out."""
    return pane.page.prepared is not None or pane.chosen.question is None


def round_of(pane) -> str:
    return pane.query_one("#step-head").canvas.line(1, 0, 200).plain


@pytest.mark.parametrize("name", one_in(2, ["small", "wide"]))
def test_a_round_of_the_plan(name):
    play(["right"] * 2, lambda pane: check_snapshot(f"step-{name}", text_of(pane.app)), size=SIZES[name])


def test_the_last_round_says_what_everyone_has():
    def check(pane):
        assert "AFTER  bf16[4,8] per device   FINAL RESULT  bf16[8,8] P('X', None)" in text_of(pane.app)
        assert pane.player.number == pane.player.rounds == 4

    play(["end"], check)


def test_the_timer_runs_at_the_speed_until_paused():
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await pilot.press("plus", "space")
        assert "2/s" in round_of(pane)
        await until(pilot, lambda: pane.player.number > 1)
        await pilot.press("space")
        number = pane.player.number
        await pilot.press("minus")
        assert (pane.player.number, pane.player.speed) == (number, 1.0)
        assert pane.page.rounds.auto_refresh is None

    draft = ProblemForm(mesh="X=64", specs=("__",) * 3, collective=CollectiveFields("psum"))
    drive(script, draft=draft, screen="step")


def test_resizing_while_it_plays_keeps_the_round(monkeypatch):
    monkeypatch.setattr("shardviz.tui.step.page.SPEEDS", (0.001, 0.5, 1.0))  # slower than any machine

    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press("right", "minus", "minus", "space")
        for size in SIZES.values():
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert pane.player.playing
            assert pane.player.number == 1
            assert "round 1 of 4" in text_of(pilot.app)

    drive(script, draft=SMALL, screen="step")


def test_another_algorithm_is_at_the_same_part_of_the_way():
    def check(pane):
        assert pane.page.prepared.run.schedule.algorithm == "ring"
        assert (pane.player.number, pane.player.rounds) == (3, 6)
        assert pane.command_line().endswith("--step 2 --algorithm ring")
        pane.action_algorithm(1)
        assert pane.page.prepared.run.schedule.algorithm == "bidirectional-ring"

    play(["right"] * 2 + ["A"], check)


def test_the_algorithm_of_a_collective_of_its_own_belongs_to_the_problem():
    def check(pane):
        assert pane.state.history.draft.collective.algorithm == "bidirectional-ring"
        assert (pane.player.number, pane.player.rounds) == (1, 2)
        pane.app.action_undo()
        assert pane.state.history.draft.collective.algorithm == ""
        assert pane.page.prepared.run.schedule.algorithm == "ring"

    draft = ProblemForm(
        mesh="i=4", specs=("__",) * 3, collective=CollectiveFields("all_gather", data="3,9,5,2")
    )
    play(["right", "right", "a"], check, draft)


def test_collectives_of_the_plan_follow_one_another():
    def check(pane):
        first, *others = pane.chosen.collectives
        assert others
        assert pane.chosen.step == others[0]
        pane.action_collective(-1)
        assert pane.chosen.step == first

    play(["n"], check, TWO_STEPS)


def test_the_round_stays_when_sizes_change_and_goes_with_the_collective():
    def check(pane):
        pane.state.edit(replace(SMALL, sizes="b=16,d=16,f=16"))
        assert pane.player.number == 3
        pane.state.edit(replace(SMALL, specs=("XY", "Y_", "XY")))
        assert pane.page.prepared.run.operation.name == "psum_scatter"
        assert pane.player.number == 0

    play(["right"] * 3, check)


def test_a_plan_without_collectives_shows_what_devices_hold():
    def check(pane):
        assert "step 1 of 1" in text_of(pane.app)
        assert pane.command_line().startswith("shardviz explain ")

    play(["space", "right", "a", "n", "l", "g", "v", "end"], check, ProblemForm(specs=("X_", "__", "X_")))


def test_links_are_a_ring_a_line_or_a_switch():
    def check(pane):
        found = []
        for _ in range(4):
            found.append(str(pane.page.prepared.run.links.topology))
            pane.action_links()
        assert found == ["ring of 4", "line of 4", "switch with 4", "ring of 4"]

    play([], check)


LINKS_OF = {
    "none": ("45 GB/s per v5e link", "ring of 4 assumed"),
    "v5p:2x2x2": ("90 GB/s per v5p link", "ring of 4 on v5p:2x2x2"),
    "h100:8": ("450 GB/s per h100 link", "switch with 4 on h100:8"),
}


def test_the_times_are_those_of_the_targets_links_also_of_another():
    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: is_ready(app.pane))
        for target, said in LINKS_OF.items():
            app.pane.state.edit(replace(SMALL, targets=target))
            await until(pilot, lambda said=said: all(words in text_of(app) for words in said))

    drive(script, SIZES["wide"], SMALL, "step")


def test_links_that_were_chosen_stay_for_other_collectives():
    def check(pane):
        found = []
        for way in ("", "n", "i"):
            if way == "n":
                pane.action_collective(1)
            if way == "i":
                pane.state.edit(replace(TWO_STEPS, collective=CollectiveFields("psum", axis="X")))
            found.append(
                (pane.page.prepared.run.operation.name, pane.page.prepared.run.links.topology.__class__)
            )
        assert [kind for _, kind in found] == [Switch] * 3
        assert len({name for name, _ in found}) > 1

    play(["l", "l"], check, TWO_STEPS)


def test_groups_are_shown_one_at_a_time():
    def check(pane):
        text = text_of(pane.app)
        assert "┌ 4  X1 Y0" in text
        assert "group 2 of 2" in text
        pane.action_group(-1)
        assert pane.page.group == 0

    play(["g"], check)


def test_a_large_picture_scrolls():
    def check(pane):
        view = pane.query_one(Rounds)
        assert view.scroll_offset.x == 16
        assert view.scroll_offset.y > 0
        pane.action_pan(-1)
        assert view.scroll_target_x == 0

    draft = ProblemForm(mesh="X=8,Y=64", collective=CollectiveFields("all_gather"))
    play(["greater_than_sign", "pagedown"], check, draft)


def test_65536_devices_open_and_step():
    def check(pane):
        assert round_of(pane).startswith("round 1 of 1,020")
        assert "too many chunks to track" in text_of(pane.app)
        assert "┌ 256  X1 Y0" in text_of(pane.app)

    play(
        ["right"],
        check,
        ProblemForm(mesh="X=256,Y=256", specs=("__",) * 3, collective=CollectiveFields("psum")),
    )


def test_what_takes_long_is_worked_out_beside_the_screen(monkeypatch):
    gate = Event()

    def later(*arguments):
        gate.wait(60)
        return prepare_run(*arguments)

    monkeypatch.setattr("shardviz.stepping.collective_run.prepare_run", later)

    async def script(pilot):
        pane = pilot.app.pane
        assert pane.page.prepared is None
        assert "Computing the sends" in text_of(pilot.app)
        gate.set()
        await until(pilot, lambda: pane.page.prepared is not None)
        await pilot.pause()
        assert "round 0 of 1,022" in text_of(pilot.app)

    draft = ProblemForm(mesh="X=512", specs=("__",) * 3, collective=CollectiveFields("psum"))
    drive(script, draft=draft, screen="step")


def test_any_other_collective_is_played():
    async def script(pilot):
        app, pane = pilot.app, pilot.app.pane
        pane.query_one(Rounds).focus()
        await pilot.press("i")
        assert app.focused.value == "all_gather"
        text = text_of(app)
        assert "Another collective" in text
        assert "ragged_all_to_all" in text
        await pilot.press("ctrl+u", *"all_to_all --axis Y", "enter")
        assert pane.page.prepared.run.operation.name == "all_to_all"
        assert pane.command_line() == "shardviz step all_to_all --axis Y"
        assert "columns: destination or source" in text_of(app)
        await pilot.press("i")
        assert app.focused.value == "all_to_all --axis Y"
        await pilot.press("escape", "n", "O")
        assert pane.page.prepared.run.operation.name == "psum"
        app.action_undo()
        assert pane.page.prepared.run.operation.name == "all_to_all"

    drive(script, draft=SMALL, screen="step")


NONSENSE = (
    ("psum --wrong", "there is no option '--wrong' here"),
    ("psum [bold] x", "step takes one operation"),
    ("psum --axis", "axis has no value"),
    ("psum --axis Q", "'q'"),
    ("psum --data 1,[/],3", "'1,[/],3'"),
    ("psum --spec [/]", "ound '/'"),
    ("psum --algorithm rong", "did you mean ring?"),
    ("nothing", "operation: unknown operation 'nothing'"),
)


def test_a_line_that_cannot_be_read_stays_and_says_why():
    async def script(pilot):
        app, pane = pilot.app, pilot.app.pane
        pane.query_one(Rounds).focus()
        before = pane.page.prepared
        await pilot.press("i")
        for line, said in NONSENSE:
            app.focused.value = line
            await pilot.press("enter")
            assert said in "".join(str(each.message) for each in app._notifications).lower()
            assert app.focused.value == line
        assert pane.page.prepared is before
        assert app.state.history.draft == SMALL
        await pilot.press("escape")
        assert "round 0 of 4" in text_of(app)

    drive(script, draft=SMALL, screen="step")


def test_jax_confirms_every_value(worker, monkeypatch):
    seen = Event()

    def held(*of):
        assert seen.wait(HOLD_S)
        return compare_with_jax(*of)

    monkeypatch.setattr(collective_run, "compare_with_jax", held)

    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: "… JAX verifies" in text_of(app))
        seen.set()
        await until(pilot, lambda: "every value equal" in text_of(app))

    drive(script, draft=SMALL, screen="step", worker=worker)


def test_lines_that_wrapped_on_the_way_to_another_size_leave_no_blank_ones():
    async def script(pilot):
        parts = [pilot.app.pane.query_one(f"#step-{area}") for area in ("foot", "head")]
        await until(pilot, lambda: is_ready(pilot.app.pane))
        for size in (SIZES["small"], SIZES["usual"], SIZES["wide"], SIZES["usual"]):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert all(lines.size.height == lines.canvas.height for lines in parts)

    drive(script, draft=SMALL, screen="step")


def test_what_scrolls_leaves_a_column_for_the_scrollbar():
    def check(pane):
        view = pane.query_one(Rounds)
        assert view.canvas.height > view.size.height
        assert view.canvas.width <= view.size.width

    draft = ProblemForm("X=8", "d,de->e", ("X", "X_", "_"), "d=64,e=64")
    play(["a"] * 4, check, draft, SIZES["usual"])


def test_another_theme_gives_axes_its_colours_at_once():
    async def script(pilot):
        view = pilot.app.pane.query_one(Rounds)
        before = view.canvas.line(0, 0, 40)
        pilot.app.theme = "shardviz-light"
        await pilot.pause()
        after = view.canvas.line(0, 0, 40)
        assert after.plain == before.plain
        assert after.spans != before.spans

    drive(script, draft=SMALL, screen="step")


def test_the_links_are_those_of_the_machine_and_change_with_it():
    def check(pane):
        assert (pane.chosen.links_of, str(pane.chosen.links.topology)) == ("v5e:2x4", "ring of 4")
        pane.state.edit(enter(draft, "machine", "h100:8"))
        assert (pane.chosen.links_of, str(pane.chosen.links.topology)) == ("h100:8", "switch with 4")
        pane.state.edit(enter(draft, "mesh", "X=4,Y=4"))
        assert pane.chosen.links_of == ""

    draft = replace(SMALL, targets="v5e:2x4")
    play([], check, draft)


def test_an_algorithm_is_chosen_from_the_table():
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press("m")
        await until(pilot, lambda: len(getattr(pilot.app.screen, "rows", ())) > 5)
        await pilot.app.workers.wait_for_complete()
        dialog, run = pilot.app.screen, pane.page.prepared.run
        assert isinstance(dialog, AlgorithmsDialog)
        assert [row.value for row in dialog.rows] == [
            *(row.algorithm for row in run.rows if not isinstance(row, NotCompared)),
            *(row.algorithm for row in run.rows if isinstance(row, NotCompared)),
        ]
        assert dialog.chosen.value == "bidirectional-ring"
        text = text_of(pilot.app)
        assert "Algorithms for psum over Y: 64 B on a ring of 4" in text
        assert "rounds" in text
        assert "★" in text
        await pilot.press(*"torus", "enter")
        assert pilot.app.screen is dialog
        assert "✗ " in text_of(pilot.app)
        await pilot.press(
            "backspace", "backspace", "backspace", "backspace", "backspace", *"recursive", "enter"
        )
        await until(pilot, lambda: is_ready(pane))
        assert pane.chosen.question.schedule.algorithm == "recursive-doubling"

    drive(script, draft=SMALL, screen="step")


def test_a_device_is_marked_in_every_view():
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press("right", "d")
        assert pane.state.lens == 0
        await pilot.press("d")
        assert "┌ ▹1◃  X0 Y1" in text_of(pilot.app)
        await pilot.press("v")
        assert "1  X0 Y1◃" in text_of(pilot.app)
        await pilot.press("v", "v", "D", "D")
        assert pane.state.lens == 3
        pane.state.set_lens(6)
        assert "group 2 of 2" in text_of(pilot.app)
        assert "▹6◃  X1 Y2" in text_of(pilot.app)

    drive(script, draft=SMALL, screen="step")


def test_the_group_of_a_device_that_was_marked_elsewhere_is_shown():
    async def script(pilot):
        app = pilot.app
        app.state.set_lens(6)
        await pilot.press("3")
        await until(pilot, lambda: is_ready(app.pane))
        assert "group 2 of 2" in text_of(app)
        assert "▹6◃  X1 Y2" in text_of(app)
        await pilot.press("g", "a")
        assert "group 1 of 2" in text_of(app)
        await pilot.press("1")
        app.state.set_lens(5)
        await pilot.press("3")
        assert "▹5◃  X1 Y1" in text_of(app)

    drive(script, draft=SMALL)


def test_a_click_marks_a_device_or_no_longer():
    async def script(pilot):
        pane = pilot.app.pane
        await until(pilot, lambda: is_ready(pane))
        for expected in (0, None):
            await pilot.click(Rounds, offset=(6, 2))
            assert pane.state.lens == expected
        await pilot.click(Rounds, offset=(30, 20))
        assert pane.state.lens is None

    drive(script, draft=SMALL, screen="step")


def test_a_plan_is_played_step_by_step_and_jax_confirms_it(worker):
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press("v", "v")
        assert pane.command_line().endswith(" --step")
        await pilot.press("left")
        text = text_of(pilot.app)
        assert "step 1 of 2" in text
        assert "╱49 56╱" in text[text.index("AFTER") :]
        assert pane.command_line().endswith(" --step 1")
        assert pane.document()["kind"] == "plan_steps"
        assert pane.state.step_number == 1
        await pilot.press("right")
        assert "98 120" in text_of(pilot.app)
        await until(pilot, lambda: "every value equal" in text_of(pilot.app))
        await pilot.press("n")
        assert pane.page.view == "devices"

    draft = ProblemForm(mesh="X=2,Y=4", specs=("XY", "Y_", "X_"))
    drive(script, draft=draft, screen="step", worker=worker)


def test_the_last_view_is_the_matmul_beside_the_collective():
    async def script(pilot):
        pane = pilot.app.pane
        pane.query_one(Rounds).focus()
        await until(pilot, lambda: is_ready(pane))
        await pilot.press("right", "v")
        text = text_of(pilot.app)
        assert "device 0 multiplies A[b, d:" in text
        assert "without overlap" in text
        assert pane.command_line().endswith(" --step 1 --matmul")
        assert pane.document()["kind"] == "matmul"
        await pilot.press("v")
        assert "step 1 of 2" in text_of(pilot.app)
        await pilot.press("v")
        assert "┌ 0  X0 Y0" in text_of(pilot.app)

    drive(script, draft=ProblemForm(specs=("XY", "__", "X_")), screen="step")


def test_a_collective_without_a_matmul_has_no_such_view():
    draft = ProblemForm(mesh="X=4", collective=CollectiveFields("psum"))

    def check(pane):
        assert pane.page.view == "devices"

    play(["v", "v"], check, draft=draft)
