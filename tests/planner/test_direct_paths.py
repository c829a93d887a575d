"""Direct moves between states over many axes: they lead to the goal, one operation after the other."""

from __future__ import annotations

import random

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.paths import MOST_SOURCES, ArrayKind, DirectPaths
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, PartitionSpec
from tests.planner.executor import prove

MESH = Mesh(tuple("ABCDEF"), (2,) * 6)
SPACE = StateSpace(MESH.shape, MESH.shape, frozenset(MESH.axis_names))
PRICES = Prices(place_mesh(assumed_machine(), MESH))
KIND = ArrayKind((64, 64), "bf16")


def paths(sources, **more):
    return DirectPaths(SPACE, KIND, PRICES, sources, **more)


def ops(start, goal):
    return [(move.op, "".join(move.axes)) for move in paths({start: 0}).path(goal)[1]]


@pytest.mark.parametrize(
    ("start", "goal", "expected"),
    [
        (((tuple("AB"), ()), ()), ((("A",), ()), ()), [("all_gather", "B")]),
        (((("A",), ("B",)), ()), (((), ()), ()), [("all_gather", "AB")]),
        ((((), ()), ()), ((("A",), ("B",)), ()), [("slice", "AB")]),
        (((("A",), ()), ()), (((), ("A",)), ()), [("all_to_all", "A")]),
        (((("A",), ()), ()), ((("B",), ()), ()), [("ppermute", "AB")]),
        ((((), ()), ("A", "B")), (((), ()), ()), [("psum", "AB")]),
        ((((), ()), ("A", "B")), ((("A", "B"), ()), ()), [("psum_scatter", "AB")]),
        ((((), ()), ()), (((), ()), ("A",)), [("mask", "A")]),
        ((((), ()), ("A", "B")), ((("A",), ()), ()), [("psum_scatter", "A"), ("psum", "B")]),
    ],
)
def test_one_operation_where_one_will_do(start, goal, expected):
    assert ops(start, goal) == expected


def random_state(draw):
    dims, pending = ([], []), []
    for axis in draw.sample(MESH.axis_names, 6):
        (*dims, pending, [])[draw.randrange(4)].append(axis)
    return tuple(map(tuple, dims)), tuple(sorted(pending))


def test_every_goal_is_reached():
    draw = random.Random(0)
    for _ in range(300):
        start, goal = random_state(draw), random_state(draw)
        _, moves = paths({start: 0}).path(goal)
        states = [start, *(move.after for move in moves)]
        assert states[-1] == goal
        assert [move.before for move in moves] == states[:-1]
        assert len(set(states)) == len(states)
        for dims, pending in states:
            used = [*pending, *(axis for axes in dims for axis in axes)]
            assert len(set(used)) == len(used)


def test_backward_the_moves_lead_from_the_state_to_the_source():
    start, goal = ((("A", "B"), ()), ()), (((), ("A",)), ())
    forward = paths({start: 0})
    backward = paths({goal: 0}, ends_pending=MESH.axis_names)
    assert backward.path(start)[1] == forward.path(goal)[1]
    assert backward.cost(start) == forward.cost(goal)


def test_the_cheapest_source_with_its_own_cost_counts():
    near, far, goal = ((("A",), ()), ()), ((("A", "B"), ()), ()), (((), ()), ())
    dear = 10 * paths({near: 0}).cost(goal)
    found = paths({near: dear, far: 1})
    assert found.path(goal)[0] == far
    assert found.cost(goal) == found.added(goal) + 1
    assert found.cost(goal, limit=found.cost(goal)) is None


def test_of_many_sources_the_cheapest_are_looked_at():
    draw = random.Random(1)
    states = list(dict.fromkeys(random_state(draw) for _ in range(3 * MOST_SOURCES)))
    found = paths({state: number for number, state in enumerate(states)})
    assert all(found.path(state)[0] in states[:MOST_SOURCES] for state in states)


def test_a_chain_with_a_constraint_over_many_axes_is_planned():
    """Its intermediate goes through the state that is wanted."""
    mesh = Mesh(tuple("ABCDEF"), (2,) * 6)
    problem = problem_from_text(
        "bd,df->bf; bf,fd->bd",
        mesh=mesh,
        specs="(ABC)_,_(DEF)->(AB)(DE); (AB)(DE),(DEF)_->(ABC)_",
        sizes="b=64,d=64,f=64",
    )
    plan = Planner(mesh).plan(problem)
    assert PartitionSpec((("A", "B"), ("D", "E"))) in [
        step.to_spec for step in plan.steps if step.array == "H1"
    ]
    prove(plan)
