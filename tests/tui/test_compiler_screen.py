"""The compiler screen on answers that are written down."""

from __future__ import annotations

import pytest

from shardviz.forms.form import ProblemForm
from tests.conftest import one_in
from tests.tui.conftest import SIZES, Mute, check_snapshot, drive, text_of, until
from tests.tui.recorded import PROGRAM, REFUSAL, Recorded

DRAFT = ProblemForm(targets="shardy,cpu", sizes="b=8,d=2048,f=8192")


def play(script, size=SIZES["wide"], targets="shardy,cpu", worker=None, ready="cpu ✓"):
    """Run a script on the screen, its page in focus, once it shows `ready`."""

    async def session(pilot):
        pilot.app.pane.box.view.focus()
        await until(pilot, lambda: ready in text_of(pilot.app) and pilot.app.pane.box.is_program)
        await press(pilot)
        await script(pilot)

    drive(session, size, ProblemForm(targets=targets, sizes=DRAFT.sizes), "compiler", worker or Recorded())


def cursor_line(pilot):
    """What stands where the cursor is, without its mark."""
    _strip, *_, line = [line for line in text_of(pilot.app).splitlines() if "❯" in line]
    return line.partition("❯")[2].strip(" ▸┌│└")


def pane_text(pilot):
    """What the pane alone shows."""
    region = pilot.app.pane.region
    lines = text_of(pilot.app).splitlines()[region.y : region.bottom]
    return "\n".join(line[region.x : region.right].rstrip() for line in lines)


async def press(pilot, *keys):
    await pilot.press(*keys)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("name", one_in(2, ["small", "wide"]))
def test_it_looks_like_this(name):
    async def script(pilot):
        check_snapshot(f"compiler-program-{name}", pane_text(pilot))
        await press(pilot, "left")
        await until(pilot, lambda: "cpu_after_optimizations" in text_of(pilot.app))
        await press(pilot, "left", "d")
        await until(pilot, lambda: "+++" in text_of(pilot.app) or name == "small")
        check_snapshot(f"compiler-passes-{name}", pane_text(pilot))

    play(script, SIZES[name])


def test_from_collective_to_collective():
    async def script(pilot):
        assert cursor_line(pilot).startswith("all-gather-start")
        assert "under 1 matmul and 1 other instruction, ~8,986 cycles" in text_of(pilot.app)
        assert "from model.py:12" in text_of(pilot.app)
        await press(pilot, "j")
        assert cursor_line(pilot).startswith("collective-permute-start")
        await press(pilot, "j", "j", "j")
        assert cursor_line(pilot).startswith("all-reduce.1")
        assert "collective 3 of 3" in text_of(pilot.app)
        await press(pilot, "k")
        assert cursor_line(pilot).startswith("collective-permute-start")

    play(script)


def test_the_cursor_moves_and_the_line_is_told():
    async def script(pilot):
        await press(pilot, "down", "down")
        assert "fusion.1 = bf16[512,1024] fusion: convolution(acts, w2)" in text_of(pilot.app)
        await press(pilot, "up", "end")
        assert "line 19 of 19" in text_of(pilot.app)
        await press(pilot, "home", "pagedown", "pageup", "up")
        assert "line 1 of 19" in text_of(pilot.app)

    play(script)


def test_a_window_that_changes_its_size_keeps_the_cursor_in_sight():
    async def script(pilot):
        await press(pilot, "j", "j")
        for size in SIZES.values():
            await pilot.resize_terminal(*size)
            await press(pilot)
            assert cursor_line(pilot).startswith("all-reduce.1")
            assert max(map(len, pane_text(pilot).splitlines())) <= size[0]

    play(script)


def test_all_of_the_text_with_the_cursor_on_the_same_instruction():
    async def script(pilot):
        await press(pilot, "j", "f")
        assert cursor_line(pilot).startswith("%collective-permute-start = (bf16[512,1024]{1,0:T(8,128)(2,1)}")
        assert f"of {len(PROGRAM.splitlines())}" in text_of(pilot.app)
        await press(pilot, "greater_than_sign")
        assert "%collective-permute-start" not in cursor_line(pilot)
        await press(pilot, "less_than_sign", "k", "f")
        assert cursor_line(pilot).startswith("all-gather-start")
        assert pilot.app.pane.program_text() == PROGRAM

    play(script)


def test_search_while_one_types():
    async def script(pilot):
        await press(pilot, "slash", *"FUSION")
        await until(pilot, lambda: "1 of 3" in text_of(pilot.app))
        assert cursor_line(pilot).startswith("fusion.1")
        assert sum("•" in line for line in text_of(pilot.app).splitlines()) == 2
        assert text_of(pilot.app).splitlines()[-1] == "enter next  ↑ previous  esc close"
        await press(pilot, "enter", "down")
        assert "3 of 3" in text_of(pilot.app)
        assert cursor_line(pilot).startswith("start = ")
        await press(pilot, "up")
        assert cursor_line(pilot).startswith("fusion.2")
        await press(pilot, *"[{U_Y}]")
        await until(
            pilot, lambda: "FUSION[{U_Y}]" in text_of(pilot.app) and "not there" in text_of(pilot.app)
        )
        await press(pilot, "escape")
        assert "•" not in text_of(pilot.app)
        assert cursor_line(pilot).startswith("fusion.2")
        await press(pilot, "slash", *"over y")
        await until(pilot, lambda: "2 of 2" in text_of(pilot.app))
        assert cursor_line(pilot).startswith("all-reduce.1")

    play(script)


