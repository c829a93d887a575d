"""`shardviz lesson`: the list, a lesson to read, and which words cannot be combined."""

from __future__ import annotations

import json
import shlex

import pytest

from shardviz.cli.group import run
from shardviz.cli.streams import no_terminal
from shardviz.lessons import course as lessons_read
from shardviz.lessons.attempt import begin
from shardviz.lessons.course import course
from shardviz.lessons.lesson_file import LessonError
from shardviz.lessons.measures import compute
from shardviz.lessons.progress import load

NOTE = f"shardviz: note: {no_terminal()}\n"


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    """A learner who has solved the first lesson and begun the second; the folder is the current one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    first, second = course()[:2]
    progress = load()
    progress.save(begin(first).edited(first.solution, is_met=True))
    progress.save(begin(second).next())


def test_the_list_says_how_far_one_is(capsys):
    assert run(["lesson"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second, third = course()[:3]
    assert lines[2].startswith(f"●  1  {first.title}  solved")
    assert lines[3].startswith(f"◐  2  {second.title}  ")
    assert lines[3].endswith("at Predict")
    assert lines[4] == f"○  3  {third.title}"
    assert lines[-1] == f"shardviz lesson 2 goes on with “{second.title}”."
    assert run(["lesson", "--width", "40"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40


def test_the_list_as_json(capsys):
    assert run(["lesson", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "shardviz/1"
    assert [each["number"] for each in document["lessons"]] == list(range(1, len(course()) + 1))
    second = course()[1]
    state = {"number": 2, "name": second.name, "title": second.title, "state": "begun", "stage": "Predict"}
    assert document["lessons"][1] == state
    assert [each["state"] for each in document["lessons"][:4]] == ["solved", "begun", "new", "new"]


def test_a_file_that_is_no_lesson_does_not_keep_the_others_away(capsys, monkeypatch):
    def broken(number):
        if number == 3:
            raise LessonError("03.toml", "title", "it is missing")
        return lessons[number - 1]

    lessons = course()
    monkeypatch.setattr(lessons_read, "_lesson", broken)
    lessons_read._read_all.cache_clear()
    try:
        assert run(["lesson"]) == 0
        assert lessons_read.following(lessons[1]) is lessons[3]
    finally:
        lessons_read._read_all.cache_clear()
    out, err = capsys.readouterr()
    assert err == "shardviz: note: 03.toml: title: it is missing\n"
    assert out.splitlines()[4] == f"○  4  {lessons[3].title}"


def test_a_damaged_progress_is_told(tmp_path, capsys):
    (tmp_path / "shardviz" / "progress.json").write_text("{")
    assert run(["lesson"]) == 0
    out, err = capsys.readouterr()
    assert "progress.json.damaged; shardviz begins anew" in err
    assert "shardviz lesson 1 opens" in out


def test_without_a_terminal_a_lesson_is_read(capsys):
    lesson = course()[16]
    assert run(["lesson", "17", "--width", "60"]) == 0
    out, err = capsys.readouterr()
    assert err == NOTE
    text = " ".join(out.split())
    answers = [f"{n}: {compute(each.ask, each.draft).text}." for n, each in enumerate(lesson.predictions, 1)]
    asked = [each.question for each in lesson.predictions]
    parts = [lesson.title, *asked, lesson.goal.text, *answers, lesson.explain]
    places = [text.find(" ".join(part.split())) for part in parts]
    assert places == sorted(places)
    assert places[0] >= 0
    assert max(map(len, out.splitlines())) <= 60
    joined = out.replace("\\\n", "").splitlines()
    (command,) = [line for line in joined if line.startswith("  shardviz ")]
    quickly = ["--target", "none"] if " explain " in command else ["--on", "none"]
    assert run([*shlex.split(command)[1:], *quickly]) == 0


def test_a_lesson_as_json_has_the_answers(capsys):
    lesson = course()[1]
    assert run(["lesson", lesson.name, "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)["lesson"]["predictions"]
    for told, prediction in zip(asked, lesson.predictions, strict=True):
        assert told["answer"] == compute(prediction.ask, prediction.draft).text
        assert set(told["choices"]) == {told["answer"], *told["wrong"], "I don't know"}


WRONG = {
    "99": f"there is no lesson 99: the course has {len(course())}",
    "0": f"there is no lesson 0: the course has {len(course())}",
    "al-gather": "there is no lesson 'al-gather'",
    "\x1b[31m": "there is no lesson '\\x1b[31m'",
    "nowhere.toml": "nowhere.toml: it cannot be read: No such file or directory",
    "--present": "--present needs a lesson",
    "1 2": "2 lessons are given, but only one can be opened",
    "--check --present 1": "--check and --present cannot be combined",
    "--present 1 --json": "--present prints no JSON",
    "--check 99": f"there is no lesson 99: the course has {len(course())}",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_answered(words, capsys):
    assert run(["lesson", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said, hint = err.splitlines()
    assert said == f"shardviz: error: {WRONG[words]}"
    assert hint.startswith("hint: ")


def test_a_file_is_made_and_checked_once_in_a_pipe(tmp_path, capfd):
    lesson = next(each for each in course() if each.name == "all-gather-hop-by-hop")
    watch = ["lesson", lesson.name, "--watch", "ring.py"]
    assert run(watch) == 1
    out, err = capfd.readouterr()
    assert out == "✗ Device 0 ends with 3, 0, 0, 0; the lesson wants 3, 1, 2, 4.\n\n"
    assert err == "shardviz: note: 'ring.py' is new: it has the task\n"
    solved = "print('seen')\n" + lesson.writing.solution
    (tmp_path / "ring.py").write_text(solved)
    assert run(watch) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-2] == "✓ What you wrote passes."
    assert err == "seen\n"
    kept = load().attempt(lesson)
    assert (kept.written, kept.is_written, (tmp_path / "ring.py").read_text()) == (solved, True, solved)
    assert run([*watch[:1], "1", *watch[2:]]) == 2
    assert "nothing is written in the lesson mesh-and-axes" in capfd.readouterr().err
