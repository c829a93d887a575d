"""Whether a lesson keeps its word: each way in which it may not, by its key."""

from __future__ import annotations

import pytest

from shardviz.lessons.checking import Complaint, complaints
from shardviz.lessons.course import course
from tests.conftest import one_in

OWN_COLLECTIVE = '[setup.collective]\nop = "psum"\naxis = "X"\nshape = "8"\n'
COLLECTIVE_GOAL = 'holds = { A = "A[I, J_Y]" }\ncollectives = ["psum C Y"]'


@pytest.mark.parametrize("lesson", one_in(4, course()), ids=lambda lesson: lesson.name)
def test_every_lesson_of_the_course_keeps_its_word(lesson):
    assert complaints(lesson) == []


def test_a_lesson_that_is_right(lesson_of):
    assert complaints(lesson_of()) == []


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"slices A 5": "slice A 5"}, "predict.1.ask", "there is no measure 'slice' (did you mean slices?)"),
        (
            {'wrong."0:4, 0:16"': 'wrong."[4:8, 0:16]"'},
            "predict.1.wrong.'[4:8, 0:16]'",
            "it is right: the answer is 4:8, 0:16",
        ),
        (
            {'ask = "slices A 5"': 'ask = "slices A 5"\ntolerance = "5 %"'},
            "predict.1.tolerance",
            "only a number can be typed; the answer is 4:8, 0:16",
        ),
        (
            # 512 B in all, and 500 is within a twentieth of it.
            {
                'ask = "slices A 5"': 'ask = "bytes A"\ntolerance = "5 %"',
                'wrong."0:4, 0:16" =': 'wrong."500 B" =',
                'wrong."4:8, 0:8" =': 'wrong."256 B" =',
            },
            "predict.1.wrong.'500 B'",
            "it is right: the answer is 512 B",
        ),
        (
            {'before = "plan"\n': 'before = "plan"\nagain = {with.mesh = "X=4,Y=2", wrong."2x8" = "No."}\n'},
            "predict.2.again.wrong.2x8",
            "it is right: the answer is 2×8",
        ),
        (
            {'wrong."0:4, 0:16"': 'wrong."4:8,0:8"'},
            "predict.1.wrong.'4:8, 0:8'",
            "it says the same as '4:8,0:8'",
        ),
        (
            {'screen = "layout"': 'screen = "step"'},
            "screen",
            "there is nothing to step through: no collective is set, and the plan sends nothing",
        ),
        (
            {'with.specs = "XY,Y_->X_"': 'with.specs = "XY,Y->X_"'},
            "predict.2.with",
            "1 dimension, but the array has 2",
        ),
        (
            {COLLECTIVE_GOAL: 'at_most.devices = "many"'},
            "goal.at_most.devices",
            "'many' is not a whole number",
        ),
        ({COLLECTIVE_GOAL: 'ends.data = "1,"'}, "goal.ends", "data: expected another number"),
        (
            {'"_Y,Y_->__"': '"_X,Y_->__"'},
            "goal",
            "the solution does not meet it: device 0 holds columns 0:8 of A; the goal wants 0:4",
        ),
        ({COLLECTIVE_GOAL: 'holds = { A = "X_" }'}, "goal", "the start meets it already"),
        (
            {'specs = "_Y,Y_->__"': 'specs = "_Y,Y_->__"\ndtype = "s8"'},
            "goal.may_change",
            "the solution changes what is not in it: the dtype is s8; the goal keeps f32",
        ),
        (
            {'collectives = ["psum C Y"]': 'collectives = ["psum C Y", "all_to_all C Y"]'},
            "goal",
            "the solution does not meet it: the plan sends nothing more; the goal wants to exchange parts",
        ),
        (
            {'[[predict]]\nquestion = "Which': OWN_COLLECTIVE + '[[predict]]\nquestion = "Which'},
            "goal.may_change",
            "the solution changes what is not in it: only the collective may change",
        ),
        ({"print(1)": "print(1"}, "program", "line 1: '(' was never closed"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(lesson_of, changes, key, reason):
    found = complaints(lesson_of(changes))
    assert [(each.key, each.reason.startswith(reason)) for each in found][:1] == [(key, True)], found


def test_a_setup_with_a_fault_is_the_only_complaint(lesson_of):
    lesson = lesson_of(
        {'[[predict]]\nquestion = "Which': '[setup.collective]\nop = "sum"\n[[predict]]\nquestion = "Which'}
    )
    (complaint,) = complaints(lesson)
    assert complaint.key == "setup.collective"
    assert complaint.reason.startswith("operation: unknown operation 'sum'")
    assert isinstance(complaint, Complaint)
