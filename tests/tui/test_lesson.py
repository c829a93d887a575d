"""A lesson in the application: every stage by keyboard, undo, hints, the list, and what stays as it was."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardviz.errors import QuestionError
from shardviz.forms.enter import enter
from shardviz.forms.examples import examples
from shardviz.forms.form import SCREENS, ProblemForm
from shardviz.forms.share import Shared
from shardviz.forms.state_file import load_session
from shardviz.lessons.attempt import UNKNOWN, LessonStage, attempt_of, begin, shared_of, stages
from shardviz.lessons.course import course, find
from shardviz.lessons.lesson_file import read_lesson
from shardviz.lessons.measures.subject import resolve_once
from shardviz.lessons.progress import load
from shardviz.render.lesson_view import WAYS, stage_facts
from shardviz.tui.lesson.controller import LessonController
from shardviz.tui.registry import APP, COMMANDS, LESSON
from tests.lessons.conftest import TEXT
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until

ROWS = read_lesson(TEXT, "rows.toml")


async def press(pilot, *keys):
    await pilot.press(*keys)
    await pilot.pause()
    return text_of(pilot.app)


def notes(app):
    """What is said in passing."""
    return "".join(note.message for note in app._notifications)


def at(kind, lesson, number=0):
    """A lesson at one of its stages, as somebody sends it; nothing before it was known."""
    place = stages(lesson).index(LessonStage(kind, number))
    passed = sum(stage.kind == "reveal" for stage in stages(lesson)[: place + 1])
    answers = (UNKNOWN,) * passed + (None,) * (len(lesson.predictions) - passed)
    return replace(begin(lesson), place=place, answers=answers)


def test_a_whole_lesson_by_keyboard():
    async def script(pilot):
        app = pilot.app
        check_snapshot("lessons-usual", await press(pilot, "L", "home", "down"))
        seen = await press(pilot, "enter")
        assert "2  One axis, one dimension" in seen
        assert "n next" in seen
        check_snapshot("lesson-predict-usual", await press(pilot, "n"))
        # Nothing is answered by going on, and neither a screen nor the code gives the answer away.
        assert "Predict 1 of 2" in await press(pilot, "n", "2", "p", "c", "e")
        seen = await press(pilot, "y")
        assert "shardviz lesson 2" in seen
        assert "explain" not in seen
        seen = await press(pilot, "escape", "down", "down", "enter")
        check_snapshot("lesson-reveal-usual", seen)
        assert notes(app) == ""
        assert "✗ You said 4×16." in seen
        assert "✓ It is 2×16." in seen
        assert "4 rows are half of 8" in seen
        assert "β 1,5" in seen
        seen = await press(pilot, "n", "up", "enter")
        assert "✓ It is 2:4, 0:16." in seen
        assert app.lesson.controller.attempt.answers == ("4×16", UNKNOWN)
        assert "A subscript splits one dimension" in await press(pilot, "n")
        seen = await press(pilot, "n")
        check_snapshot("lesson-change-usual", seen)
        assert "Goal  Give each device all 8 rows of A" in seen
        assert "✗ Device 0 holds rows 0:4 of A; the goal wants 0:8." in seen
        assert "n next" not in seen
        seen = await press(pilot, "n", "h")
        assert "The goal is not met yet; h gives a hint." in notes(app)
        assert "Hint 1 of 3" in seen
        assert app.lesson.controller.kind == "change"
        seen = await press(pilot, *["down"] * 4, "backspace", "Y")
        assert "✗ Device 0 holds rows 0:2" in seen
        seen = await press(pilot, "u")
        assert "✗ Device 0 holds columns 0:16 of A; the goal wants 0:4." in seen
        seen = await press(pilot, "right", "Y")
        assert "✓ The goal is met. n continues." in seen
        assert "✓ solved" in seen
        seen = await press(pilot, "n")
        assert "import jax" in seen
        assert "n opens the next lesson: Rows" in seen
        seen = await press(pilot, "n")
        assert "3  Rows, columns, replicas" in seen
        assert app.lesson.controller.kind == "see"
        # The problem of one's own is as it was.
        seen = await press(pilot, "Q")
        assert "bd,df->bf" in seen
        assert "Rows, columns" not in seen
        assert (app.state.resolved.draft.mesh, app.pane.area) == ("X=4,Y=4", "layout")
        await press(pilot, "u")
        assert app.state.resolved.draft == ProblemForm()

    async def with_own_problem(pilot):
        await press(pilot, "+")
        await script(pilot)

    drive(with_own_problem, SIZES["usual"])
    assert load_session() is None or load_session().draft.einsum == "bd,df->bf"
    assert load().is_solved(find("2"))
    assert not load().is_solved(find("3"))


def test_a_lesson_in_a_small_terminal():
    async def script(pilot):
        for name, keys in {"predict": "n", "reveal": "enter", "change": "nnn"}.items():
            check_snapshot(f"lesson-{name}-small", await press(pilot, *([keys] if keys == "enter" else keys)))
        # The last hint gives its place to the goal again.
        assert "Hint 1 of 3" in await press(pilot, "h")
        assert "Goal  Give" in await press(pilot, "h", "h", "h")
        check_snapshot("lessons-small", await press(pilot, "L"))

    lesson = replace(find("2"), predictions=find("2").predictions[:1])
    drive(script, SIZES["small"], lesson=begin(lesson))


@pytest.mark.parametrize("lesson", course()[1::5], ids=lambda lesson: lesson.name)
def test_every_lesson_goes_from_end_to_end(lesson):
    controller = LessonController(begin(lesson))
    seen = []
    while controller.kind != "code":
        seen.append(controller.attempt.stage)
        assert controller.screen in SCREENS
        if controller.kind == "change":
            assert not controller.may_go_on
            controller.look_at(resolve_once(lesson.setup))
            assert controller.difference
            controller.history.push(lesson.solution)
            controller.look_at(resolve_once(lesson.solution))
        if controller.kind == "predict":
            controller.answer()
        else:
            assert controller.may_go_on
            controller.next()
    # What was answered wrong is asked once more, where the lesson has another question.
    assert list(dict.fromkeys(seen)) == [*stages(lesson)[:-1]]
    twice = {stage.number for stage in seen if seen.count(stage) > 1}
    assert twice == {tried.number for tried in controller.attempt.tries if tried.is_again}


def test_an_answer_is_computed_once_and_not_before_a_stage_needs_it(monkeypatch):
    asked, lesson = [], find("2")

    def facts(prediction, seed):
        asked.append(prediction)
        return stage_facts(prediction, seed)

    monkeypatch.setattr("shardviz.tui.lesson.controller.stage_facts", facts)
    controller = LessonController(begin(lesson))
    assert controller.told.answer == ""
    assert asked == []
    controller.next()
    assert controller.told.answer == "2×16"
    assert asked == [lesson.predictions[0]]
    controller.compute_answers()
    controller.answer()
    assert asked == [*lesson.predictions]


def typed(controller, text):
    for character in text:
        assert controller.takes(character, character)


def test_a_number_is_typed_with_its_unit():
    lesson = find("bytes-per-device")
    controller = LessonController(at("predict", lesson, 2))
    assert controller.told.typed == ""
    # Keys that mean something else still do, until a digit begins the answer.
    assert not controller.takes("B", "B")
    typed(controller, "8 parsecs")
    with pytest.raises(QuestionError, match="is not a number of bytes"):
        controller.answer()
    assert controller.takes("escape", None)
    typed(controller, "2^13 KiBn")
    assert controller.takes("backspace", None)
    controller.answer()
    assert controller.attempt.answers[2] == controller.told.answer == "8 MiB"
    assert not controller.attempt.asks_again
    controller.next()
    assert controller.kind == "explain"


def test_a_wrong_answer_leads_to_a_second_question_and_only_to_one():
    lesson = find("reduce-scatter")
    controller = LessonController(at("predict", lesson, 1))
    controller.attempt = controller.attempt.answer("4 KiB").next()
    controller.next()
    assert controller.attempt.prediction is lesson.predictions[1].again
    assert controller.told.typed == ""
    # Seven eighths of 16 KiB: each device keeps one of eight pieces.
    typed(controller, "14,336 B")
    controller.answer()
    assert controller.told.answer == controller.attempt.answers[1] == f"{16 * 7 // 8} KiB"
    controller.next()
    assert controller.kind == "explain"
    assert [(tried.said, tried.is_again) for tried in controller.attempt.tries] == [
        ("4 KiB", False),
        ("14 KiB", True),
    ]


def test_choices_are_in_the_learners_own_order():
    lesson = find("four-spellings")
    facts = [stage_facts(lesson.predictions[0], seed) for seed in ("", *"abcdefgh")]
    assert len({each.choices for each in facts}) > 2
    assert len({frozenset(each.choices) for each in facts}) == 1
    seeded = LessonController(at("predict", lesson), seed="a").told.choices
    assert seeded == LessonController(at("predict", lesson), seed="a").told.choices == facts[1].choices
    # A class sees one picture.
    assert LessonController(at("predict", lesson), True, seed="a").told.choices == facts[0].choices


def test_the_best_mesh_is_not_on_screen_while_it_is_asked_for():
    lesson = find("best-split")
    controller = LessonController(at("predict", lesson, 2))
    assert controller.history.draft == replace(lesson.predictions[2].draft, mesh=lesson.setup.mesh)
    controller.answer()
    assert controller.history.draft.mesh.replace(",", ", ") == controller.told.answer == "data=16, tensor=4"


def test_the_keys_that_change_a_collective_are_those_of_its_screen():
    keys = {key: each.name for each in COMMANDS if each.area in ("app", "step") for key in each.keys}
    assert [keys[key] for key in WAYS] == ["algorithm(1)", "other", "undo"]


def test_a_collective_is_changed_in_its_picture():
    lesson = find("all-gather-hop-by-hop")

    async def script(pilot):
        seen = await press(pilot, "right", "right")
        assert "round 2 of 3" in seen
        # The answer begins with a round of its own.
        await press(pilot, *"nn", "enter")
        assert "round 0 of 3" in await press(pilot, "home")
        await pilot.app.open_lesson(at("change", lesson))
        seen = await press(pilot)
        assert "bd,df" not in seen
        assert "a  plays the next algorithm" in seen
        seen = await press(pilot, "a")
        assert "all_gather  i=4  3,9,5,2  bidirectional-ring" in seen
        assert "✓ The goal is met" in seen
        assert "import jax" in await press(pilot, "n")

    drive(script, SIZES["usual"], lesson=begin(lesson), screen="step")


ANSWERS = {
    # The plan's step, and the array and the position of the layout's cursor, or the round of the player.
    ("both-ways-round", 1): ("", 0, 1),
    ("all-gather-hop-by-hop", 0): ("", 0, 2),
    ("reduce-scatter", 0): ("", 0, 0),
    ("detective", 0): ("all_gather", 0, 0),
    ("mesh-and-axes", 0): ("", 0, 6),
    ("rows-columns-replicas", 1): ("", 1, 0),
}


def test_an_answer_begins_where_it_is_to_be_seen():
    def seen(app):
        """The operation of the plan's step that is chosen, the array, and its position or the round."""
        pane = app.pane
        if pane.area == "step":
            return "", 0, pane.player.number
        if pane.area == "plan":
            return app.state.resolved.plan.steps[pane.state.step_number - 1].op, 0, 0
        return "", pane.cursor.array, pane.canvas.cells(pane.cursor).position(pane.cursor.cell)

    async def script(pilot):
        for (name, number), place in ANSWERS.items():
            await pilot.app.open_lesson(at("reveal", find(name), number))
            # What takes long is worked out beside the screen, then its place is taken.
            await until(pilot, lambda place=place: seen(pilot.app) == place)

    drive(script, SIZES["usual"])


