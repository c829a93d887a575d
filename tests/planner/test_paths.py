"""The cheapest paths between states: forward and backward alike, however they are searched, and no direct
ones are cheaper."""

from __future__ import annotations

import random

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.paths import ArrayKind, CheapestPaths, DirectPaths
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, array_bytes
from tests.planner.dijkstra import least_costs

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
    return space, Prices(place_mesh(assumed_machine(), MESH), request.param)


def held(state):
    parts = [MESH.group_size(axes) for axes in state[0]]
    return array_bytes([size // cut for size, cut in zip(KIND.shape, parts, strict=True)], KIND.dtype)


def test_backward_and_forward_searches_find_the_same_costs(priced):
    space, prices = priced
    for start, goal in pairs(60):
        forward = CheapestPaths(space, KIND, prices, {start: 0})
        backward = CheapestPaths(space, KIND, prices, {goal: 0}, MESH.axis_names)
        assert forward.cost(goal) == backward.cost(start)
        for search, asked in ((forward, goal), (backward, start)):
            _, moves = search.path(asked)
            states = [start, *(move.after for move in moves)]
            assert states[-1] == goal
            assert [move.before for move in moves] == states[:-1]
            total = sum(prices.move(m.op, m.axes, held(m.before), held(m.after)) for m in moves)
            assert total == search.cost(asked)


def test_no_direct_path_costs_less_than_the_cheapest(priced):
    space, prices = priced
    for start, goal in pairs(120, seed=1):
        cost = least_costs(space, KIND, prices, {start: 0})[goal]
        direct = DirectPaths(space, KIND, prices, {start: 0})
        assert direct.cost(goal) >= cost
        assert direct.path(goal)[0] == start


@pytest.mark.parametrize("pending", [None, MESH.axis_names], ids=["forward", "backward"])
def test_a_search_that_is_led_finds_the_same_costs_and_none_below_its_bound(priced, pending):
    """Also from several states, which have cost something, and with each asked for first."""
    space, prices = priced
    draw = random.Random(2)
    for start, goal in pairs(60, seed=3):
        sources = {start: 0}
        if pending is None:
            sources |= {random_state(draw): prices.move("all_gather", ("X",), 512, 1024) for _ in range(3)}
        led = CheapestPaths(space, KIND, prices, sources, pending)
        cost = least_costs(space, KIND, prices, sources, pending).get(goal)
        assert led.least_in_any_order(goal) <= led.least(goal)
        if cost is None:
            assert led.cost(goal) is None
            continue
        assert led.least(goal) <= cost
        assert led.cost(goal, cost) is None
        assert led.least(goal) == cost
        assert led.cost(goal, cost + 1) == cost
        source, moves = led.path(goal)
        assert led.added(goal) == cost - sources[source]
        states = [move.before for move in moves] + [move.after for move in moves[-1:]]
        if moves:
            assert (states[0], states[-1]) == ((source, goal) if pending is None else (goal, source))
        assert sum(prices.move(m.op, m.axes, held(m.before), held(m.after)) for m in moves) == led.added(goal)


def test_the_cost_of_a_source_is_found_when_it_is_reached(priced):
    space, prices = priced
    near, far, goal = ((("X",), ()), ()), ((("X", "Y"), ()), ()), (((), ()), ())
    asked = []

    def exact(state, limit):
        asked.append(state)
        cost = {near: prices.move("psum", ("X", "Y", "Z"), 2**30, 2**30), far: 5}[state]
        return cost if cost < limit else None

    led = CheapestPaths(space, KIND, prices, {near: 0, far: 5}, None, exact)
    assert led.cost(goal) == 5 + least_costs(space, KIND, prices, {far: 0})[goal]
    assert led.path(goal)[0] == far
    assert asked == [near, far]


def test_a_limit_ends_a_search(priced):
    space, prices = priced
    start, goal = (("X", "Y"), ("Z",)), ((), ())
    cost = CheapestPaths(space, KIND, prices, {((("X", "Y"), ("Z",)), ()): 0}).cost((goal, ()))
    limited = CheapestPaths(space, KIND, prices, {(start, ()): 0})
    assert limited.cost((goal, ()), cost) is None
    assert limited.cost((goal, ()), cost + 1) == cost


def test_no_move_makes_unequal_parts_but_those_that_somebody_has():
    space = StateSpace(MESH.shape, MESH.shape)
    prices = Prices(place_mesh(assumed_machine(), MESH))
    even = CheapestPaths(space, ArrayKind((6, 4), "f32"), prices, {(((), ()), ()): 0})
    assert even.cost(((("Y",), ()), ())) is None
    uneven = ArrayKind((6, 4), "f32", frozenset({(0, ("Y",))}))
    assert CheapestPaths(space, uneven, prices, {(((), ()), ()): 0}).cost(((("Y",), ()), ())) is not None
