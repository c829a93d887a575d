"""What the server knows of a lecture, and the page that tells the teacher."""

from __future__ import annotations

import re
from html import unescape

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.lessons.attempt import begin, shared_of
from shardviz.lessons.course import course, find
from shardviz.serve.lecture import Lecture, LessonPlace, class_page

LESSON = course()[3]
BEGIN = to_string(shared_of(begin(LESSON), LESSON.screen))


def stands(stage, lesson=LESSON.name, follows=True):
    return {"type": "stands", "lesson": lesson, "stage": stage, "follows": follows}


def predicts(choice, number=0, lesson=LESSON.name):
    return {"type": "predicts", "lesson": lesson, "number": number, "choice": choice}


def page_of(lecture):
    """The words of the page, a row a line."""
    rows = class_page(lecture.shared, lecture.counts).replace("</th>", " ").replace("</td>", " ")
    return unescape(re.sub(r"<meter.*?</meter>|<[^>]*>", "", rows))


def test_the_page_counts_who_is_where_and_what_was_predicted():
    lecture = Lecture(BEGIN)
    for pupil in range(20):
        lecture.hear(pupil, stands(0))
        assert lecture.lead(
            {"type": "leads", "shared": to_string(Shared(LESSON.setup, "layout", LESSON.name, 1))}
        ) == (pupil == 0)
    for pupil in range(19):
        lecture.hear(pupil, stands(1))
        lecture.hear(pupil, predicts("<b>2:3</b>" if pupil % 3 else "3:4"))
    lecture.hear(18, predicts("3:4"))  # chose another
    lecture.hear(0, stands(4, find("2").name, follows=False))
    page = page_of(lecture)
    assert "20 pupils, 19 with you" in page
    assert re.search(r"Predict 1 ◂ you +18", page)
    assert re.search(r"See +1", page)
    assert re.search(f"{re.escape(find('2').title)} +1", page)
    assert "Predict 1 in lesson 4: 19 of 20 have predicted" in page
    assert LESSON.predictions[0].question in page
    assert re.search(r"<b>2:3</b> +12\s+3:4 +7", page)
    assert "<b>2:3</b>" not in class_page(lecture.shared, lecture.counts)


def test_nothing_stays_of_a_pupil_who_leaves():
    lecture = Lecture(BEGIN)
    lecture.hear("one", stands(1))
    lecture.hear("one", predicts("3:4"))
    lecture.leave("one")
    lecture.leave("one")
    assert lecture.counts == Lecture(BEGIN).counts
    assert "0 pupils" in page_of(lecture)


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"type": "stands"},
        stands("1"),
        stands(1, "../etc/passwd.toml"),
        predicts("x", lesson="no-such-lesson"),
        predicts("x", number=10**9),
        predicts(3),
        {"type": "leads", "shared": BEGIN},
    ],
)
def test_what_no_page_of_a_pupil_says_counts_nothing(said):
    lecture = Lecture(BEGIN)
    lecture.hear("one", said)
    assert lecture.counts == Lecture(BEGIN).counts
    assert lecture.string == BEGIN


def test_a_string_that_is_none_leads_nowhere():
    lecture = Lecture(BEGIN)
    assert not lecture.lead({"type": "leads", "shared": BEGIN[:-1]})
    assert not lecture.lead(stands(1))
    assert lecture.string == BEGIN


def test_a_problem_without_a_lesson_has_no_stages():
    lecture = Lecture(to_string(Shared(ProblemForm())))
    lecture.hear("one", stands(0, ""))
    lecture.hear("two", stands(99))
    lecture.hear("two", predicts("x", number=9))
    page = page_of(lecture)
    assert "A problem in no lesson" in page
    assert "Where they are" not in page
    assert re.search(f"{re.escape(LESSON.title)} +1", page)


def test_predictions_come_back_with_the_tab_whose_connection_broke():
    lecture = Lecture(BEGIN)
    assert lecture.enter("one", "tab") == {}
    lecture.hear("one", stands(1))
    lecture.hear("one", predicts("3:4"))
    kept = {LessonPlace(LESSON.name, 0): "3:4"}
    # The page is opened again before the server has noticed that the one before is gone.
    assert lecture.enter("two", "tab") == kept
    lecture.hear("two", stands(1))
    assert "1 of 2 have predicted" in page_of(lecture)
    lecture.leave("one")
    lecture.leave("two")
    assert "0 pupils" in page_of(lecture)
    assert lecture.enter("three", "another") == {}
    assert lecture.enter("four", "tab") == kept


def test_only_so_many_tabs_are_kept(monkeypatch):
    monkeypatch.setattr("shardviz.serve.lecture.MAX_TABS", 2)
    lecture = Lecture(BEGIN)
    for pupil in range(3):
        lecture.enter(pupil, f"tab {pupil}")
        lecture.hear(pupil, predicts("3:4"))
        lecture.leave(pupil)
    assert [bool(lecture.enter(f"again {each}", f"tab {each}")) for each in range(3)] == [False, True, True]
