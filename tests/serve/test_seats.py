"""A lecture: who looks at which process, and who is told what, with sessions that have no process."""

from __future__ import annotations

import asyncio

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.lessons.course import course
from shardviz.serve.lecture import PagePointer
from shardviz.serve.seats import SIZES
from shardviz.serve.session import LEFT
from tests.serve.conftest import visit
from tests.serve.test_rules import TEACHER, NoForks, Silent, served

BEGIN = to_string(Shared(ProblemForm()))
ELSEWHERE = to_string(Shared(ProblemForm(mesh="Z=4"), "plan"))
LEADS = {"type": "leads", "shared": ELSEWHERE, "asks": None, "lens": 3, "step": 2, "round": 0, "layout": []}
LESSON = course()[3]
ASKS = {"number": 0, "question": "Which?", "choices": ["3:4", "2:3"], "answer": "2:3", "is_shown": False}
ASKED = LEADS | {"shared": to_string(Shared(LESSON.setup, "layout", LESSON.name, 1)), "asks": ASKS}
SHOWN = LEADS | {
    "shared": to_string(Shared(LESSON.setup, "layout", LESSON.name, 2)),
    "asks": ASKS | {"is_shown": True},
}


class Told(Silent):
    """A session of which is known what it was told."""

    all: list[Told]

    def __init__(self, string, role, seat, _forks, _notes, hear, ended):
        super().__init__()
        self.begin, self.role, self.seat = string, role, seat
        self.says = lambda said: hear(self, said)
        self.ends = lambda code: ended(self, code)
        self.followed, self.typed, self.is_stopped = [], [], False
        self.all.append(self)

    def follow(self, string, pointer):
        self.followed.append((string, pointer))

    def type(self, data):
        self.typed.append(data)

    async def stop(self):
        self.is_stopped = True


@pytest.fixture
def lecture(monkeypatch):
    """Run a script with the addresses of a lecture in which one may take over: the pupils' and the
    teacher's."""
    monkeypatch.setattr(Told, "all", [], raising=False)
    monkeypatch.setattr("shardviz.serve.seats.Session", Told)
    monkeypatch.setattr("shardviz.serve.seats.ForkServer", NoForks)

    def run(script):
        async def serve():
            async with served(key="secret", sessions=1) as url:
                teacher = visit(f"{url}lead/", Origin=url.rstrip("/"), **TEACHER)
                await script(url, teacher)

        asyncio.run(serve())

    return run


def of(role):
    return [session for session in Told.all if session.role == role]


def draw(session, text):
    session.picture.add(b"\x1b[2J\x1b[H" + text.encode())


def test_all_who_follow_look_at_one_process_for_their_size_and_late_ones_see_what_it_shows(lecture):
    async def script(url, _teacher):
        shown = dict(zip(SIZES, of("follower"), strict=True))
        laptop = shown[100, 30]
        async with visit(url) as first, visit(url) as second:
            await first.until_told(**{"is": "follows"}, size=[100, 30])
            draw(laptop, "before")
            laptop.picture.begin()
            draw(laptop, "whole")
            laptop.picture.add(b" picture")
            await first.until("whole picture")
            await second.until("whole picture")
            async with visit(url) as late:
                await late.until("whole picture")
                assert "before" not in late.text
            await first.press("x")
            await first.resize(40, 60, shown=(46, 24))
            await first.until_told(size=[46, 24])
            draw(shown[46, 24], "small")
            await first.until("small")
        assert len(Told.all) == len(SIZES)
        # All see one picture, so its choices are in nobody's own order.
        assert {session.seat for session in Told.all} == {""}
        assert not any(session.typed for session in Told.all)

    lecture(script)


def test_the_processes_follow_the_teacher_and_a_pupils_words_lead_nobody(lecture):
    async def script(url, teacher):
        async with teacher as lead, visit(url) as pupil:
            await lead.until_told(**{"is": "visits"})
            (leading,) = of("teacher")
            leading.says(LEADS)
            leading.says(LEADS)
            assert of("follower")[0].followed == [(BEGIN, PagePointer()), (ELSEWHERE, PagePointer(3, 2))]
            await pupil.say("take")
            await pupil.until_told(**{"is": "alone"})
            (own,) = of("pupil")
            assert own.begin == ELSEWHERE
            own.says(LEADS | {"shared": BEGIN})
            assert len(of("follower")[0].followed) == 2

    lecture(script)


def test_a_prediction_is_one_of_the_choices_and_the_last_before_the_answer_counts(lecture):
    async def script(url, teacher):
        async with teacher as lead, visit(url, "tab") as pupil:
            await lead.until_told(**{"is": "visits"})
            (leading,) = of("teacher")
            assert (await pupil.until_told(asked=None))["is"] == "follows"
            leading.says(ASKED)
            asked = {"question": "Which?", "choices": ASKS["choices"], "looked": False, "answer": None}
            await pupil.until_told(asked=asked | {"chosen": None})
            await pupil.say("predict", "anything else")
            await pupil.say("predict", "2:3")
            await pupil.say("predict", "3:4")
            await pupil.until_told(asked=asked | {"chosen": "3:4"})
            async with visit(url, "tab") as again:
                await again.until_told(asked=asked | {"chosen": "3:4"})
                leading.says(SHOWN)
                await again.say("predict", "2:3")
                await again.until_told(asked=asked | {"chosen": "3:4", "answer": "2:3"})

    lecture(script)


def test_who_takes_over_has_a_process_until_that_ends_and_the_next_waits_for_it(lecture):
    async def script(url, _teacher):
        async with visit(url, "one") as first, visit(url, "two") as second:
            await first.say("take")
            await first.until_told(**{"is": "alone"})
            (own,) = of("pupil")
            await first.press("x")
            await second.say("take")
            await second.until_told(**{"is": "waits"}, place=1)
            draw(of("follower")[1], "the teacher's")
            await second.until("the teacher's")
            draw(own, "one's own")
            await first.until("one's own")
            assert own.typed == [b"x"]
            own.says({"type": "follows"})
            await first.until_told(**{"is": "follows"})
            await first.until("the teacher's")
            await second.until_told(**{"is": "alone"})
            assert own.is_stopped
            assert [session.seat for session in of("pupil")] == ["one", "two"]
            of("pupil")[1].ends(LEFT)
            await second.until_told(**{"is": "follows"})

    lecture(script)
