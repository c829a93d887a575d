"""The bound by numbers of pieces: never above the best plan, and near enough to say how good a plan is."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.lower_bound import lower_bound, piece_bound
from shardviz.planner.statements.program_planner import ArrayUses
from shardviz.planner.training import Optimizer, Training, with_backward
from shardviz.sharding import Mesh
from tests.planner.exhaustive_programs import least_program_cost
from tests.planner.optimality import KINDS
from tests.planner.random_problems import Draw
from tests.planner.test_program_plans import COLUMNS_THEN_ROWS, LAYER

PROGRAMS = [kind for kind in KINDS if kind.shared]
SIZES = "b=64,t=4096,d=4096,f=14336,k=16,g=4,h=128"


@pytest.mark.parametrize("objective", ["time", "bytes"])
@pytest.mark.parametrize("kind", PROGRAMS, ids=lambda kind: kind.name)
def test_it_is_never_above_the_bound_by_states(kind, objective):
    draw, positive = Draw(random.Random(11), kind), 0
    for _ in range(25):
        problem, placed = draw.problem()
        planner = Planner(problem.mesh, placed, objective)
        pool = AxisPool.of(problem, into_primes=True)
        if not pool.is_finest:
            continue
        pool = replace(pool, may_mask=frozenset(pool.sizes))
        uses = ArrayUses(planner._choices(pool, None), problem)
        bound = piece_bound(uses)
        assert bound <= lower_bound(uses)
        positive += bound > 0
    assert positive > 5


@pytest.mark.parametrize("kind", PROGRAMS[:1], ids=lambda kind: kind.name)
def test_no_plan_that_trying_everything_finds_is_below_it(kind):
    draw = Draw(random.Random(12), kind)
    for _ in range(10):
        problem, placed = draw.problem()
        planner = Planner(problem.mesh, placed)
        pool = AxisPool.of(problem, into_primes=True)
        bound = piece_bound(ArrayUses(planner._choices(pool, None), problem))
        best = least_program_cost(problem, placed, "time", (10**15, 0, 0))
        assert best is not None
        assert planner.prices.parts(bound)["time"] <= best.cost[0]


@pytest.mark.parametrize(
    ("shape", "forward", "train"),
    [
        ((4, 4), 1.5, 1.4),
        pytest.param((8, 8), 2, 1.8, marks=pytest.mark.slow),
    ],
)
def test_how_far_the_plan_of_a_layer_is_from_the_best_is_known_on_large_meshes(shape, forward, train):
    mesh = Mesh(("X", "Y"), shape)
    layer = problem_from_text(LAYER, mesh=mesh, specs=f"A=X__,{COLUMNS_THEN_ROWS}", sizes=SIZES)
    for problem, most in (
        (layer, forward),
        (with_backward(layer, Training(optimizer=Optimizer("adam"))), train),
    ):
        began = time.process_time()
        plan = Planner(mesh).plan(problem)
        assert time.process_time() - began < 10
        assert plan.at_most is not None
        assert 1 < plan.at_most < most
