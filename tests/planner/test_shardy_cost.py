"""Shardy's answers that do what the plan does cost what the plan costs."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from shardviz.targets import TARGETS
from tests.planner.shardy_cost import shardy_seconds

MESH = Mesh(("X", "Y"), (2, 4))
PLACED = place_mesh(assumed_machine(), MESH)


@pytest.mark.parametrize(
    ("text", "specs", "sizes"),
    [
        ("bd,df->bf", "X Y, Y _ -> X _", "b=1024,d=4096,f=2048"),
        ("bd->db", "X Y -> Y X", "b=1024,d=4096"),
        ("Y = silu(A[b,d]) + R[b,d]", "A=X Y,R=X Y", "b=1024,d=4096"),
        (
            "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]",
            "X=X _,W1=_ Y,W2=_ Y,W3=Y _,Y=X _",
            "b=1024,d=4096,f=2048",
        ),
    ],
)
def test_the_same_steps_cost_the_same(worker, text, specs, sizes):
    problem = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    answer = worker.ask(problem, TARGETS["shardy"])
    assert (answer.status, answer.error) == ("ok", "")
    assert shardy_seconds(answer, PLACED, problem) == pytest.approx(
        price(plan(problem), PLACED).serial_seconds
    )
