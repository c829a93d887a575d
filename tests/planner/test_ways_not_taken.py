"""The figures of the way not taken at a statement of a program."""

from __future__ import annotations

import random
import re

import pytest

from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.program_planner import planned_program
from shardviz.sharding import Mesh
from tests.planner.optimality import KINDS
from tests.planner.random_problems import Draw

MESH = Mesh(("X",), (4,))
TEXT = "P = A[b,d] * W[d,f]; Y = silu(P) * P"
B, D, F = 4096, 256, 1024


def reasons(text, specs, objective="bytes", sizes=f"b={B},d={D},f={F}"):
    problem = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    return {
        f"{step.op} {step.array}": step.reason for step in Planner(MESH, None, objective).plan(problem).steps
    }


def test_the_bytes_of_the_way_that_leaves_a_weight_split():
    """Rows of A would be exchanged for columns, and the sums of P scattered, instead of W gathered."""
    found = reasons(TEXT, "A=X_,W=X_,Y=X_")["all_gather W"]
    gathered, instead = D * F * 2 * 3 // 4, B // 4 * D * 2 * 3 // 4 + B * F * 2 * 3 // 4
    assert f"leaving it split would send {instead - gathered:,} bytes more" in found
    assert found.endswith(" with the later steps unchanged.")


def test_copies_that_later_statements_take_are_made_all_the_same():
    """H takes W gathered, and G would have to gather it if H did not."""
    found = reasons("H = A[b,d] * W[d,f]; G = B[b,d] * W; Y = H + G", "A=X_,B=X_,W=X_,Y=X_")
    instead = B // 4 * D * 2 * 3 // 4 + B * F * 2 * 3 // 4
    assert f"leaving it split would send {instead:,} bytes more" in found["all_gather W"]


def test_a_copy_that_is_held_costs_nothing():
    """The second statement finds W as the first has gathered it."""
    found = reasons("H = A[b,d] * W[d,f]; G = H * W; Y = silu(H) * H", "A=X_,W=X_,Y=X_")
    assert sum(name.startswith("all_gather W") for name in found) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.shared], ids=lambda kind: kind.name)
def test_no_way_not_taken_is_better_than_the_best_plan(kind):
    """Of plans that are the best there are, by the search that tries everything (`test_optimal`)."""
    draw, compared = Draw(random.Random(5), kind), 0
    for _ in range(20):
        problem, placed = draw.problem()
        planner = Planner(problem.mesh, placed, anywhere=True)
        if not planner.plan(problem).optimal:
            continue
        pool = AxisPool.of(problem)
        for planned in planned_program(planner._choices(pool, None), problem)[1]:
            for dim in planned.part.einsum.dims:
                for axis in pool.sizes:
                    other = planned.keeping(dim, (axis,))
                    assert other is None or other.seconds > -1e-12
                    compared += other is not None
    assert compared > 50


def test_programs_say_why_with_figures():
    text = "H = A[b,d] * W1[d,f]; G = A * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
    found = reasons(text, "A=X_,W1=X_,W2=X_,W3=_X,Y=X_", "given")
    gathers = [reason for name, reason in found.items() if name.startswith("all_gather W")]
    assert len(gathers) == 3
    assert all(re.search(r"would take [\d.]+ µs more and send [\d,]+ bytes more", each) for each in gathers)