@pytest.mark.parametrize(
    ("screen", "keys", "name"),
    [("layout", "vm", "two-axes-and-their-order"), ("step", "vl", "both-ways-round")],
)
def test_nothing_that_was_looked_at_before_leaks_into_a_lesson(screen, keys, name):
    seen = {}

    async def script(pilot):
        app = pilot.app
        for attempt in (begin(find(name)), at("reveal", find(name))):
            await app.open_lesson(attempt)
            await until(pilot, lambda: screen != "step" or app.pane.page.prepared is not None)
            seen.setdefault(attempt.stage, []).append(await press(pilot))

    async def with_keys(pilot):
        await pilot.app.workspace.put_on(screen)
        pilot.app.workspace.face(False)
        before = await press(pilot)
        assert await press(pilot, *keys) != before
        await script(pilot)

    drive(script, SIZES["usual"])
    drive(with_keys, SIZES["usual"])
    for usual, after_keys in seen.values():
        assert usual == after_keys


def test_a_lesson_is_left_and_found_again_where_it_was():
    lesson = find("2")

    async def first(pilot):
        await press(pilot, "n", "enter")
        await pilot.app.open_lesson(at("change", lesson))
        await press(pilot, "h", *["down"] * 4, "backspace")

    async def second(pilot):
        app = pilot.app
        await press(pilot, "L", "home", "down", "enter")
        attempt = app.lesson.controller.attempt
        # What was sent took none of the learner's own answers.
        assert (attempt.stage.kind, attempt.hints, attempt.answers) == ("change", 1, (first_choice, UNKNOWN))
        assert app.state.resolved.draft.specs[0] == "__"
        seen = await press(pilot, "R")
        assert "rows 0:4 of A" in seen
        assert "columns 0:16 of A" in await press(pilot, "u")
        assert "Why" in await press(pilot, "B")
        # A sandbox that is sent is a step of undo away from the learner's own.
        await app.open_lesson(at("change", lesson))
        assert "rows 0:4 of A" in await press(pilot)
        assert "columns 0:16 of A" in await press(pilot, "u")

    first_choice = stage_facts(lesson.predictions[0]).choices[0]
    drive(first, SIZES["usual"], lesson=begin(lesson))
    drive(second, SIZES["usual"])


