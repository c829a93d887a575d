"""A lecture's connections: who is told what, with sessions that have no process."""

from __future__ import annotations

import asyncio

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.lessons.course import find
from shardviz.serve.lecture import LessonPlace, PagePointer
from tests.serve.conftest import visit
from tests.serve.test_rules import Silent, served

BEGIN = to_string(Shared(ProblemForm()))
ELSEWHERE = to_string(Shared(ProblemForm(mesh="Z=4"), "plan"))
LEADS = {"type": "leads", "shared": ELSEWHERE, "lens": 3, "step": 2, "round": 0}
PREDICTS = {"type": "predicts", "lesson": find("4").name, "number": 0, "choice": "3:4"}


class Told(Silent):
    """A session of which is known what it was told."""

    all: list[Told]

    def __init__(self, words, _websocket, _notes, hear):
        self.begin, self.role = words
        self.said = lambda said: hear(self, said)
        self.followed = []
        self.remembered = []
        self.all.append(self)

    def follow(self, string, pointer):
        self.followed.append((string, pointer))

    def remember(self, predictions):
        self.remembered.append(predictions)


@pytest.fixture
def lecture(monkeypatch):
    """Run a script with the addresses of a lecture: the pupils' and the teacher's."""
    monkeypatch.setattr(Told, "all", [], raising=False)
    monkeypatch.setattr("shardviz.serve.server.Session", Told)

    def run(script):
        async def serve():
            async with served(key="key") as url:
                await script(url, f"{url}key/")

        asyncio.run(serve())

    return run


async def opened(count):
    """The sessions, as soon as so many have been opened, each with all that it is told at first."""
    while len(Told.all) < count or not Told.all[-1].followed:
        await asyncio.sleep(0.001)
    return Told.all


def test_a_page_that_is_opened_again_goes_on_where_the_teacher_is(lecture):
    async def script(url, secret):
        origin = url.rstrip("/")
        async with visit(url):
            async with visit(secret, Origin=origin):
                pupil, teacher = await opened(2)
                assert [pupil.role, teacher.role] == ["pupil", "teacher"]
                assert pupil.followed == [(BEGIN, PagePointer())]
                teacher.said(LEADS)
                teacher.said(LEADS)
                assert pupil.followed[1:] == [(ELSEWHERE, PagePointer(3, 2))]
                teacher.said(LEADS | {"round": 4})
                assert pupil.followed[2:] == [(ELSEWHERE, PagePointer(3, 2, 4))]
                pupil.said(LEADS | {"shared": BEGIN})  # a pupil leads nobody
            async with visit(secret, Origin=origin), visit(url):
                *_, teacher, late = await opened(4)
                assert {teacher.begin, late.begin} == {ELSEWHERE}
                assert late.followed == [(ELSEWHERE, PagePointer(3, 2, 4))]
                assert len(pupil.followed) == 3

    lecture(script)


def test_a_pupil_whose_connection_breaks_has_the_predictions_in_the_same_tab(lecture):
    async def script(url, _secret):
        async with visit(url, "mine"):
            (pupil,) = await opened(1)
            pupil.said(PREDICTS)
        async with visit(url, "mine"), visit(url, "yours"):
            found = (await opened(3))[1:]
            kept = {LessonPlace(PREDICTS["lesson"], 0): "3:4"}
            assert sorted(map(bool, (each.remembered[0] for each in found))) == [False, True]
            assert kept in [each.remembered[0] for each in found]

    lecture(script)
