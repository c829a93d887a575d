"""Bounds on moves: never above the cheapest path, and near it where links of one axis bind it."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, on_assumed_machine
from shardviz.planner.pricing.prices import Prices
from shardviz.planner.states.bounds import MoveBounds
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.paths import ArrayKind, PathSearch
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
SPACE = StateSpace(MESH.shape, MESH.shape)
PRICES = Prices(on_assumed_machine(assumed_machine(), MESH))
WHOLE = ((), ()), ()
SIZE = 2**28
"""Bytes of a matrix of 8192×16384 in bf16."""
KIND = ArrayKind((8192, 16384), "bf16")


def least(start, goal, held, needed):
    return MoveBounds(SPACE, PRICES).least(SPACE.node(start), SPACE.node(goal), held, needed)


def cheapest(start, goal):
    return PathSearch(SPACE, KIND, PRICES, {start: 0}).cost(goal)


def test_staying_costs_nothing():
    assert least(WHOLE, WHOLE, SIZE, SIZE) == 0


def test_a_slice_costs_as_much_as_it_does():
    split = (("X",), ()), ()
    assert least(WHOLE, split, SIZE, SIZE // 2) == PRICES.move("slice", ("X",), SIZE, SIZE // 2)


@pytest.mark.parametrize(
    ("start", "goal", "parts"),
    [
        (((("Y",), ()), ()), WHOLE, (4, 1)),
        (((("X", "Y"), ()), ()), WHOLE, (8, 1)),
        (((("Y",), ()), ()), (((), ("Y",)), ()), (4, 4)),
        ((((), ()), ("Y",)), ((("Y",), ()), ()), (1, 4)),
        ((((), ()), ("X", "Y")), WHOLE, (1, 1)),
        (((("X",), ("Y",)), ()), ((("Y",), ("X",)), ()), (8, 8)),
    ],
)
def test_no_bound_is_above_the_cheapest_moves(start, goal, parts):
    held, needed = (SIZE // part for part in parts)
    bound, cost = least(start, goal, held, needed), cheapest(start, goal)
    assert 0 < bound <= cost
    assert PRICES.parts(bound).wire_bytes <= PRICES.parts(cost).wire_bytes


def test_the_bound_of_a_gather_is_what_a_device_lacks():
    """3/4 of the matrix; of the time a sixth is lost, as the cheapest path uses the links of both axes."""
    start = (("Y",), ()), ()
    bound, cost = PRICES.parts(least(start, WHOLE, SIZE // 4, SIZE)), PRICES.parts(cheapest(start, WHOLE))
    assert bound.wire_bytes == pytest.approx(SIZE * 3 / 4, rel=1e-5)
    assert 5 / 6 < bound.seconds / cost.seconds < 1


def test_a_small_move_takes_the_quickest_collective():
    start = (("Y",), ()), ()
    bound = PRICES.parts(least(start, WHOLE, 1, 4)).seconds
    quickest = min(
        PRICES.collective_seconds(op, axes, 1)
        for op in ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute")
        for axes in (("X",), ("Y",), ("X", "Y"))
    )
    assert bound == pytest.approx(quickest, rel=1e-3)
