"""Timelines of the plan and of programs, on the machine that prices each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import QuestionError
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.planner.pricing.costs import price
from shardviz.tui.time.timelines import TimelineQuestion, tell_plan, tell_program
from tests.tui.recorded import cpu_answer

TPU = ProblemForm(targets="v5e:2x4")


def asked(scene, subject):
    return TimelineQuestion(subject, scene.shown.machine, scene.targets)


@pytest.mark.parametrize(
    ("form", "machine", "is_assumed"),
    [
        (ProblemForm(), "v5e", True),
        (TPU, "v5e:2x4", False),
        (replace(TPU, machine="v4:2x2x2"), "v4:2x2x2", False),
    ],
)
def test_the_plan_is_told_on_the_machine_of_the_problem(form, machine, is_assumed):
    scene = resolve(form)
    told = tell_plan(asked(scene, scene.plan), scene)
    timeline = told.by("model")
    assert (timeline.machine, told.is_assumed) == (machine, is_assumed)
    assert timeline.seconds == pytest.approx(price(scene.plan, scene.placed).serial_seconds)
    assert told.teller("scheduler") == "plan"


def test_a_target_that_is_no_machine_needs_one():
    scene = resolve(ProblemForm(targets="cpu"))
    with pytest.raises(QuestionError, match="no hardware to time its program on"):
        tell_program(asked(scene, cpu_answer()), cpu_answer(), scene)


@pytest.mark.parametrize(
    ("target", "machine", "told_on"),
    [
        ("cpu", "v4:2x2x2", "v4:2x2x2"),
        ("v5e:2x4", "", "v5e:2x4"),
        ("v5e:2x4", "v4:2x2x2", "v5e:2x4"),
    ],
)
def test_a_program_is_told_on_its_own_hardware_else_on_the_machine_that_is_named(target, machine, told_on):
    scene = resolve(ProblemForm(targets=target, machine=machine))
    answer = replace(cpu_answer(), target=target)
    told = tell_program(asked(scene, answer), answer, scene)
    timeline = told.by("model")
    assert timeline.machine == told_on
    assert {"all-gather-start", "all-reduce.1"} <= {op.name for op in timeline.ops}
    assert told.note
