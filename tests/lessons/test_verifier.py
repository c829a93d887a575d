"""What of a lesson is asked of JAX, and that an answer which differs is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardviz.collectives.frames import Frames
from shardviz.hlo.collective import Collective
from shardviz.lessons.lesson_file import read_lesson
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import resolve_once
from shardviz.lessons.verifier import (
    ArraysQuestion,
    PlanQuestion,
    RunQuestion,
    jax_questions,
)
from shardviz.reports.target_result import ExecutionResult, HeldArray, TargetResult
from shardviz.sharding import Layout
from shardviz.stepping.collective_run import compare_with_jax

LESSON = """
title = "Rows"
see = "An array over devices."
screen = "layout"
explain = "Its rows are split."
[setup]
mesh = "X=2,Y=2"
einsum = "A[I_X, J] * B[J, K] -> C[I_X, K]"
sizes = "I=8,J=4,K=2"
dtype = "f32"
[[predict]]
question = "Which part does device 2 hold?"
ask = "slices A 2"
wrong."0:4, 0:4" = "That is device 0's."
[[predict]]
question = "What is sent?"
ask = "collectives"
wrong."psum C X" = "Nothing is summed."
[[predict]]
question = "In which case is it?"
ask = "case"
wrong."2" = "The contracted dimension is whole."
[goal]
text = "Split the columns."
holds = { A = "_X" }
[solution]
einsum = "A[I, J_X] * B[J, K] -> C[I, K]"
"""
COLLECTIVE = """
title = "A sum"
see = "Two numbers."
screen = "step"
explain = "They are added."
[setup]
mesh = "i=2"
[setup.collective]
op = "psum"
data = "3,4"
[[predict]]
question = "What does device 0 end with?"
ask = "result 0"
wrong."3" = "That is its own."
[goal]
text = "Gather."
ends = { op = "all_gather" }
[solution]
collective = { op = "all_gather" }
"""
ALL_REDUCE = Collective("all-reduce", "all-reduce.1", ("X",), None, (8, 2), (8, 2), "f32", 64, 64)


def held(layout: Layout) -> HeldArray:
    return HeldArray(layout.shard_shape, 32, tuple((each.id, each.slices) for each in layout))


def test_what_jax_can_be_asked():
    asked = jax_questions(read_lesson(LESSON, "rows.toml"))
    assert [(question.key, type(question)) for question in asked] == [
        ("predict.1.ask", ArraysQuestion),
        ("predict.2.ask", PlanQuestion),
        ("goal.holds.A", ArraysQuestion),
    ]


@pytest.mark.parametrize("place", [0, 2])
def test_a_layout_that_differs_is_told(place):
    question = jax_questions(read_lesson(LESSON, "rows.toml"))[place]
    (array,) = question.arrays
    ours = held(Layout(array, question.mesh))
    assert question.disagreement([ours]) == ""
    devices = [(device, ((4, 8), (0, 4)) if device < 2 else ((0, 4), (0, 4))) for device, _ in ours.devices]
    assert "device 0 holds" in question.disagreement([replace(ours, devices=tuple(devices))])
    assert question.disagreement([HeldArray(error="no")]) == "JAX refuses it: no"


def test_one_of_the_partitioners_has_to_send_the_same():
    question = jax_questions(read_lesson(LESSON, "rows.toml"))[1]
    same, silent = TargetResult("cpu", "ok"), TargetResult("shardy", "error", error="no")
    assert question.disagreement([silent, same]) == ""
    assert question.disagreement([silent]) == "shardy gives no answer: no"
    other = replace(question, plan=resolve_once(read_lesson(LESSON, "rows.toml").solution).plan)
    assert "gets by without the plan's all-gather over X" in other.disagreement([same])


def test_of_a_time_jax_is_asked_what_is_sent():
    timed = LESSON.replace('"collectives"', '"seconds"').replace('"psum C X"', '"1 s"').replace("f32", "bf16")
    question = jax_questions(read_lesson(timed, "rows.toml"))[1]
    assert isinstance(question, PlanQuestion)
    assert question.disagreement([TargetResult("shardy", "ok")]) == ""
    timed = COLLECTIVE.replace('"result 0"', '"seconds"').replace('wrong."3"', 'wrong."1 s"')
    assert isinstance(jax_questions(read_lesson(timed, "sum.toml"))[0], RunQuestion)


def test_of_a_train_step_jax_is_asked_how_many_there_are_of_a_kind():
    text = LESSON.replace('dtype = "f32"', 'dtype = "f32"\nbackward = "yes"').replace("B[J, K]", "B[J, K_Y]")
    text = (
        text.replace('"case"', '"devices"')
        .replace('"collectives"', '"count psum"')
        .replace('"psum C X"', '"7"')
    )
    asked = [each for each in jax_questions(read_lesson(text, "rows.toml")) if each.key == "predict.2.ask"]
    (question,) = asked
    number = int(compute("count psum", read_lesson(text, "rows.toml").setup).text)
    assert number
    same = TargetResult("shardy", "ok", collectives=(ALL_REDUCE,) * number)
    more = replace(same, collectives=(*same.collectives, replace(ALL_REDUCE, op="all-to-all")))
    assert question.disagreement([same]) == question.disagreement([more]) == ""
    told = question.disagreement([TargetResult("shardy", "ok")])
    assert told == f"the answer is {number}; JAX gives 0"
    timed = text.replace('"count psum"', '"seconds"').replace('wrong."7"', 'wrong."7 s"')
    keys = [each.key for each in jax_questions(read_lesson(timed.replace("f32", "bf16"), "rows.toml"))]
    assert "predict.2.ask" not in keys


def test_numbers_that_differ_are_told():
    question = jax_questions(read_lesson(COLLECTIVE, "sum.toml"))[0]
    assert isinstance(question, RunQuestion)
    asked = question.question
    frames = Frames(asked.schedule, asked.operation, asked.layout.mesh, asked.shards)

    def told(number):
        ran = ExecutionResult("cpu", "ok", np.full((2, 1), number, asked.shards.dtype))
        return question.disagreement(compare_with_jax(asked, frames, ran))

    assert told(7) == ""
    assert told(8) == "JAX ends with 8 where ours is 7; device 0 first"
