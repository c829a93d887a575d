"""The questions of a session: each once, the newest first, and what tells two apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import ResolvedProblem, resolve
from shardviz.forms.summary import (
    KEPT,
    AskedQuestions,
    is_same_question,
    what_differs,
)

FIRST = ProblemForm(targets="none")


def asked(**fields: object) -> ResolvedProblem:
    return resolve(replace(FIRST, **fields))


def test_the_newest_is_first_and_one_that_is_asked_again_stands_once():
    questions = AskedQuestions()
    first, second = asked(), asked(mesh="X=4,Y=2")
    for each in (first, second, asked(targets="shardy")):
        questions.take(each)
    assert [each.draft.mesh for each in questions.newest_first] == ["X=2,Y=4", "X=4,Y=2"]
    assert questions.newest_first[0].draft.targets == "shardy"
    assert questions.before(first) == (second,)
    assert len(questions.before(asked(mesh="X=8,Y=1"))) == 2


def test_the_oldest_go(monkeypatch):
    monkeypatch.setattr("shardviz.forms.summary.KEPT", 3)
    questions = AskedQuestions()
    for size in range(1, 6):
        questions.take(asked(sizes=f"b={1024 * size}"))
    assert [each.draft.sizes for each in questions.newest_first] == ["b=5120", "b=4096", "b=3072"]
    assert KEPT >= 10


@pytest.mark.parametrize(
    ("fields", "is_same"),
    [
        ({}, True),
        ({"targets": "shardy"}, True),
        ({"machine": "v5e:2x4"}, False),
        ({"dtype": "f32"}, False),
        ({"objective": "bytes"}, False),
        ({"device_order": "7,6,5,4,3,2,1,0"}, False),
    ],
)
def test_targets_alone_make_no_other_question(fields, is_same):
    assert is_same_question(asked(), asked(**fields)) is is_same


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mesh": "X=4,Y=2"}, ["X=4 Y=2"]),
        ({"specs": ("X_", "_Y", "XY"), "dtype": "f32"}, ["X_,_Y->XY", "f32"]),
        ({"machine": "v5e:2x4"}, ["on v5e:2x4"]),
        ({"targets": "shardy"}, ["bd,df->bf", "XY,Y_->X_", "X=2 Y=4", "bf16"]),
    ],
)
def test_what_differs(fields, words):
    assert [part.text for part in what_differs(asked(**fields), asked())] == words


def test_a_question_that_only_lacks_something_is_told_whole():
    words = [part.text for part in what_differs(asked(), asked(machine="v5e:2x4"))]
    assert words[:2] == ["bd,df->bf", "XY,Y_->X_"]


def test_the_cost_is_that_of_the_plan_on_the_machine():
    from shardviz.planner.pricing.costs import price

    resolved = asked(machine="v5e:2x4")
    assert resolved.cost == price(resolved.plan, resolved.placed)
    assert resolved.cost is resolved.cost
    assert resolved.cost.machine.name == "v5e:2x4"
