"""The cheapest paths between states: forward and backward alike, above their bounds, below direct ones."""

from __future__ import annotations

import random

import pytest

from shardviz.hardware.machine import assumed_machine, on_assumed_machine
from shardviz.planner.pricing.prices import Prices
from shardviz.planner.states.bounds import MoveBounds
from shardviz.planner.states.direct_paths import DirectPaths
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.paths import ArrayKind, PathSearch
from shardviz.sharding import Mesh, array_bytes

MESH = Mesh(("X", "Y", "Z"), (2, 4, 2))
KIND = ArrayKind((64, 32), "bf16")


def random_state(draw):
    dims, pending = [[], []], []
    for axis in draw.sample(MESH.axis_names, 3):
        place = draw.randrange(4)
        if place < 2:
            dims[place].append(axis)
        elif place == 2 and draw.random() < 0.5:
            pending.append(axis)
    return tuple(map(tuple, dims)), tuple(sorted(pending))


def pairs(count, seed=0):
    """States and where their sums may be left."""
    draw = random.Random(seed)
    while count:
        start, goal = random_state(draw), random_state(draw)
        if set(goal[1]) <= set(start[1]):
            count -= 1
            yield start, goal


@pytest.fixture(params=["time", "bytes"])
def priced(request):
    space = StateSpace(MESH.shape, MESH.shape)
    return space, Prices(on_assumed_machine(assumed_machine(), MESH), request.param)


def held(state):
    parts = [MESH.group_size(axes) for axes in state[0]]
    return array_bytes([size // cut for size, cut in zip(KIND.shape, parts, strict=True)], KIND.dtype)


def test_backward_and_forward_searches_find_the_same_costs(priced):
    space, prices = priced
    for start, goal in pairs(60):
        forward = PathSearch(space, KIND, prices, {start: 0})
        backward = PathSearch(space, KIND, prices, {goal: 0}, MESH.axis_names)
        assert forward.cost(goal) == backward.cost(start)
        for search, asked in ((forward, goal), (backward, start)):
            _, moves = search.path(asked)
            states = [start, *(move.after for move in moves)]
            assert states[-1] == goal
            assert [move.before for move in moves] == states[:-1]
            total = sum(prices.move(m.op, m.axes, held(m.before), held(m.after)) for m in moves)
            assert total == search.cost(asked)


def test_no_path_costs_less_than_its_bound_and_no_direct_one_less_than_the_cheapest(priced):
    space, prices = priced
    bounds = MoveBounds(space, prices)
    for start, goal in pairs(120, seed=1):
        cost = PathSearch(space, KIND, prices, {start: 0}).cost(goal)
        assert bounds.least(space.node(start), space.node(goal), held(start), held(goal)) <= cost
        direct = DirectPaths(space, KIND, prices, {start: 0})
        assert direct.cost(goal) >= cost
        assert direct.path(goal)[0] == start


def test_a_limit_ends_a_search(priced):
    space, prices = priced
    start, goal = (("X", "Y"), ("Z",)), ((), ())
    cost = PathSearch(space, KIND, prices, {((("X", "Y"), ("Z",)), ()): 0}).cost((goal, ()))
    limited = PathSearch(space, KIND, prices, {(start, ()): 0})
    assert limited.cost((goal, ()), cost) is None
    assert limited.cost((goal, ()), cost + 1) == cost


def test_no_move_makes_unequal_parts_but_those_that_somebody_has():
    space = StateSpace(MESH.shape, MESH.shape)
    prices = Prices(on_assumed_machine(assumed_machine(), MESH))
    even = PathSearch(space, ArrayKind((6, 4), "f32"), prices, {(((), ()), ()): 0})
    assert even.cost(((("Y",), ()), ())) is None
    uneven = ArrayKind((6, 4), "f32", frozenset({(0, ("Y",))}))
    assert PathSearch(space, uneven, prices, {(((), ()), ()): 0}).cost(((("Y",), ()), ())) is not None