def test_letters_are_text_while_text_is_typed_and_axes_where_an_axis_is_so_named():
    async def script(pilot):
        app = pilot.app
        await press(pilot, "down", "down", "enter", *",nBhQ")
        assert app.state.resolved.draft.sizes == ",nBhQ"
        await press(pilot, "escape")
        app.state.edit(replace(app.state.resolved.draft, mesh="X=2,Y=4,n=2"))
        await press(pilot, "down", "down", "right", "n")
        assert app.state.resolved.draft.specs[0] == "Xn"
        assert app.lesson.controller.kind == "change"

    drive(script, SIZES["usual"], lesson=at("change", ROWS))


def test_keys_of_the_lesson_win_over_those_of_the_screen_and_others_reach_it():
    async def script(pilot):
        await press(pilot, "2", "n")
        assert pilot.app.lesson.controller.kind == "predict"
        await press(pilot, "enter", "n")
        # A question beside the plan shows the plan alone.
        seen = await press(pilot, "1")
        assert "That would show the answer" in notes(pilot.app)
        assert "einsum" in seen
        await press(pilot, "enter", "1", "v")
        assert "v by array" in text_of(pilot.app)

    drive(script, SIZES["usual"], lesson=begin(ROWS))


def test_every_command_runs_where_the_answer_is_hidden_and_shows_nothing_of_it():
    async def script(pilot):
        app = pilot.app
        await app.action_lesson("next")
        first = {command.area: command for command in reversed(COMMANDS)}
        for command in (*APP, *LESSON, *first.values()):
            if command.name in ("quit", "restore", "lesson('leave')", "lesson('answer')"):
                continue
            await app.action_run_command(command)
            if len(app.screen_stack) > 1:
                await pilot.pause()
                app.pop_screen()
            assert app.lesson.controller.kind in ("see", "predict")
            if app.lesson.controller.kind == "see":
                await app.action_lesson("next")
        seen = await press(pilot)
        assert "Which part of A does device 5" in seen
        assert "Predict first: the answer" in seen
        assert app.state.resolved.draft == ROWS.setup

    drive(script, lesson=begin(ROWS))


