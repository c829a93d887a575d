"""Costs as whole numbers: the seconds of `costs.price`, fields that add up, and their order."""

from __future__ import annotations

import random

import pytest

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.links import Dimension, LinkSpec
from shardviz.hardware.machine import AxisRings, Machine, assumed_machine, place_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.states.prices import Prices, collective_price
from shardviz.sharding import Mesh
from tests.planner.optimality import KINDS
from tests.planner.random_problems import Draw

MESH = Mesh(("X", "Y"), (2, 4))


def prices(objective="time"):
    return Prices(place_mesh(assumed_machine(), MESH), objective)


@pytest.mark.parametrize("specs", ["XY,Y_->X_", "X_,_X", "_Y,__->__", "XY,_Y->XY"])
def test_the_steps_of_a_plan_cost_what_they_are_priced(specs):
    planner = Planner(MESH)
    found = planner.plan(problem_from_text("bd,df->bf", mesh=MESH, specs=specs))
    for each in price(found, planner.placed).steps:
        if each.is_collective:
            step = each.step
            before, after = (
                step.bytes // (MESH.group_size(step.axes) if smaller else 1)
                for smaller in (step.op == "all_gather", step.op == "psum_scatter")
            )
            cost = planner.prices.move(step.op, step.axes, before, after)
            assert planner.prices.figure(cost, "time") / 1e9 == pytest.approx(each.seconds, abs=1e-9)
            assert planner.prices.figure(cost, "wire_bytes") == step.wire_bytes
            assert planner.prices.figure(cost, "collectives") == 1


def test_costs_add_up_field_by_field():
    found = prices()
    one, other = found.move("psum", ("X",), 4096, 4096), found.work(10**9, 10**6, "bf16")
    both = one + other
    assert found.figure(both, "wire_bytes") == found.figure(one, "wire_bytes") == 4096
    assert found.figure(both, "flops") == 10**9
    assert found.figure(both, "time") == found.figure(one, "time") + found.figure(other, "time")


def test_the_objective_decides_which_field_comes_first():
    sent, worked = ("all_gather", ("X",), 1 << 10, 1 << 11), (10**12, 10**6, "bf16")
    for objective, less in (("time", True), ("bytes", False)):
        found = prices(objective)
        assert (found.move(*sent) < found.work(*worked)) == less


def test_one_sum_costs_no_more_than_a_scatter_and_a_gather():
    found = prices()
    for size in (1 << 8, 1 << 20, (1 << 26) + 4):
        halves = found.move("psum_scatter", ("Y",), size, size // 4)
        halves += found.move("all_gather", ("Y",), size // 4, size)
        assert found.move("psum", ("Y",), size, size) < halves


def test_a_slice_takes_no_time():
    cost = prices().move("slice", ("X",), 4096, 2048)
    assert not any(prices().figure(cost, name) for name in ("time", "wire_bytes", "collectives"))


def test_another_dtype_s_peak_stands_in_for_one_that_is_not_known():
    found = prices()
    assert found.work(10**12, 0, "f32") == found.work(10**12, 0, "bf16")


@pytest.mark.parametrize("kind", KINDS[:1] + KINDS[13:15], ids=lambda kind: kind.name)
def test_the_time_of_a_collective_is_that_of_its_links_at_any_size(kind):
    draw = Draw(random.Random(kind.name), kind)
    for _ in range(20):
        problem, placed = draw.problem()
        found = Prices(placed)
        axes = tuple(axis for axis, size in problem.mesh.shape.items() if size > 1)
        for op in ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute"):
            for size in (0, 1, 1000, 1 << 20, (1 << 30) + 6):
                seconds = collective_price(op, size, axes, placed).seconds
                assert found.collective_seconds(op, axes, size) == pytest.approx(seconds, rel=1e-12)


def test_a_move_through_several_switches_costs_the_least_of_all_orders():
    """All gather first behind the fast switch, or first behind the slow one."""
    dimensions = tuple(
        Dimension(name, size, MESH.size // size, "switch", LinkSpec(1e-6, bandwidth), name)
        for name, size, bandwidth in (("x", 2, 1e9), ("y", 4, 1e11))
    )
    figures = DeviceFigures((("bf16", 1e12),), 10**9, None, 1e12)
    machine = Machine("two", figures, AxisRings("two", dimensions, LinkSpec(), MESH.size))
    found = Prices(place_mesh(machine, MESH))
    each = [found.move("all_gather", axes, 2**20, 2**23) for axes in (("X", "Y"), ("Y", "X"))]
    assert each[0] != each[1]
    assert found.move_in_any_order("all_gather", ("X", "Y"), 2**20, 2**23) == min(each)
