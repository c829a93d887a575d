"""What the server knows of a lecture, and the page that tells the teacher."""

from __future__ import annotations

import re
from html import unescape

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.lessons.attempt import begin, shared_of
from shardviz.lessons.course import course, find
from shardviz.serve.lecture import Lecture, class_page

LESSON = course()[3]
BEGIN = to_string(shared_of(begin(LESSON), LESSON.screen))


def stands(stage, lesson=LESSON.name):
    return {"type": "stands", "lesson": lesson, "stage": stage}


def predicts(choice, number=0, lesson=LESSON.name):
    return {"type": "predicts", "lesson": lesson, "number": number, "choice": choice}


def leads(stage):
    """What the teacher's page says at a stage; at 1 it asks the first question, at 2 it shows the answer."""
    shared = to_string(Shared(LESSON.setup, "layout", LESSON.name, stage))
    asks = {"number": 0, "question": "Which?", "choices": ["3:4", "<b>2:3</b>"], "answer": "3:4"}
    return {
        "type": "leads",
        "shared": shared,
        "asks": asks | {"is_shown": stage == 2} if stage in (1, 2) else None,
    }


def entered(*seats):
    lecture = Lecture(BEGIN)
    for seat in seats:
        lecture.enter(seat)
    return lecture


def page_of(lecture):
    """The words of the page, a row a line."""
    rows = class_page(lecture.shared, lecture.counts).replace("</th>", " ").replace("</td>", " ")
    return unescape(re.sub(r"<meter.*?</meter>|<[^>]*>", "", rows))


def test_the_page_counts_who_is_where_and_what_was_predicted():
    lecture = entered(*map(str, range(20)))
    assert [lecture.lead(leads(1)) for _ in range(2)] == [True, False]
    for pupil in range(19):
        lecture.predict(str(pupil), "<b>2:3</b>" if pupil % 3 else "3:4")
    lecture.predict("18", "<b>2:3</b>")
    lecture.predict("18", "3:4")  # chose another
    lecture.hear("0", stands(4, find("2").name))
    page = page_of(lecture)
    assert "20 pupils, 19 with you" in page
    assert re.search(r"Predict 1 ◂ you +19", page)
    assert re.search(f"{re.escape(find('2').title)} +1", page)
    assert "Predict 1 in lesson 4: 19 of 20 have predicted" in page
    assert LESSON.predictions[0].question in page
    assert re.search(r"<b>2:3</b> +12\s+3:4 +7", page)
    assert "<b>2:3</b>" not in class_page(lecture.shared, lecture.counts)


def test_the_page_marks_the_answer_when_the_teacher_has_shown_it_and_then_none_is_predicted():
    lecture = entered("one", "two")
    lecture.lead(leads(1))
    lecture.predict("one", "3:4")
    assert "✓" not in page_of(lecture)
    lecture.lead(leads(2))
    lecture.predict("two", "3:4")
    lecture.hear("two", predicts("3:4"))
    assert re.search(r"3:4 ✓ +1", page_of(lecture))
    lecture.lead(leads(3))
    assert "3:4 ✓" in page_of(lecture)


def test_who_looks_before_predicting_is_counted_as_that_and_predicts_no_more():
    lecture = entered("looks", "predicts first")
    lecture.lead(leads(1))
    lecture.hear("predicts first", predicts("3:4"))
    for seat in ("looks", "predicts first"):
        lecture.hear(seat, stands(2))
        lecture.follow(seat)
        lecture.predict(seat, "<b>2:3</b>")
        assert lecture.question_for(seat)["looked"]
    page = page_of(lecture)
    assert re.search(r"3:4 +1\s+looked before predicting +1", page)
    assert "1 of 2 have predicted" in page


def test_nothing_stays_of_a_pupil_who_leaves():
    lecture = entered("one")
    lecture.hear("one", stands(1))
    lecture.hear("one", predicts("3:4"))
    lecture.leave("one")
    lecture.leave("one")
    lecture.hear("one", predicts("3:4"))
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
    lecture = entered("one")
    lecture.hear("one", said)
    assert lecture.counts == entered("one").counts
    assert lecture.string == BEGIN


def test_a_string_that_is_none_leads_nowhere():
    lecture = Lecture(BEGIN)
    assert not lecture.lead({"type": "leads", "shared": BEGIN[:-1]})
    assert not lecture.lead(stands(1))
    assert lecture.string == BEGIN


def test_a_problem_without_a_lesson_has_no_stages():
    lecture = Lecture(to_string(Shared(ProblemForm())))
    lecture.enter("one")
    lecture.enter("two")
    lecture.hear("one", stands(0, ""))
    lecture.hear("two", stands(99))
    lecture.hear("two", predicts("x", number=9))
    page = page_of(lecture)
    assert "A problem in no lesson" in page
    assert "Where they are" not in page
    assert re.search(f"{re.escape(LESSON.title)} +1", page)


def test_predictions_come_back_to_the_seat_whose_connection_broke():
    lecture = entered("seat")
    lecture.lead(leads(1))
    lecture.predict("seat", "3:4")
    # The page is opened again before the server has noticed that the one before is gone.
    lecture.enter("seat")
    assert lecture.question_for("seat")["chosen"] == "3:4"
    assert "1 of 1 have predicted" in page_of(lecture)
    lecture.leave("seat")
    assert "0 pupils" in page_of(lecture)
    lecture.enter("another")
    lecture.enter("seat")
    assert [lecture.question_for(each)["chosen"] for each in ("another", "seat")] == [None, "3:4"]


def test_only_so_many_seats_are_kept(monkeypatch):
    monkeypatch.setattr("shardviz.serve.lecture.MAX_SEATS", 2)
    seats = [f"seat {number}" for number in range(3)]
    lecture = entered(*seats)
    lecture.lead(leads(1))
    for seat in seats:
        lecture.predict(seat, "3:4")
        lecture.leave(seat)
    for seat in seats:
        lecture.enter(seat)
    assert [lecture.question_for(seat)["chosen"] for seat in seats] == [None, "3:4", "3:4"]