def test_lists_that_tell_of_the_plan_wait_for_the_prediction():
    async def script(pilot):
        app = pilot.app
        await press(pilot, "n")
        for is_told in (False, True):
            for command in ("ranking", "shardings", "jump", "history"):
                app.clear_notifications()
                await app.action_window(command)
                await pilot.pause()
                assert len(app.screen_stack) == 1 + is_told, command
                assert is_told or "predict first" in notes(app)
                if is_told:
                    await app.pop_screen()
            await press(pilot, "enter")

    drive(script, SIZES["usual"], lesson=begin(ROWS))


def test_another_problem_from_a_list_ends_the_lesson_except_in_its_sandbox():
    async def script(pilot):
        app = pilot.app
        other = replace(ROWS.setup, mesh="X=4,Y=4")
        await app.open_lesson(at("change", ROWS))
        await app.open(other)
        await pilot.pause()
        assert app.lesson.controller.attempt.draft == other
        await app.open_lesson(at("explain", ROWS))
        await app.open(other)
        await pilot.pause()
        assert app.lesson is None
        assert app.state.resolved.draft == other
        await press(pilot, "u")
        assert app.state.resolved.draft == ProblemForm()

    drive(script, SIZES["usual"])


def test_for_a_class_the_answer_waits_for_space_and_nothing_is_kept(state_home):
    async def script(pilot):
        app = pilot.app
        assert app.theme == "shardviz-projector"
        seen = await press(pilot, "n", "enter", "down")
        assert "Which part of A does" in seen
        assert "4:8, 0:8" in seen
        assert UNKNOWN not in seen
        assert "▸" not in seen
        seen = await press(pilot, "space")
        assert "✓ It is 4:8, 0:16." in seen
        assert "You said" not in seen
        # A teacher may leave the goal to the class.
        await app.open_lesson(at("change", ROWS))
        await press(pilot, "n")
        assert app.lesson.controller.kind == "code"
        await press(pilot, "Q")
        assert app.theme == "shardviz-dark"

    drive(script, SIZES["usual"], lesson=at("predict", ROWS), present=True)
    assert list(state_home.rglob("progress*")) == []