def test_the_arrows_go_through_all_stages():
    async def script(pilot):
        seen = []
        for _ in range(7):
            await press(pilot, "left")
            await until(pilot, lambda: "1  the program" in text_of(pilot.app))
            seen.append(cursor_line(pilot)[:1])
        assert seen == ["5", "4", "3", "2", "1", "1", "1"]
        assert "bf16[8,2048]  XY" in text_of(pilot.app)
        await press(pilot, "right", "right", "right", "d")
        await until(pilot, lambda: "+%x = f32[4] all-reduce(%y)" in text_of(pilot.app))
        await press(pilot, "d", "right")
        assert "+%x" not in text_of(pilot.app)
        await press(pilot, "right")
        assert pilot.app.pane.box.is_program
        assert cursor_line(pilot).startswith("all-gather-start")

    play(script)


def test_keys_typed_before_the_stages_are_there_count():
    async def script(pilot):
        for _ in range(3):
            pilot.app.pane.action_stage(-1)
        await until(pilot, lambda: "❯ 3" in text_of(pilot.app))
        for _ in range(9):
            pilot.app.pane.action_stage(-1)
        pilot.app.pane.action_stage(1)
        assert cursor_line(pilot)[:1] == "2"

    play(script)


def test_a_stage_whose_compiler_says_nothing_leads_back():
    async def script(pilot):
        await press(pilot, "N", "left")
        await until(pilot, lambda: "Compiling again to record each pass" in text_of(pilot.app))
        await press(pilot, "right")
        assert cursor_line(pilot).startswith("%1 = sdy.all_reduce")

    play(script)


def test_what_shardy_inserted_is_marked():
    async def script(pilot):
        await press(pilot, "N")
        await until(pilot, lambda: pilot.app.pane.box.is_program and "sdy.mesh" in text_of(pilot.app))
        (marked,) = [line for line in text_of(pilot.app).splitlines() if "▸" in line]
        assert '▸     %1 = sdy.all_reduce {"Y"} %0' in marked
        assert marked.endswith("over Y  64 KiB")
        assert "#loc1" not in text_of(pilot.app)
        await press(pilot, "f")
        assert '#loc1 = loc("somewhere")' in text_of(pilot.app)

    play(script)


def test_a_compiler_that_dies_leaves_a_sentence():
    async def script(pilot):
        await press(pilot, "n", "r")
        await until(pilot, lambda: REFUSAL[4:40] in text_of(pilot.app))
        words = " ".join(text_of(pilot.app).split())
        assert "{U_Y}" in words
        assert "Press r to start it anew." in text_of(pilot.app)
        assert "v5e:2x4 ✗" in text_of(pilot.app)
        await press(pilot, "slash", "j", "f", "down")
        assert "Press r to start it anew." in text_of(pilot.app)
        assert pilot.app.pane.program_text() == ""

    play(script, targets="shardy,cpu,v5e:2x4")


def test_what_was_cancelled_says_how_to_ask():
    async def script(pilot):
        await press(pilot, "n", "r")
        await until(pilot, lambda: "asked, " in text_of(pilot.app))
        await press(pilot, "escape")
        await until(pilot, lambda: "h100:8  cancelled; r recompiles" in text_of(pilot.app))

    play(script, targets="shardy,cpu,h100:8")


def test_an_answer_of_the_problem_before_stays_until_there_is_another():
    worker = Recorded()

    async def script(pilot):
        app, ask = pilot.app, worker.submit
        worker.submit = Mute().submit
        app.state.edit(ProblemForm(targets="shardy,cpu", sizes="b=16,d=2048,f=8192"))
        await until(pilot, lambda: "of the previous problem  queued" in text_of(app))
        assert cursor_line(pilot).startswith("all-gather-start")
        worker.submit = ask
        app.action_undo()
        await until(pilot, lambda: "of the previous problem" not in text_of(app))
        assert cursor_line(pilot).startswith("all-gather-start")

    play(script, worker=worker)


def test_the_command_line_shows_the_same():
    async def script(pilot):
        pane = pilot.app.pane
        sizes = "--sizes b=8,d=2048,f=8192"
        asked = f"'bd,df->bf' --specs 'XY,Y_->X_' {sizes} --target cpu"
        assert pane.command_line() == f"shardviz explain {asked} --hlo"
        await press(pilot, "left")
        assert pane.command_line() == f"shardviz passes {asked}"

    play(script)


def test_nobody_is_asked():
    async def session(pilot):
        await until(pilot, lambda: "No targets" in text_of(pilot.app))
        assert text_of(pilot.app).splitlines()[-1].startswith("? help  x examples")
        await press(pilot, "n", "left", "slash", "f", "j", "r")
        assert "No targets" in text_of(pilot.app)

    drive(session, draft=ProblemForm(targets="none"), screen="compiler", worker=Recorded())


def test_targets_answer_the_mouse():
    async def script(pilot):
        pane = pilot.app.pane

        async def click(line, text):
            shown = str(pane.query_one(line).content)
            await pilot.click(line, offset=(shown.index(text), 0))
            await pilot.pause()

        await click("#targets", "shardy")
        assert pane.command_line().count("--target shardy ") == 1
        await click("#targets", "cpu")
        assert "--target cpu" in pane.command_line()

    play(script)
