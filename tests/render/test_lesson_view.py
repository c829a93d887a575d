"""A lesson's words in lines: at every stage, in any width, and which of them do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.lessons.attempt import UNKNOWN, begin, stages
from shardviz.lessons.lesson_file import read_lesson
from shardviz.lessons.progress import CourseEntry
from shardviz.render.lesson_view import bar, course_line, fits, guide_page, stage_facts, strip_lines
from tests.lessons.conftest import TEXT

LESSON = read_lesson(TEXT, "07-rows.toml", 7)
WIDTHS = (20, 34, 60)


def at(kind, **changes):
    """The attempt at the first stage of a kind."""
    place = next(place for place, stage in enumerate(stages(LESSON)) if stage.kind == kind)
    return replace(begin(LESSON), place=place, **changes)


def guide(attempt, width=34, height=20, **changes):
    facts = replace(stage_facts(LESSON.predictions[0]), **changes)
    return [line.plain for line in guide_page(attempt, facts, width, height)[0]]


def test_a_question_with_its_choices():
    lines = guide(at("predict"), chosen=2)
    assert lines[0] == "Predict 1 of 2"
    assert [line for line in lines if line.startswith("▸")] == ["▸ 4:8, 0:8"]
    assert lines[-1] == f"  {UNKNOWN}"
    # Who presents it has nobody choose.
    assert UNKNOWN not in "".join(guide(at("predict")))


VERDICTS = {
    "4:8, 0:16": ("✓ 4:8, 0:16 is right.", "Why not 0:4, 0:16? That is the upper"),
    "4:8, 0:8": ("✗ You said 4:8, 0:8.", "✓ It is 4:8, 0:16.", "J is not split."),
    UNKNOWN: ("✓ It is 4:8, 0:16.", "Why not 0:4, 0:16? That is the upper"),
    None: ("✓ It is 4:8, 0:16.",),
}


@pytest.mark.parametrize("said", VERDICTS)
def test_the_prediction_beside_the_answer(said):
    lines = guide(at("reveal", answers=(said, None)), width=40)
    assert set(VERDICTS[said]) <= set(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_too_long(width):
    for place, stage in enumerate(stages(LESSON)):
        attempt = replace(begin(LESSON), place=place, answers=("4:8, 0:8", "8x16"))
        facts = stage_facts(attempt.prediction) if attempt.prediction else stage_facts(LESSON.predictions[0])
        for line in guide_page(attempt, facts, width, 20)[0]:
            assert line.cell_len <= width, stage
        assert bar(attempt, width).cell_len == width
        for most in (4, 5, 8):
            lines = strip_lines(attempt, "Device 0 holds rows 0:4 of A.", 2, True, width, most)
            assert len(lines) <= most
            assert max(line.cell_len for line in lines) <= width


def test_a_collective_says_which_keys_change_it():
    lines = guide(at("change"))
    assert {"a", "i", "u"} <= {line[0] for line in lines if line[1:3] == "  "}


def test_blank_lines_go_where_there_is_no_room():
    roomy, tight = (guide(at("see"), height=height) for height in (20, 4))
    assert "" in roomy
    assert tight == [line for line in roomy if line]


def test_the_bar_shows_the_stage():
    assert bar(at("reveal"), 60).plain == f"{'7  Rows':<44}●●◉○○○○○  Answer"
    assert bar(at("code", is_solved=True), 40).plain.endswith("●●●●●●●◉  Code  ✓ solved")
    assert bar(at("see"), 12).plain == "7…  ◉○○○○○○○"


def strip(difference, hint=0, is_asked=False, most=8, width=100, **changes):
    lines = strip_lines(at("change", **changes), difference, hint, is_asked, width, most)
    return [line.plain for line in lines]


def test_the_strip_has_what_matters_most():
    assert strip("A differs.", 1) == [
        f"Goal  {LESSON.goal.text}",
        "Hint 1 of 2  The first letter is for rows.",
        "✗ A differs.",
    ]
    assert strip(None)[-1] == "✓ The goal is met. n continues."
    assert strip("A differs.", is_solved=True)[-1] == "The goal was met. n continues."
    few = {"most": 3, "width": 40}
    assert strip("A differs.", 1, **few)[0].startswith("Goal")
    assert strip("A differs.", 1, is_asked=True, **few)[0].startswith("Hint 1")
    long = "Device 0 holds rows 0:4 of A; the goal wants 0:8."
    assert strip(long, **few)[0].endswith("…")
    assert strip(long, **few)[-1] == "  wants 0:8."
    assert strip(long, draft=LESSON.solution, **few)[-1] == "  wants 0:8."


def test_texts_that_do_not_fit_are_named():
    assert fits(LESSON) == []
    long = "word " * 200
    wrong = dict.fromkeys(LESSON.predictions[0].wrong, long)
    lesson = replace(
        LESSON,
        title=long,
        explain=long,
        goal=replace(LESSON.goal, text=long),
        hints=("short", long),
        predictions=(replace(LESSON.predictions[0], wrong=wrong), LESSON.predictions[1]),
    )
    said = "\n".join(fits(lesson))
    for part in ("title", "explain takes", "predict.1 after the answer '4:8, 0:8'", "goal.text", "hints.2"):
        assert part in said
    assert "see" not in said
    asking = (replace(LESSON.predictions[0], question=long), LESSON.predictions[1])
    (only,) = fits(replace(LESSON, predictions=asking))
    assert only.startswith("predict.1.question ")
    assert "hints.1" not in said


def test_a_line_of_the_list():
    assert course_line(CourseEntry(3, "rows", "Rows", "begun", "Answer")).plain == "◐  3  Rows  at Answer"
    assert course_line(CourseEntry(12, "rows", "[b]Rows", "solved", "See")).plain == "● 12  [b]Rows  solved"
    assert course_line(CourseEntry(1, "rows", "Rows", "new")).plain == "○  1  Rows"