def test_a_lesson_that_somebody_sent_opens_at_its_stage_and_an_example_ends_it():
    lesson = find("2")
    shared = replace(shared_of(at("change", lesson), "layout"), draft=enter(lesson.setup, "specs.0", "__"))

    async def script(pilot):
        app = pilot.app
        assert app.lesson.controller.kind == "change"
        assert app.state.resolved.draft.specs[0] == "__"
        assert app.shared() == shared
        assert "columns 0:16 of A" in text_of(app)
        example = examples()[0]
        await app.open(Shared(example.draft, example.screen))
        assert app.lesson is None
        await press(pilot, "u")
        assert app.state.resolved.draft == ProblemForm()

    drive(script, SIZES["usual"], lesson=attempt_of(shared))


def test_a_lesson_that_asks_for_what_there_is_not_is_not_opened():
    broken = read_lesson(TEXT.replace("slices A 5", "slices Q 5"), "rows.toml")

    async def script(pilot):
        assert pilot.app.lesson is None
        assert "Q" in notes(pilot.app)
        assert "bd,df->bf" in text_of(pilot.app)

    drive(script, SIZES["usual"], lesson=begin(broken))


def test_damaged_progress_is_said_and_a_lesson_opens(state_home):
    path = state_home / "shardviz" / "progress.json"
    path.parent.mkdir()
    path.write_text("[")

    async def script(pilot):
        await press(pilot, "L")
        await until(pilot, lambda: "was damaged" in notes(pilot.app))
        assert "1  Mesh and axes" in await press(pilot, "enter")

    drive(script, SIZES["usual"])
    assert path.with_name("progress.json.damaged").exists()


