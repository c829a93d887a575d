"""Shardy's way to split the arrays in between, in place of a plan that costs more."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from shardviz.compare.adoption import cheaper_plan, split_as
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.targets import TARGETS

MESH = Mesh(("X", "Y"), (2, 4))
PLACED = place_mesh(assumed_machine(), MESH)
GATED = "H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]"
PROBLEM = problem_from_text(GATED, mesh=MESH, sizes="b=1024,d=4096,f=16384")
WHOLE = {"H": PartitionSpec((("X",), ()))}


@pytest.fixture
def worse():
    """A plan that has H whole over Y, as if the planner had found nothing better."""
    found = plan(split_as(PROBLEM, WHOLE), PLACED)
    return replace(found, problem=PROBLEM, optimal=False, at_most=1.5)


def test_shardy_tells_how_it_splits_what_each_statement_makes(worker):
    answer = worker.ask(PROBLEM, TARGETS["shardy"])
    split = PartitionSpec((("X",), ("Y",)))
    assert dict(answer.splits) == {
        "H": split,
        "G": split,
        "Y_1": split,
        "Y_2": split,
        "Y": PartitionSpec((("X",), ())),
    }


def test_a_plan_that_costs_more_splits_as_shardy_does(worker, worse):
    answer = worker.ask(PROBLEM, TARGETS["shardy"])
    found = cheaper_plan(worse, [answer], PLACED)
    assert (found.teller, found.optimal, found.at_most) == ("shardy", False, 1.5)
    assert found.problem == PROBLEM
    assert price(found, PLACED).serial_seconds < price(worse, PLACED).serial_seconds
    assert [step.op for step in found.collectives] == ["psum"]


def test_a_plan_stays_where_it_costs_no_more_or_is_the_best(worker, worse):
    answer = worker.ask(PROBLEM, TARGETS["shardy"])
    best = plan(PROBLEM, PLACED)
    for kept in (best, replace(best, optimal=False)):
        assert cheaper_plan(kept, [answer], PLACED) is kept
    proved = replace(worse, optimal=True)
    assert cheaper_plan(proved, [answer], PLACED) is proved


def test_only_shardy_is_followed(worse):
    other = SimpleNamespace(target="cpu", splits=(("H", PartitionSpec((("X",), ("Y",)))),))
    assert cheaper_plan(worse, [other], PLACED) is worse


def test_what_is_said_stays_as_it_is():
    wanted = split_as(PROBLEM, {"Y": PartitionSpec(((), ("X",))), **WHOLE})
    assert wanted.result == PROBLEM.result
    assert wanted.parts[0].result.spec == WHOLE["H"]
