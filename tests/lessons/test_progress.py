"""Progress on disk: kept whole, merged with what another session kept, set aside when damaged."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.state_file import StateError
from shardviz.lessons.attempt import UNKNOWN, begin
from shardviz.lessons.progress import CourseProgress, load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="XDG_STATE_HOME names the folder on Linux")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where progress is kept, for this test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "shardviz" / "progress.json"


@pytest.fixture
def lessons(lesson_of):
    return [replace(lesson_of(number=number), name=f"lesson-{number}") for number in (1, 2)]


def half_done(lesson):
    """An attempt with an answer, a hint and a changed sandbox."""
    attempt = begin(lesson).next().answer(UNKNOWN).next().next().answer("8×16")
    return replace(attempt.edited(ProblemForm(mesh="X=["), False), hints=1)


def test_an_attempt_is_found_again_as_it_was_left(path, lessons):
    first, second = lessons
    assert load().left(first) is None
    assert load().attempt(first) == begin(first)
    attempt = half_done(first)
    load().save(attempt)
    assert load().attempt(first) == load().left(first) == attempt
    assert not load().is_solved(first)
    assert load().left(second) is None
    document = json.loads(path.read_text())
    assert document["schema"] == "shardviz-progress/1"


def test_a_solved_lesson_stays_solved(path, lessons):
    lesson = lessons[0]
    progress = load()
    progress.save(begin(lesson).edited(lesson.solution, True))
    progress.save(begin(lesson))
    assert progress.is_solved(lesson)
    assert load().is_solved(lesson)
    assert load().attempt(lesson).is_solved
    assert path.exists()


def test_two_sessions_keep_what_the_other_has_saved(path, lessons):
    one, other = load(), load()
    one.save(begin(lessons[0]).edited(lessons[0].solution, True))
    other.save(half_done(lessons[1]))
    other.save(begin(lessons[0]))
    kept = load()
    assert kept.is_solved(lessons[0])
    assert kept.left(lessons[1]) == half_done(lessons[1])
    assert other.is_solved(lessons[0])
    assert path.exists()


def test_a_lesson_that_has_changed_begins_anew_and_stays_solved(path, lessons, lesson_of):
    lesson = lessons[0]
    load().save(half_done(lesson).edited(lesson.solution, True))
    changed = replace(lesson, setup=lesson.solution)
    assert load().left(changed) is None
    assert load().attempt(changed) == replace(begin(changed), is_solved=True)
    assert load().left(replace(lesson, title="Otherwise")) is not None
    own = replace(lesson_of(), name="lesson-1")
    assert not load().is_solved(own)
    load().save(half_done(own).edited(own.solution, True))
    assert load().is_solved(own)
    assert not load().is_solved(replace(own, source="/elsewhere/lesson-1.toml"))
    assert path.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stage", 99),
        ("stage", True),
        ("answers", []),
        ("answers", [3, None]),
        ("answers", ["\x1b[2J", None]),
        ("hints", 3),
        ("draft", {}),
        ("of", ""),
        ("more", 1),
    ],
)
def test_an_attempt_that_cannot_be_is_begun_anew(path, lessons, key, value):
    load().save(half_done(lessons[0]))
    document = json.loads(path.read_text())
    document["lessons"]["lesson-1"]["attempt"][key] = value
    path.write_text(json.dumps(document))
    progress = load()
    assert progress.notice == ""
    assert progress.attempt(lessons[0]) == begin(lessons[0])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b"3",
        b"null",
        b'{"schema": "shardviz-progress/1"}',
        b'{"schema": "shardviz-progress/1", "lessons": []}',
        b'{"schema": "shardviz-progress/1", "lessons": {"a": {"solved": 1, "attempt": null}}}',
        b'{"schema": "shardviz-progress/1", "lessons": {"a": {"solved": true, "attempt": 3}}}',
    ],
)
def test_a_damaged_file_is_set_aside_and_said_so(path, lessons, content):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    progress = load()
    assert "progress.json' was damaged: " in progress.notice
    assert progress.notice.endswith("it is now progress.json.damaged; shardviz begins anew")
    assert path.with_name("progress.json.damaged").read_bytes() == content
    progress.save(half_done(lessons[0]))
    assert load().notice == ""
    assert load().left(lessons[0]) == half_done(lessons[0])


def test_damage_between_two_keys_loses_nothing_that_is_known(path, lessons):
    progress = load()
    progress.save(half_done(lessons[0]))
    path.write_text("{")
    with pytest.raises(StateError, match=r"progress\.json' was damaged"):
        progress.save(half_done(lessons[1]))
    assert [load().left(lesson) for lesson in lessons] == [half_done(lesson) for lesson in lessons]


def test_a_file_of_another_version_stays(path, lessons):
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": "shardviz-progress/2"}')
    progress = load()
    assert progress.notice.startswith(
        "your progress was saved as 'shardviz-progress/2', and this shardviz reads"
    )
    progress.save(half_done(lessons[0]))
    assert progress.left(lessons[0]) == half_done(lessons[0])
    assert path.read_text() == '{"schema": "shardviz-progress/2"}'


def test_a_folder_that_cannot_be_written_is_said(path, lessons):
    path.parent.parent.mkdir()
    path.parent.write_text("a file where the folder should be")
    progress = load()
    assert "cannot be read" in progress.notice
    progress.save(begin(lessons[0]))


def test_what_is_no_file_is_not_waited_for(path):
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert "was damaged: it is not a file" in load().notice
    assert not path.exists()


def test_a_link_stays_one(path, lessons, tmp_path):
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "kept.json")
    load().save(half_done(lessons[0]))
    assert path.is_symlink()
    assert load().left(lessons[0]) == half_done(lessons[0])


def test_a_guest_leaves_no_trace(path, lessons):
    guest = CourseProgress()
    guest.save(half_done(lessons[0]))
    assert guest.attempt(lessons[0]) == half_done(lessons[0])
    assert not path.parent.exists()
