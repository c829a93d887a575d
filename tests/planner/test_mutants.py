"""The proof can fail: the executor notices plans that are wrong in one place."""

from __future__ import annotations

import random
from collections import Counter

from shardviz.planner import Plan, Planner
from tests.planner.executor import PlanError, Values, prove, values_for
from tests.planner.mutants import mutants
from tests.planner.random_problems import Draw, Kind

KINDS = (
    Kind("two axes", 2),
    Kind("three axes", 3, axis_sizes=(2, 2, 3)),
    Kind("two einsums", 2, parts=2, axis_sizes=(2, 2, 4)),
)


def is_noticed(wrong: Plan, values: dict[str, Values]) -> bool:
    """The executor refuses the plan, or finds other numbers."""
    try:
        prove(wrong, values)
    except (PlanError, ValueError):
        return True
    return False


def survivors(count: int) -> tuple[Counter[str], list[tuple[str, Plan]]]:
    """How many mutants of each kind there are, and those that go unnoticed."""
    tried: Counter[str] = Counter()
    left: list[tuple[str, Plan]] = []
    for seed, kind in enumerate(KINDS):
        draw = Draw(random.Random(seed), kind)
        planned = 0
        while planned < count:
            problem, placed = draw.problem()
            if len(set(problem.result.shape)) < problem.result.rank:
                continue
            planned += 1
            plan = Planner(problem.mesh, placed).plan(problem)
            values = values_for(problem, most=99)
            prove(plan, values)
            for name, wrong in mutants(plan):
                tried[name] += 1
                if not is_noticed(wrong, values):
                    left.append((name, wrong))
    return tried, left


def test_mutants_are_noticed():
    tried, left = survivors(10)
    assert sum(tried.values()) > 300
    assert min(tried.values()) > 0
    assert not left, left[0]
