"""What a chain's plan knows of what comes after an einsum, and what an operand's pending sum may do."""

from __future__ import annotations

import time

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text

MESH = parse_mesh("X=2,Y=4")


def steps(text, specs, sizes="", mesh=MESH):
    found = plan(problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes))
    return [f"{step.op} {step.array}" for step in found.steps], found.wire_bytes


def test_an_intermediate_is_scattered_where_a_later_result_wants_it():
    sizes = "b=1024,d=2048,f=8192,g=2048"
    free = steps("bd,df->bf; bf,fg->bg", "XY,Y_; ?,__->(XY)_", sizes)
    # The sum may as well wait for the next product, whose result is smaller by four times.
    assert free == (["einsum H1", "einsum Out", "psum_scatter Out"], 1_572_864)
    square = steps("bd,df->bf; bf,fg->bg", "XY,Y_; ?,__->(XY)_", "b=1024,d=8192,f=2048,g=8192")
    assert square == (["einsum H1", "psum_scatter H1", "einsum Out"], 1_572_864)


@pytest.mark.parametrize(
    ("text", "specs", "expected"),
    [
        ("bd,df->bf", "__{U_X},__{U_Y}->__{U_XY}", ["einsum Out"]),
        (",ab->ab", "(){U_XY},__->__{U_X}", ["psum A", "einsum Out"]),
        ("bd,df->bf", "__{U_X},__{U_X}->__{U_X}", ["psum W", "einsum Out"]),
    ],
)
def test_pending_sums_stay_pending_where_they_may(text, specs, expected):
    assert steps(text, specs, "a=32,b=16" if "a" in text else "b=8,d=8,f=8")[0] == expected


def test_five_axes_in_other_orders_are_planned_soon():
    mesh = parse_mesh("A=2,B=2,C=2,D=2,E=2")
    start = time.process_time()
    steps("bd,df->bf", "(ABCDE)_,(EDCBA)_->_(BCDEA)", "b=32,d=32,f=32", mesh)
    assert time.process_time() - start < 40
