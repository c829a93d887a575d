"""The lower bound of a program's plans is never above the best of them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from shardviz.planner.planner import Planner, lower_bound
from shardviz.planner.program_planner import ArrayUses
from shardviz.planner.statements.axis_pool import AxisPool
from tests.planner.exhaustive_programs import least_program_cost
from tests.planner.optimality import KINDS
from tests.planner.random_problems import Draw


@pytest.mark.parametrize(("objective", "figure"), [("time", "time"), ("bytes", "wire_bytes")])
def test_no_plan_that_trying_everything_finds_is_below_it(objective, figure):
    draw, positive = Draw(random.Random(12), next(kind for kind in KINDS if kind.shared)), 0
    for _ in range(10):
        problem, placed = draw.problem()
        planner = Planner(problem.mesh, placed, objective)
        pool = AxisPool.of(problem, into_primes=True)
        pool = replace(pool, may_mask=frozenset(pool.sizes))
        cost = lower_bound(ArrayUses(planner._choices(pool, None), problem))
        bound = planner.prices.figure(cost, figure)
        best = least_program_cost(problem, placed, objective, (10**15, 0, 0))
        assert best is not None
        assert bound <= best.cost[0]
        positive += bound > 0
    assert positive > 5
