"""A lesson's file: what it says, and which key is wrong and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import ShardvizError
from shardviz.forms.form import CollectiveFields
from shardviz.lessons.course import course, file_names, find, lesson_names
from shardviz.lessons.lesson_file import MAX_TEXT, LessonError, read_lesson

SEE = '''"""
Each device
holds rows.

Look at device 5."""'''


def test_a_file_says_a_lesson(lesson_of):
    lesson = lesson_of(number=7)
    assert (lesson.name, lesson.number, lesson.title) == ("rows", 7, "Rows")
    assert lesson.see == "Each device holds rows.\nLook at device 5."
    assert lesson.program == "print(1)\n"
    assert lesson.setup.specs == ("X_", "__", "X_")
    first, second = lesson.predictions
    assert (first.draft, first.before, first.screen) == (lesson.setup, "", "layout")
    assert (second.draft.specs, second.before, second.screen) == (("XY", "Y_", "X_"), "plan", "plan")
    assert lesson.goal.may_change == ("specs",)
    assert lesson.solution.specs == ("_Y", "Y_", "__")
    assert lesson.solution.einsum == lesson.setup.einsum == "A[I, J] * B[J, K] -> C[I, K]"


def test_what_is_put_over_a_collective_leaves_its_other_keys(lesson_of):
    lesson = lesson_of(
        {
            '[[predict]]\nquestion = "Which': '[setup.collective]\nop = "psum"\ndata = "1,2"\naxis = "X"\n'
            'spec = "X"\n[[predict]]\nquestion = "Which',
            'holds = { A = "A[I, J_Y]" }\ncollectives = ["psum C Y"]': 'ends = { op = "pmax" }',
            'specs = "_Y,Y_->__"': 'collective.op = "pmin"',
        }
    )
    assert lesson.goal.may_change == ("collective",)
    assert lesson.solution.collective == CollectiveFields("pmin", data="1,2", axis="X", spec="X")
    assert lesson.goal.ends.collective == CollectiveFields("pmax", data="1,2", axis="X", spec="X")


@pytest.mark.parametrize(
    ("changes", "complaint", "hint"),
    [
        ({'title = "Rows"': ""}, "title: it is missing", 'write it in quotes: "…"'),
        ({'title = "Rows"': 'titel = "Rows"'}, "titel: there is no such key", "did you mean title?"),
        ({'title = "Rows"': 'title = " "'}, "title: the text is empty", ""),
        (
            {'title = "Rows"': 'title = "R\\u001b[2J"'},
            "title: it has the character '\\x1b', which no terminal shows",
            "leave it out",
        ),
        ({SEE: f'"{"word " * 61}"'}, "see: it has 61 words", "at most 60 are read beside a picture"),
        (
            {'screen = "layout"': 'screen = "layuot"'},
            "screen: 'layuot' is none of layout, plan, step, compiler",
            "did you mean layout?",
        ),
        ({"hints = [": 'hints = ["a", "b", '}, "hints: there are 4", "there may be up to 3"),
        (
            {'mesh = "X=2,Y=4"': 'mesh = "X=2,Y"'},
            "setup.mesh: expected '=' at the end of 'X=2,Y'",
            "write each axis and its size: X=2,Y=4",
        ),
        ({"with.specs": "with.spec"}, "predict.2.with.spec: there is no such key", "did you mean specs?"),
        ({"XY,Y_->X_": "XY"}, "predict.2.with.specs: 'XY' has 2 specs, and there are 3 arrays", "write"),
        (
            {'wrong."8x16" = "That is all of it."': "wrong = {}"},
            "predict.2.wrong: it has 0 answers",
            "there are 1 to 3 likely ones",
        ),
        ({'"psum C Y"': '"psum C"'}, "goal.collectives.1: it is not an operation, an array", "write for ex"),
        (
            {'holds = { A = "A[I, J_Y]" }\ncollectives = ["psum C Y"]': ""},
            "goal: it wants nothing",
            "give one or more of mesh, holds",
        ),
        ({"[solution]": "[[solution]]"}, "solution: it is a list, not a table", "write [solution]"),
        ({'"Rows"': f'"{"x" * MAX_TEXT}"'}, ": it has 64,", "a lesson has at most 64,000"),
        ({'title = "Rows"': f"a{'.a' * 2000} = 1"}, ": a line has more than 1,000 dots", "break it"),
        ({'"Rows"': "[" * 5000}, ": it is not TOML: ", "look at that line"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(lesson_of, changes, complaint, hint):
    with pytest.raises(LessonError) as caught:
        lesson_of(changes)
    said = caught.value.message
    assert said.startswith(f"07-rows.toml: {complaint.removeprefix(': ')}")
    assert said.isprintable()
    assert caught.value.hint.startswith(hint)
    assert caught.value.key == complaint.partition(": ")[0].partition("'")[0] or "'" in complaint


def test_the_course_is_found_by_number_and_name():
    assert len(course()) == len(file_names()) >= 14
    assert [lesson.number for lesson in course()] == list(range(1, len(course()) + 1))
    assert find("2") is find(lesson_names()[1]) is course()[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "there is no lesson 0"),
        ("9" * 5000, "there is no lesson "),
        ("mesh-and-axis", "there is no lesson 'mesh-and-axis'"),
        ("\x1b[2J", "there is no lesson '\\x1b[2J'"),
        ("nowhere/my.toml", "my.toml: it cannot be read: No such file or directory"),
    ],
)
def test_a_lesson_that_there_is_not(text, message):
    with pytest.raises(LessonError) as caught:
        find(text)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff", "it is not text in UTF-8"),
        (b"#" * (4 * MAX_TEXT) + b"##", "it has more than 256,000 bytes"),
        (b"", "title: it is missing"),
    ],
)
def test_a_file_of_ones_own_that_is_no_lesson(tmp_path, content, reason):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises(LessonError, match=rf"(?m)^mine\.toml: {reason}$"):
        find(str(path))


def test_a_file_of_ones_own(tmp_path, lesson_text):
    path = tmp_path / "mine.toml"
    path.write_text(lesson_text, encoding="utf-8")
    assert find(str(path)) == replace(read_lesson(lesson_text, "mine.toml"), source=str(path))
    assert (find(str(path)).name, find(str(path)).number) == ("mine", 0)
    with pytest.raises(LessonError, match="files cannot be opened here"):
        find(str(path), may_read_files=False)
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(LessonError, match=r"folder\.toml: it is not a file"):
        find(str(tmp_path / "folder.toml"))


def test_a_lesson_error_is_a_question_that_was_wrong():
    assert issubclass(LessonError, ShardvizError)
    assert LessonError("a.toml", "", "it is empty").message == "a.toml: it is empty"
