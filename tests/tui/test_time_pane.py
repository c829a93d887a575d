"""The time screen on timelines that are written down."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual import events

from shardviz.compiler.requests import settled
from shardviz.errors import NoMachineError, QuestionError
from shardviz.forms.form import ProblemForm
from shardviz.reports.target_result import TargetResult
from shardviz.tui.dialogs.export import exports_of
from shardviz.tui.state import OpenedProfile
from shardviz.tui.time import timelines
from shardviz.tui.time.timelines import ToldTimelines
from tests.conftest import one_in
from tests.tui import hand_made
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until
from tests.tui.recorded import Recorded

TARGETS = "shardy,cpu,v5e:2x4"


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """The plan's timeline, and of a program those of the model and of the compiler's scheduler."""
    program = hand_made.program()
    both = (("model", program), ("scheduler", hand_made.program("v5e:2x4, the compiler's scheduler", 1.2)))
    plan = (("plan", hand_made.plan()),)
    monkeypatch.setattr(timelines, "tell_plan", lambda asked, _: ToldTimelines(asked, plan, is_assumed=True))
    monkeypatch.setattr(timelines, "tell_program", lambda asked, *_: ToldTimelines(asked, both))
    return program


def play(script, size=SIZES["wide"], targets=TARGETS, name="cpu"):
    """Run a script on the screen, in focus, once a timeline is there."""

    async def session(pilot):
        app = pilot.app
        app.pane.chart.focus()
        await until(pilot, lambda: app.pane.chart.parts)
        if name != "plan":
            await pilot.press("n")
            await until(pilot, lambda: [part.name for part in app.pane.chart.parts] == [name])
        await settle(pilot)
        await script(pilot)

    drive(session, size, ProblemForm(targets=targets), "time", Recorded())


async def settle(pilot, *keys):
    await pilot.press(*keys)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def selected(pilot):
    chart = pilot.app.pane.chart
    return chart.part.timeline.ops[chart.selected].name


def said(pilot):
    (note,) = pilot.app._notifications
    return note.message


def pane_text(pilot):
    region = pilot.app.pane.region
    lines = text_of(pilot.app).splitlines()[region.y : region.bottom]
    return "\n".join(line[region.x : region.right].rstrip() for line in lines)


@pytest.mark.parametrize("name", one_in(2, ["small", "wide"]))
def test_it_looks_like_this(name):
    async def script(pilot):
        await settle(pilot, "z")  # alone, where there is room for others
        check_snapshot(f"time-program-{name}", pane_text(pilot))
        await settle(pilot, "a")
        check_snapshot(f"time-compared-{name}", pane_text(pilot))
        await settle(pilot, "v")
        check_snapshot(f"time-report-{name}", pane_text(pilot))

    play(script, SIZES[name])


def test_from_operation_to_operation():
    async def script(pilot):
        assert selected(pilot) == "all-gather-start"
        await settle(pilot, "up", "up")
        assert selected(pilot) == "fusion.1"
        await settle(pilot, "right")
        assert selected(pilot) == "fusion.2"
        await settle(pilot, "end")
        assert selected(pilot) == "fusion.3"
        await settle(pilot, "home", "left")
        assert selected(pilot) == "fusion.1"
        assert "from model.py:9" in text_of(pilot.app)

    play(script)


def test_following_what_it_waited_for():
    async def script(pilot):
        await settle(pilot, "k")
        assert selected(pilot) == "all-gather-start"
        await settle(pilot, "j")
        assert selected(pilot) == "reduce-scatter.5"
        await settle(pilot, "f")
        assert selected(pilot) == "fusion.3"
        await settle(pilot, "f", "f")
        assert selected(pilot) == "copy-start.1"
        await settle(pilot, "f")
        assert said(pilot).startswith("It waited for nothing")

    play(script)


def test_zooming_and_panning_keep_to_the_time_there_is(told):
    async def script(pilot):
        chart = pilot.app.pane.chart
        await settle(pilot, "plus", "plus")
        assert chart.window.seconds == pytest.approx(told.drawn_seconds / 4)
        op = told.ops[chart.selected]
        assert chart.window.start < op.end
        assert op.start < chart.window.end
        for key in ("greater_than_sign", "less_than_sign"):
            await settle(pilot, *[key] * 20)
            assert chart.window.start >= 0
            assert chart.window.end <= told.drawn_seconds * (1 + 1e-9)
        await settle(pilot, "minus", "0")
        assert chart.window.seconds == told.drawn_seconds
        await settle(pilot, *["plus"] * 60)
        assert chart.window.seconds > 0

    play(script)


def test_the_scheduler_tells_other_times():
    async def script(pilot):
        assert pilot.app.pane.timeline.drawn_seconds == pytest.approx(30e-6)
        await settle(pilot, "s")
        assert pilot.app.pane.timeline.drawn_seconds == pytest.approx(36e-6)
        assert "the compiler's scheduler" in text_of(pilot.app)
        await settle(pilot, "s")
        assert pilot.app.pane.timeline.drawn_seconds == pytest.approx(30e-6)

    play(script)


def test_a_selection_that_arrives_when_another_screen_is_shown_waits_for_its_own():
    async def script(pilot):
        pane = pilot.app.pane
        await settle(pilot, "2")
        assert pane.size.width == 0
        pane.chart.select(1, 0)
        await pilot.pause()
        assert "That failed" not in "".join(note.message for note in pilot.app._notifications)
        await settle(pilot, "5")
        assert "operation 2 of" in pane_text(pilot)

    play(script, SIZES["usual"])


def test_two_on_one_scale():
    async def script(pilot):
        chart = pilot.app.pane.chart
        await settle(pilot, "a")
        assert [part.timeline.drawn_seconds for part in chart.parts] == pytest.approx([30e-6, 36e-6])
        await settle(pilot, "s")
        assert [part.timeline.drawn_seconds for part in chart.parts] == pytest.approx([36e-6, 30e-6])
        await settle(pilot, "s", "a")
        assert [part.name for part in chart.parts] == ["cpu", "plan"]
        assert chart.window.limit == pytest.approx(30e-6)
        ticks = [line for line in pane_text(pilot).splitlines() if "│5 µs" in line]
        assert len(ticks) == 2
        assert ticks[0] == ticks[1]
        await settle(pilot, *["down"] * 3)
        assert (chart.place[0], selected(pilot)) == (1, "all_gather A")
        await settle(pilot, "up", "up")
        assert (chart.place[0], selected(pilot)) == (0, "reduce-scatter.5")
        await settle(pilot, "a", "a")
        assert [part.name for part in chart.parts] == ["cpu"]

    play(script)


def test_what_stands_below_may_be_of_the_problem_before(monkeypatch):
    async def script(pilot):
        await settle(pilot, "a")
        assert "below: 35 × the time" in text_of(pilot.app)
        monkeypatch.setattr(timelines.ShownTimelines, "is_current", lambda _, name: name == "plan")
        pilot.app.pane.draw()
        await settle(pilot)
        assert "below: of the previous problem" in text_of(pilot.app)
        assert "35 ×" not in text_of(pilot.app)

    play(script, targets="cpu", name="plan")


def test_the_instruction_on_compiler_and_back():
    async def script(pilot):
        app = pilot.app
        await settle(pilot, "enter")
        assert app.pane.area == "compiler"
        await until(pilot, lambda: app.pane.box.is_program)
        await settle(pilot)
        assert app.pane.box.instruction == "all-gather-start"
        await settle(pilot, "enter")
        assert app.pane.area == "time"
        assert selected(pilot) == "all-gather-start"
        await settle(pilot, "4", *["end"], "enter")
        assert said(pilot).endswith("takes no time by itself here.")

    play(script)


def test_of_the_plan_enter_plays_the_collective():
    async def script(pilot):
        await settle(pilot, "down", "enter")
        assert pilot.app.pane.area == "step"

    play(script, name="plan")


def test_the_mouse_selects_and_zooms(told):
    async def script(pilot):
        chart = pilot.app.pane.chart
        x = chart.canvas._frames[0].left + 1
        place = next(y for y in range(chart.canvas.height) if chart.canvas.op_at(x, y) == (0, 1))
        await pilot.click(chart, offset=(x, place))
        await settle(pilot)
        assert selected(pilot) == "fusion.1"
        at = (chart.region.x + 40, chart.region.y + 2)
        wheel = (chart, 40, 2, 0, 0, 0, False, False, False)

        def time_there():
            frame = chart.canvas._frames[0]
            return frame.window.start + (40.5 - frame.left) * frame.window.seconds / frame.columns

        time = time_there()
        chart.post_message(events.MouseScrollUp(*wheel, *at))
        await settle(pilot)
        assert chart.window.seconds == pytest.approx(told.drawn_seconds / 2)
        assert time_there() == pytest.approx(time)

    play(script)


def test_a_scheduler_does_not_tell_what_waits_for_what(monkeypatch, told):
    untold = replace(told, ops=tuple(replace(op, after=()) for op in told.ops), critical_path=())
    both = (("model", told), ("scheduler", untold))
    monkeypatch.setattr(timelines, "tell_program", lambda asked, *_: ToldTimelines(asked, both))

    async def script(pilot):
        assert "f follow" in text_of(pilot.app)
        await settle(pilot, "s", "f")
        assert said(pilot).startswith("The compiler's scheduler does not report")
        assert "f follow" not in text_of(pilot.app)

    play(script)


def test_a_target_without_an_answer_says_why():
    async def script(pilot):
        await settle(pilot, "n")
        said = re.sub(r"\s+", " ", pane_text(pilot))
        assert "killed by SIGSEGV" in said
        assert not pilot.app.pane.chart.parts
        await settle(pilot, "v")
        assert re.sub(r"\s+", " ", pane_text(pilot)) == said

    play(script)


def test_a_program_that_does_not_fit_says_what_holds_it(monkeypatch):
    memory = replace(hand_made.program().memory, peak_bytes=20 * hand_made.GIB, curve=())
    too_large = TargetResult(
        "cpu", "error", error="does not fit: 4.25 GiB over 15.75 GiB of HBM", memory=memory
    )
    monkeypatch.setattr(Recorded, "submit", lambda *_, **__: settled(too_large))

    async def script(pilot):
        await settle(pilot, "n")
        await until(pilot, lambda: "Does not fit: 4.25 GiB over" in pane_text(pilot))
        assert "peak memory: 20 GiB of 15.8 GiB allowed" in pane_text(pilot)
        assert "bf16[8192,8192]" in pane_text(pilot)

    play(script, name="plan")


@pytest.mark.parametrize(("error", "mark"), [(QuestionError, "✗"), (NoMachineError, "· no machine")])
def test_a_program_without_a_timeline_says_why(monkeypatch, error, mark):
    def broken(*_):
        raise error("the module is not scheduled", "name a target")

    monkeypatch.setattr(timelines, "tell_program", broken)

    async def script(pilot):
        await settle(pilot, "n")
        await until(pilot, lambda: "the module is not scheduled" in text_of(pilot.app).lower())
        assert f"cpu {mark}" in text_of(pilot.app)
        await settle(pilot, "n", "n")
        assert "❯ plan" in text_of(pilot.app)

    play(script, name="plan")


def test_an_operation_is_selected_where_the_report_alone_is_seen():
    """After a target without a timeline the lanes of the next are not drawn yet."""

    async def script(pilot):
        await settle(pilot, "v", "n", "N", "right", "right")
        assert not pilot.app.pane.chart.size.width
        await settle(pilot, "v")
        assert re.search(r"operation \d+ of \d+", text_of(pilot.app))

    play(script)


def test_a_program_that_fails_takes_the_place_of_the_one_before(monkeypatch):
    async def script(pilot):
        assert "700 µs on v5e:2x4" in pane_text(pilot)
        failed = TargetResult("cpu", "error", error="the compiler gave up")
        monkeypatch.setattr(Recorded, "submit", lambda *_, **__: settled(failed))
        await settle(pilot, "p", "plus")
        await until(pilot, lambda: "compiler gave up" in pane_text(pilot))
        assert "700 µs" not in pane_text(pilot)
        await settle(pilot, "u")
        await until(pilot, lambda: "700 µs on v5e:2x4" in pane_text(pilot))

    play(script)


EXPORTED = {
    "html": "what runs when",
    "trace": '"traceEvents"',
    "json": '"kind": "timeline"',
    "py": "jax",
    "txt": "700 µs on v5e:2x4",
}


def test_what_is_exported_and_the_command_line_that_shows_the_same():
    async def script(pilot):
        app = pilot.app
        forms = {each.suffix: each for each in exports_of(app.screen_stack[0], app.pane, app.jax_code)}
        for suffix, holds in EXPORTED.items():
            assert holds in forms[suffix].text()
        line = app.pane.command_line()
        assert line.startswith("shardviz explain")
        assert line.endswith("--target cpu --time")

    play(script)


def test_a_profile_stands_above_what_was_predicted_of_it():
    measured, predicted = hand_made.program("TPU 3", 1.5), hand_made.program("v5e:2x4")
    profile = SimpleNamespace(timeline=measured, predicted=predicted)
    opened = OpenedProfile(profile, "shardviz profile traces --machine v5e:2x4")

    async def script(pilot):
        await pilot.app.open(opened)
        pane = pilot.app.pane
        await until(pilot, lambda: len(pane.chart.parts) == 2)
        assert [part.name for part in pane.chart.parts] == ["measured", "predicted"]
        assert pane.timelines == [measured, predicted]
        shown = text_of(pilot.app)
        assert shown.index("on TPU 3") < shown.index("on v5e:2x4")
        assert pane.command_line() == opened.command
        # Both are zoomed together.
        await settle(pilot, "+")
        assert pane.chart.window.seconds < measured.drawn_seconds
        # The plan of the problem is one key further, and the profile one back.
        await settle(pilot, "n")
        assert pane.timelines == [hand_made.plan()]
        await settle(pilot, "N")
        assert pane.timelines[0] is measured

    drive(script, SIZES["wide"], ProblemForm(targets=TARGETS), "time", Recorded())
