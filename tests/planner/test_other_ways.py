"""The figures of the way not taken: those of a plan of the problem that has what this way makes first."""

from __future__ import annotations

import re

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.statements.work_split import OtherWay
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh
from shardviz.units import estimated_seconds

MESH = Mesh(("X", "Y"), (2, 4))


PLACED = place_mesh(assumed_machine(), MESH)


def planned(specs, sizes, objective="given"):
    """A plan, its seconds and its wire bytes."""
    problem = problem_from_text("bd,df->bf", mesh=MESH, specs=specs, sizes=sizes)
    made = Planner(MESH, PLACED, objective).plan(problem)
    cost = price(made, PLACED)
    return made, cost.serial_seconds, cost.wire_bytes


def reason(plan):
    return next(step.reason for step in plan.steps if step.op == "all_gather")


def test_gathering_the_other_operand():
    """The plan with W whole already, and the time that it takes to gather W."""
    sizes = "b=64,d=4096,f=8192"
    plan, seconds, wire_bytes = planned("X_,_X->X_", sizes)
    assert [step.op for step in plan.steps] == ["all_gather", "einsum", "all_to_all"]
    _, after, _ = planned("X_,__->X_", sizes)
    size = 4096 * 8192 * 2
    gather = Prices(PLACED).collective_seconds("all_gather", ("X",), size)
    more = estimated_seconds(gather + after - seconds)
    assert reason(plan).endswith(
        f"; gathering W instead would take {more} more and send {size // 2 - wire_bytes:,} bytes more."
    )


def test_a_way_that_sends_less_but_takes_longer_says_both():
    """Nothing moves while each device reads all of W[2048×8192]; of A gathered, it reads an eighth."""
    sizes = "b=8,d=2048,f=8192"
    plan, seconds, wire_bytes = planned("(XY)_,__->(XY)_", sizes)
    still, longer, nothing = planned("(XY)_,__->(XY)_", sizes, "bytes")
    assert ([step.op for step in still.steps], nothing) == (["einsum"], 0)
    more = estimated_seconds(longer - seconds)
    assert reason(plan).endswith(f"would take {more} more, though it would send {wire_bytes:,} bytes less.")


def test_the_fewest_bytes_may_take_longer():
    plan, _, _ = planned("_Y,__->__", "b=8,d=2048,f=8192", "bytes")
    found = re.search(r"would send ([\d,]+) bytes more, though it would take [\d.]+ µs less", reason(plan))
    # 2·3/4 of Out, not 3/4 of A.
    assert found[1] == f"{2 * 8 * 8192 * 2 * 3 // 4 - 8 * 2048 * 2 * 3 // 4:,}"


@pytest.mark.parametrize(
    ("objective", "seconds", "wire_bytes", "words"),
    [
        ("time", 4.3e-5, 96, "would take 43.0 µs more and send 96 bytes more"),
        ("time", 4.3e-5, 0, "would take 43.0 µs more"),
        ("time", 4.3e-5, -1, "would take 43.0 µs more, though it would send 1 byte less"),
        ("time", 0.0, 96, "would take as long and send 96 bytes more"),
        ("time", 1e-9, 96, "would take as long and send 96 bytes more"),
        ("time", 1e-9, 0, "would take 1.00 ns more"),
        ("time", 0.0, 0, ""),
        ("time", -1e-6, 96, ""),
        ("bytes", -1e-6, 96, "would send 96 bytes more, though it would take 1.00 µs less"),
        ("bytes", -1e-9, 96, "would send 96 bytes more"),
        ("bytes", 1e-6, 96, "would send 96 bytes more"),
        ("bytes", 1e-6, 0, ""),
        ("bytes", 1e-6, -96, ""),
    ],
)
def test_only_what_would_cost_more_is_said(objective, seconds, wire_bytes, words):
    assert OtherWay(seconds, wire_bytes, frozenset(), objective).more() == words
