"""Plans that reshard an array: the best there are, and never dearer than Shardy's once it has answered."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from shardviz.compare.adoption import cheaper_plan
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import write_spec
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem import Problem
from shardviz.planner.problem.reading import problem_from_text
from shardviz.targets import TARGETS
from tests.planner.executor import prove
from tests.planner.exhaustive import least_cost
from tests.planner.optimality import _compared
from tests.planner.random_problems import Draw, Kind
from tests.planner.shardy_cost import shardy_seconds

CASES = {
    name: rest
    for name, *rest in (
        re.split(r"  +", line)
        for line in Path(__file__).with_name("shardy_reshards.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
}
DEAREST = (
    "slice_sub_axes_then_swap_between_dims",
    "swap_sub_axes_then_all_to_all_and_all_gather",
    "replace_sub_axes_2",
    "replace_sub_axes_3",
)
"""Shardy's answer was once up to 11 times cheaper than the plan; two have seven prime parts."""


def reshard(name: str) -> Problem:
    """One of the cases with dimensions so long that bytes count, not hops."""
    mesh, shape, specs = CASES[name]
    sizes = [int(size) * (512 if shape.count("x") < 2 else 64) for size in shape.split("x")]
    dims = "abcd"[: len(sizes)]
    return problem_from_text(
        f"{dims}->{dims}",
        mesh=parse_mesh(mesh),
        specs=specs,
        sizes=",".join(f"{dim}={size}" for dim, size in zip(dims, sizes, strict=True)),
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DEAREST else pytest.mark.slow) for name in CASES]
)
def test_no_answer_of_shardys_to_its_own_cases_is_cheaper(worker, name):
    problem = reshard(name)
    answer = worker.ask(problem, TARGETS["shardy"])
    assert (answer.status, answer.error) == ("ok", "")
    placed = place_mesh(assumed_machine(), problem.mesh)
    by_time, by_bytes = (
        price(cheaper_plan(Planner(problem.mesh, placed, objective).plan(problem), [answer], placed), placed)
        for objective in ("given", "bytes")
    )
    assert by_time.serial_seconds <= shardy_seconds(answer, placed, problem) * (1 + 1e-8)
    assert by_bytes.wire_bytes <= sum(each.wire_bytes for each in answer.collectives)


@pytest.mark.parametrize("subscripts", ["ab->ab", "ab->ba"])
def test_shardys_moves_make_a_plan_that_computes_what_it_should(worker, subscripts):
    mesh = parse_mesh("x=2,y=2,z=2,w=16")
    after = "(y) (x w)" if subscripts == "ab->ab" else "(x w) (y)"
    problem = problem_from_text(
        subscripts, mesh=mesh, specs=f"(y w:(4)2 z w:(1)2) _ -> {after}", sizes="a=64,b=32"
    )
    answer = worker.ask(problem, TARGETS["shardy"])
    placed = place_mesh(assumed_machine(), mesh)
    planned = Planner(mesh, placed, "bytes").plan(problem)
    found = cheaper_plan(planned, [answer], placed)
    assert (found.teller, found.optimal) == ("shardy", False)
    assert found.wire_bytes == sum(each.wire_bytes for each in answer.collectives) < planned.wire_bytes
    prove(found)


def test_an_axis_of_four_is_cut_without_asking_anybody():
    """One permute, as Shardy has it: half of x goes to either dimension before."""
    mesh = parse_mesh("x=4,y=2,z=4")
    problem = problem_from_text("ab->ab", mesh=mesh, specs="(z) (y) -> (y z) (x)", sizes="a=64,b=32")
    found = Planner(mesh, objective="bytes").plan(problem)
    assert [step.op for step in found.steps] == ["slice", "einsum", "ppermute"]
    assert found.optimal
    prove(found)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
@pytest.mark.parametrize("objective", ["time", pytest.param("bytes", marks=pytest.mark.slow)])
def test_claims_hold_over_four_parts_of_axes(seed, objective):
    """What is tried one by one has nothing better than a plan that is said to be the best."""
    draw = random.Random(f"{objective} {seed}")
    claimed = 0
    for is_real in (True, False):
        mesh = parse_mesh(draw.choice(("x=4,y=4", "x=2,y=4,z=2")))
        drawn = Draw(draw, Kind("reshard", len(mesh.axis_names), real=is_real))
        placed = drawn.machine(mesh)
        before, after = (drawn.spec("ab", list(mesh.axis_names), pending) for pending in (0.2, 0.0))
        size = 4096 if is_real else 64
        problem = problem_from_text(
            draw.choice(("ab->ab", "ab->ba")),
            mesh=mesh,
            specs=f"{write_spec(before)}->{write_spec(after)}",
            sizes=f"a={size},b={size}",
        )
        found: Plan = Planner(mesh, placed, objective).plan(problem)
        own = _compared(price(found, placed), objective)
        best = least_cost(problem, placed, objective, (own[0], math.inf, math.inf))
        assert best is not None
        if found.optimal:
            claimed += 1
            assert own <= best.cost[: len(own)], problem
        elif found.at_most is not None:
            assert own[0] <= found.at_most * best.cost[0] * (1 + 1e-9), problem
        prove(found)
    assert claimed
