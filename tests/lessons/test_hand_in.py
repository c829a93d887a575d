"""What is handed in and graded: every answer and sandbox again, and files that cannot be, by name."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shardviz.errors import QuestionError
from shardviz.lessons import hand_in as handing_in, progress as kept
from shardviz.lessons.attempt import UNKNOWN, afresh, begin
from shardviz.lessons.course import course
from shardviz.lessons.hand_in import grades, hand_in
from shardviz.lessons.progress import CourseProgress
from shardviz.render.lesson_view import grades_csv


@pytest.fixture
def lesson(lesson_of):
    return replace(lesson_of(number=7), name="rows")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time, which tests advance."""

    class Clock:
        now = datetime(2026, 1, 1).astimezone()
        seconds = 0.0

    class Now(datetime):
        @classmethod
        def now(cls):
            Clock.now += timedelta(seconds=1)
            return Clock.now

    monkeypatch.setattr(handing_in, "datetime", Now)
    monkeypatch.setattr(kept, "monotonic", lambda: Clock.seconds)
    return Clock


def played(lesson, *said, progress=None, solution=None):
    """The progress of a learner who says these answers to the two questions and changes the sandbox."""
    progress = progress or CourseProgress()
    attempt = begin(lesson).next()
    for answer in said:
        attempt = attempt.answer(answer).next().next()
    attempt = attempt.next().edited(solution or lesson.solution, solution is None)
    progress.save(replace(attempt, hints=1))
    return progress


def test_every_answer_and_sandbox_is_checked_again(lesson, tmp_path):
    (tmp_path / "a.json").write_text(hand_in("Ada", played(lesson, "4:8, 0:16", "4×4"), [lesson]))
    (tmp_path / "b.json").write_text(hand_in("Bob", played(lesson, "0:4, 0:16", UNKNOWN), [lesson]))
    lazy = played(lesson, "0:4, 0:16", "4×4", solution=lesson.setup)
    (tmp_path / "c.json").write_text(hand_in("Cy", lazy, [lesson]))
    (ada, bob, cy), said = grades(tmp_path, [lesson])
    assert said == []
    # The shapes and slices are those of rows over X=2 and columns over Y=4 of an 8x16 array, by hand.
    assert (ada.solved, ada.answered, ada.right_at_first_try, ada.hints, ada.remarks) == (1, 2, 2, 1, "")
    assert (bob.solved, bob.answered, bob.right_at_first_try) == (1, 2, 0)
    assert (cy.solved, cy.answered, cy.right_at_first_try) == (0, 2, 1)


def test_the_first_try_counts_and_stays_when_the_lesson_begins_again(lesson, tmp_path):
    attempt = begin(lesson).next().answer("0:4, 0:16").next().back().answer("4:8, 0:16").next().next()
    attempt = attempt.answer("4×4").next().next().next().edited(lesson.solution, True).next()
    progress = CourseProgress()
    progress.save(afresh(attempt))
    (tmp_path / "a.json").write_text(hand_in("Ada", progress, [lesson]))
    ((ada,), _) = grades(tmp_path, [lesson])
    assert (ada.solved, ada.answered, ada.right_at_first_try) == (1, 2, 1)


def test_minutes_leave_out_long_pauses(lesson, clock):
    progress = CourseProgress()
    for seconds in (60, 90, 7200):
        clock.seconds += seconds
        progress.save(begin(lesson).next())
    assert progress.seconds(lesson) == 60 + 90 + 300


def test_files_that_cannot_be_graded_are_named(lesson, tmp_path):
    text = hand_in("Ada", played(lesson, "4:8, 0:16", "4×4"), [lesson])
    (tmp_path / "of" / "ada").mkdir(parents=True)
    (tmp_path / "of" / "ada" / "first.json").write_text(text)
    (tmp_path / "again.json").write_text(hand_in("ada", played(lesson, UNKNOWN, UNKNOWN), [lesson]))
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "notes.txt").write_bytes(b"\xff notes")
    (tmp_path / "other.json").write_text('{"schema": "shardviz-progress/1"}')
    edited = json.loads(text)
    edited["name"] = "=Eve"
    edited["lessons"]["rows"]["attempt"]["hints"] = 0
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    rows, said = grades(tmp_path, [lesson])
    assert [row.file for row in rows] == ["edited.json", "again.json"]
    assert rows[0].remarks == "edited after it was written"
    assert [words.split("'")[1] for words in said] == [
        *("cut.json", "empty.json", "notes.txt", "other.json"),
        "of/ada/first.json",
    ]
    assert said[-1].endswith("has handed in 'again.json' later")
    head, *lines = csv.reader(io.StringIO(grades_csv(rows)))
    assert [dict(zip(head, line, strict=True))["pupil"] for line in lines] == ["'=Eve", "ada"]


def test_a_claim_without_a_sandbox_and_another_version_are_said(lesson, tmp_path):
    document = json.loads(hand_in("Ada", played(lesson, "4:8, 0:16", "4×4"), [lesson]))
    entry = document["lessons"]["rows"]
    entry["attempt"]["met"] = None
    (tmp_path / "a.json").write_text(json.dumps(document))
    (row,), _ = grades(tmp_path, [lesson])
    assert (row.solved, row.lessons) == (0, 1)
    assert "no sandbox that meets the goal of rows" in row.remarks
    (row,), _ = grades(tmp_path, [replace(lesson, setup=lesson.solution)])
    assert (row.lessons, row.answered) == (0, 0)
    assert "of another version: rows" in row.remarks


def test_what_was_written_is_run_only_when_asked(tmp_path, worker):
    lesson = next(each for each in course() if each.writing is not None and each.writing.goal is not None)
    for name, text in (("Ada", lesson.writing.solution), ("Bob", lesson.writing.starter)):
        progress = CourseProgress()
        # Both claim that it passes.
        progress.save(begin(lesson).wrote(text, True))
        (tmp_path / f"{name}.json").write_text(hand_in(name, progress, [lesson]))
    assert [row.written for row in grades(tmp_path, [lesson], worker)[0]] == ["1 of 1", "0 of 1"]
    assert [row.written for row in grades(tmp_path, [lesson])[0]] == ["1 not run", "1 not run"]


def test_nothing_to_hand_in_and_no_name(lesson):
    with pytest.raises(QuestionError, match="no lesson was begun"):
        hand_in("Ada", CourseProgress(), [lesson])
    with pytest.raises(QuestionError, match="cannot be a name"):
        hand_in("\x1b[2J", played(lesson, UNKNOWN, UNKNOWN), [lesson])
