"""What moves cost at least: never more than the cheapest ones, and as much in most cases."""

from __future__ import annotations

import math
import random

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.states.moves import EXCHANGES, StateSpace
from shardviz.planner.states.paths import ArrayKind
from shardviz.planner.states.prices import UNREACHABLE, Prices
from shardviz.planner.states.relaxation import Relaxation
from shardviz.sharding import Mesh
from tests.planner.dijkstra import least_costs
from tests.planner.random_problems import Draw, Kind

MESH = Mesh(("X", "Y"), (2, 4))
SPACE = StateSpace(MESH.shape, MESH.shape)
PRICES = Prices(place_mesh(assumed_machine(), MESH))
WHOLE = ((), ()), ()
SIZE = 2**28
"""Bytes of a matrix of 8192×16384 in bf16."""
KIND = ArrayKind((8192, 16384), "bf16")


def relaxed(start, size=SIZE, space=SPACE, prices=PRICES):
    return Relaxation(space, prices, size, {space.node(start): 0}, start[1], forward=True)


def least(start, goal, size=SIZE):
    return relaxed(start, size).least(SPACE.node(goal))


def test_staying_and_a_slice_cost_nothing():
    assert least(WHOLE, WHOLE) == 0
    assert PRICES.figure(least(WHOLE, ((("X",), ()), ())), "time") == 0


@pytest.mark.parametrize(
    ("start", "goal"),
    [
        (((("Y",), ()), ()), WHOLE),
        (((("X", "Y"), ()), ()), WHOLE),
        (((("Y",), ()), ()), (((), ("Y",)), ())),
        ((((), ()), ("Y",)), ((("Y",), ()), ())),
        ((((), ()), ("X", "Y")), WHOLE),
    ],
)
def test_one_collective_costs_no_more(start, goal):
    bound = least(start, goal)
    cost = least_costs(SPACE, KIND, PRICES, {start: 0})[goal]
    assert all(PRICES.figure(bound, name) == PRICES.figure(cost, name) for name in ("time", "wire_bytes"))


def test_axes_that_are_in_each_others_way_cost_more():
    """X and Y change places, which in the relaxation one all-to-all does."""
    start, goal = ((("X",), ("Y",)), ()), ((("Y",), ("X",)), ())
    bound, cost = least(start, goal), least_costs(SPACE, KIND, PRICES, {start: 0})[goal]
    assert bound == PRICES.move("all_to_all", ("X", "Y"), SIZE // 8, SIZE // 8) < cost


def test_sums_that_are_not_pending_cannot_be():
    assert least(WHOLE, (((), ()), ("Y",))) == UNREACHABLE


def test_in_any_order_an_axis_may_be_where_it_was():
    start, goal = ((("Y", "X"), ()), ()), ((("X", "Y"), ()), ())
    relaxation = relaxed(start)
    assert relaxation.least(SPACE.node(goal)) > 0
    assert relaxation.least_in_any_order(SPACE.node(goal)) == 0


def by_moves(space, prices, bounds, goal, costs, arriving):
    """For each move between a state and one next to it the bound of its stage, or of the axes that an
    all-to-all moves, and the cost by way of it."""
    node, groups = space.node(goal), [axes for _, axes, _ in space.shortened(space.node(goal))]

    def size(node):
        return 144 * 144 * 2 // math.prod(node.parts)

    for stage in range(EXCHANGES + len(groups)):
        is_group = stage >= EXCHANGES
        least = (
            bounds.least_after_exchange(node, groups[stage - EXCHANGES])
            if is_group
            else bounds.least_by(node, stage)
        )
        for move in space.moves(node, stage, arriving):
            if move.other.state in costs:
                ends = (move.other, node) if arriving is not None else (node, move.other)
                price = prices.move(move.op, move.axes, *map(size, ends))
                yield least, costs[move.other.state] + (0 if is_group else price)


@pytest.mark.parametrize("seed", range(6))
def test_no_moves_cost_less_on_links_of_any_speed(seed):
    draw = Draw(random.Random(seed), Kind("any", 3, axis_sizes=(2, 2, 3, 4)))
    mesh = draw.mesh()
    space, prices = StateSpace(mesh.shape, mesh.shape), Prices(draw.machine(mesh))
    kind = ArrayKind((144, 144), "bf16")

    def state():
        spec = draw.spec("bd", list(mesh.axis_names), 0.3)
        return spec.dims, tuple(sorted(spec.unreduced))

    for _ in range(10):
        start = state()
        forward = least_costs(space, kind, prices, {start: 0})
        backward = least_costs(space, kind, prices, {start: 0}, mesh.axis_names)
        ends = {space.node(start): 0}
        for costs, names, is_forward in ((forward, start[1], True), (backward, mesh.axis_names, False)):
            bounds = Relaxation(space, prices, 144 * 144 * 2, ends, names, forward=is_forward)
            for goal in [state() for _ in range(10)]:
                assert bounds.least(space.node(goal)) <= costs.get(goal, UNREACHABLE)
                for least, cost in by_moves(
                    space, prices, bounds, goal, costs, names if is_forward else None
                ):
                    assert least <= cost
