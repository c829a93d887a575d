"""The proof can fail: the executor notices plans that are wrong in one place."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from tests.planner.executor import PlanError, Values, prove, values_for
from tests.planner.mutants import mutants
from tests.planner.random_problems import Draw, Kind
from tests.planner.test_train_steps_proved import MESH, PROGRAMS

KINDS = (
    Kind("two axes", 2),
    Kind("three axes", 3, axis_sizes=(2, 2, 3)),
    Kind("two einsums", 2, parts=2, axis_sizes=(2, 2, 4)),
    Kind("program of three statements", 2, parts=3, axis_sizes=(2, 2, 4), shared=True),
    Kind("program of five statements", 2, parts=5, axis_sizes=(2, 2, 3), shared=True),
)
TRAININGS = (
    Training("none"),
    Training("dots"),
    Training("layer"),
    Training("layer", Optimizer("adam", over=("X",))),
)
TRAIN_STEPS = tuple((name, training) for name in PROGRAMS for training in TRAININGS)
FEW = (("two layers", TRAININGS[3]), ("a norm", TRAININGS[2]))
"""Train steps whose plans are made wrong in every run of the tests."""

Tried = Counter[str]
Left = list[tuple[str, Plan]]


def is_noticed(wrong: Plan, values: dict[str, Values]) -> bool:
    """The executor refuses the plan, or finds other numbers."""
    try:
        with np.errstate(all="ignore"):
            prove(wrong, values)
    except (PlanError, ValueError):
        return True
    return False


def random_plans(count: int) -> Iterator[tuple[Plan, dict[str, Values]]]:
    """So many plans of each kind, with numbers for their arguments."""
    for seed, kind in enumerate(KINDS):
        draw = Draw(random.Random(seed), kind)
        planned = 0
        while planned < count:
            problem, placed = draw.problem()
            if len(set(problem.result.shape)) < problem.result.rank:
                continue
            planned += 1
            yield Planner(problem.mesh, placed).plan(problem), values_for(problem, most=99)


def train_step(name: str, training: Training) -> tuple[Plan, dict[str, Values]]:
    text, specs, sizes = PROGRAMS[name]
    forward = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    found = plan(with_backward(forward, training))
    return found, values_for(found.problem)


def survivors(count: int, steps: Sequence[tuple[str, Training]]) -> tuple[Tried, Left]:
    """How many mutants of each kind there are of random plans, so many of each kind, and of train steps; and
    those that go unnoticed."""
    tried: Tried = Counter()
    left: Left = []
    for right, values in (*random_plans(count), *(train_step(*step) for step in steps)):
        prove(right, values)
        for name, wrong in mutants(right):
            tried[name] += 1
            if not is_noticed(wrong, values):
                left.append((name, wrong))
    return tried, left


def test_mutants_are_noticed():
    tried, left = survivors(3, ())
    assert sum(tried.values()) > 300
    assert min(tried.values()) > 0
    assert not left, left[0]


def test_mutants_of_train_steps_are_noticed():
    tried, left = survivors(0, FEW)
    assert sum(tried.values()) > 200
    assert not left, left[0]


@pytest.mark.slow
def test_mutants_of_many_train_steps_are_noticed():
    tried, left = survivors(0, TRAIN_STEPS[::3])
    assert sum(tried.values()) > 600
    assert not left, left[0]
