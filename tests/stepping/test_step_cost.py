"""What a plan's collectives cost, beside the least."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.notation import parse_mesh
from shardviz.planner import plan, problem_from_text
from shardviz.stepping.step_cost import StepCost, step_cost


def planned(specs, mesh, sizes=""):
    return plan(problem_from_text("bd,df->bf", specs=specs, mesh=parse_mesh(mesh), sizes=sizes))


def test_usual_algorithms_send_the_least_in_more_rounds_than_the_fewest():
    four = planned("XY,YX->XY", "X=4,Y=8")
    assert step_cost(four, 1) == StepCost("ring", 3, 393_216, 2, 393_216)
    assert step_cost(four, 3) == StepCost("ring", 7, 3_670_016, 3, 3_670_016)
    assert step_cost(four, 4) == StepCost("direct", 1, 524_288, 1, 524_288)


@pytest.mark.parametrize("specs", ["_X,X_->__", "X_,__->__", "_X,X_->X_", "X_,__->_X"])
def test_the_least_bytes_are_those_of_the_plan(specs):
    found = planned(specs, "X=8")
    for number, step in enumerate(found.steps, 1):
        if step.wire_bytes:
            assert step_cost(found, number).least_wire_bytes == step.wire_bytes


def test_what_sends_nothing_costs_nothing():
    with pytest.raises(QuestionError, match="sends nothing"):
        step_cost(planned("XY,Y_->X_", "X=2,Y=4"), 1)
