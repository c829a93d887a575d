"""The ways of one statement: the state that each leaves the result in, and what it costs."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.states.prices import UNREACHABLE, Prices
from shardviz.sharding import Mesh

MESH = Mesh(("X",), (4,))
PRICES = Prices(place_mesh(assumed_machine(), MESH))
PROBLEM = problem_from_text("bd,df->bf", mesh=MESH, specs="_X,X_->__", sizes="b=64,d=512,f=256")
POOL = AxisPool.of(PROBLEM)
WAYS = StatementWays(POOL, MESH, PRICES)
A, W = ((), ("X",)), (("X",), ())
"""The textbook's third case: both split along the dimension that is summed."""


@pytest.fixture
def part():
    return PROBLEM.parts[0]


def search(array, dims):
    return WAYS.to(WAYS.kind(array), {(dims, ()): 0})


def ends(part, dims):
    return WAYS.onward(WAYS.kind(part.result), [(dims, ())])


@pytest.fixture
def operands(part):
    return [search(part.operands[0], A), search(part.operands[1], W)]


def ways(part, operands, allowed=None):
    found = StatementWays(POOL, MESH, PRICES, allowed).ways([(part, operands)])
    every = {state: found.way(state, UNREACHABLE) for state in found.least}
    assert all(found.least[state] <= way.cost for state, way in every.items())
    return every


def test_each_state_that_a_product_can_leave(part, operands):
    found = ways(part, operands)
    assert set(found) == {(((), ()), ()), ((("X",), ()), ()), (((), ("X",)), ()), (((), ()), ("X",))}
    pending = found[((), ()), ("X",)]
    assert pending.split.assignment == {"d": ("X",)}
    assert pending.cost == WAYS.work(part, pending.split)  # nothing moves
    assert min(found.values()) == pending or min(way.cost for way in found.values()) == pending.cost


def test_the_work_is_a_devices_own(part, operands):
    """2·b·d·f FLOPs, of which each of 4 devices does a quarter, or all of them where X is idle."""
    found = ways(part, operands)
    whole = 2 * 64 * 512 * 256
    flops = [PRICES.figure(WAYS.work(part, found[state].split), "flops") for state in sorted(found)]
    assert sorted(flops) == [whole // 4, whole // 4, whole // 4, whole]


def test_only_given_splits(part, operands):
    found = ways(part, operands, allowed={("d", "X")})
    assert set(found) == {(((), ()), ()), (((), ()), ("X",))}


def test_the_best_way_is_the_least_of_all_with_the_moves_of_the_result(part, operands):
    for goal in (((), ()), (("X",), ()), ((), ("X",))):
        end = ends(part, goal)
        best = WAYS.best([(part, operands)], end, UNREACHABLE)
        every = [way.cost + end.cost(state) for state, way in ways(part, operands).items()]
        assert best.cost == min(every)


def test_none_is_found_below_a_limit(part, operands):
    end = ends(part, (("X",), ()))
    best = WAYS.best([(part, operands)], end, UNREACHABLE)
    assert WAYS.best([(part, operands)], end, best.cost) is None
    found = WAYS.ways([(part, operands)])
    cost = found.way(best.split.result, UNREACHABLE).cost
    assert WAYS.ways([(part, operands)]).way(best.split.result, cost) is None
    assert found.way(best.split.result, cost) is None
    assert WAYS.best([(part, operands)], end, best.cost + 1) == best