def test_the_number_of_a_lesson_finds_it_before_those_that_have_it_in_their_goals():
    async def script(pilot):
        assert "320 MiB" in find("13").goal.text
        assert find("32").title in await press(pilot, "L", "3", "2", "enter")

    drive(script, SIZES["usual"])


def test_a_guest_leaves_no_trace(state_home):
    async def script(pilot):
        await press(pilot, "n", "enter", "Q", "L")
        assert "at Answer" in text_of(pilot.app)

    drive(script, SIZES["usual"], lesson=begin(find("2")), is_guest=True)
    assert list(state_home.rglob("*.json")) == []


def test_without_a_machine_a_sandbox_has_no_seconds_and_no_memory():
    async def script(pilot):
        await pilot.app.open_lesson(at("change", find("four-cases")))
        await until(pilot, lambda: "psum_scatter C over X" in text_of(pilot.app))
        seen = text_of(pilot.app)
        assert not re.search(r"\d [µnm]s\b|HBM|machine|memory|time ", seen)
        await press(pilot, "5")
        assert "counts bytes" in notes(pilot.app)
        await pilot.app.open_lesson(at("change", find("backward")))
        await until(pilot, lambda: re.search(r"\d ms", text_of(pilot.app)))

    drive(script, SIZES["wide"])


def test_a_file_is_checked_at_every_save_and_a_visitors_is_not_run(state_home, worker):
    lesson = find("all-gather-hop-by-hop")
    path = state_home / "shardviz" / "all_gather_hop_by_hop.py"

    async def script(pilot):
        controller = pilot.app.lesson.controller
        await until(pilot, lambda: "Device 0 ends with 3, 0, 0, 0" in text_of(pilot.app).replace("\n", " "))
        assert "Hint 1 of 3" in await press(pilot, "h")
        path.write_text(lesson.writing.solution)
        await until(pilot, lambda: controller.attempt.is_written)
        assert "✓ What you wrote passes." in text_of(pilot.app)
        assert "out = out.at[(here - hop) % N]" in text_of(pilot.app)

    drive(script, SIZES["wide"], lesson=at("write", lesson), worker=worker)
    assert load().attempt(lesson).written == lesson.writing.solution
    path.unlink()

    async def visit(pilot):
        guide = " ".join(" ".join(line[:36] for line in text_of(pilot.app).splitlines()).split())
        assert "a terminal of your own: shardviz lesson 7 --watch FILE.py" in guide
        assert pilot.app.lesson.controller.check is None

    drive(visit, SIZES["wide"], lesson=at("write", lesson), is_guest=True)
    assert not path.exists()


def test_a_spec_is_typed_and_its_layout_shown(worker):
    lesson = find("four-spellings")

    async def script(pilot):
        app = pilot.app
        await until(pilot, lambda: app.lesson.controller.check)
        assert "device 0 holds rows 0:8 of In" in app.lesson.controller.check.wrong
        await press(pilot, "enter", "ctrl+u", *"YX, _(YX) -> Y_", "enter")
        await until(pilot, lambda: app.lesson.controller.attempt.is_written)
        assert app.state.resolved.draft.specs == ("YX", "_(YX)", "Y_")

    drive(script, SIZES["usual"], lesson=at("write", lesson), worker=worker)
