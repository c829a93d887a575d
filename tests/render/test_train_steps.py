"""A train step in words: phases as headings, one line for each parameter's update, the optimizer's state."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.training import with_backward
from shardviz.render.palette import PLAIN
from shardviz.render.plan_pages import explain_view
from shardviz.render.plan_view import program_words

MESH = parse_mesh("X=4")


def cost(optimizer: str = "adam", remat: str = "none", dtype: str = "bf16") -> PlanCost:
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    forward = problem_from_text(text, mesh=MESH, specs="X=X_,W1=X_,W2=_X,Y=X_", dtype=dtype)
    problem = with_backward(forward, parse_training(True, remat, optimizer, MESH))
    placed = place_mesh(assumed_machine(), MESH)
    return price(plan(problem, placed), placed)


def page(found: PlanCost) -> list[str]:
    return [line.plain.rstrip() for line in explain_view(found, 100, PLAIN)]


def test_phases_are_headings_in_their_order():
    lines = page(cost(remat="layer"))
    headings = [line.strip() for line in lines if line.strip() in ("forward", "backward", "optimizer")]
    assert headings == ["forward", "backward", "optimizer"]
    assert lines[0].startswith("program of 3 statements, backward, remat layer, adam  mesh X=4")


def test_the_update_of_a_parameter_is_one_line():
    found = cost()
    lines = page(found)
    last = len(found.steps)
    for numbers, update in (
        (f"{last - 7}–{last - 4}", "W1_new[d_X, f] = adam(W1, dW1)"),
        (f"{last - 3}–{last}", "W2_new[f, d_X] = adam(W2, dW2)"),
    ):
        assert any(line.startswith(f" {numbers}  {update}") and " of HBM " in line for line in lines)
    assert not any("W1_mean" in line for line in lines)


@pytest.mark.parametrize("optimizer", ["adam", "adam,moments=bf16,over=X", "sgd", "sgd,master=none", "none"])
def test_the_optimizer_is_named(optimizer):
    problem = cost(optimizer).plan.problem
    said = program_words(problem)
    assert said.endswith(", backward" + (f", {optimizer}" if optimizer != "none" else ""))
