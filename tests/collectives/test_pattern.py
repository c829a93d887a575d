"""The lower bounds, against the published formulas and what a plan says of its steps."""

from __future__ import annotations

from itertools import product

import pytest

from shardviz.collectives.schedule import KINDS, LowerBound, Pattern, lower_bound
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text

MEGABYTE = 1 << 20
SWAP = ((0, 1), (1, 0))


@pytest.mark.parametrize(
    ("pattern", "bytes_", "rounds", "wire_bytes"),
    [
        (Pattern("all_gather", (8,)), MEGABYTE, 3, MEGABYTE * 7 // 8),
        (Pattern("all_gather", (2, 4)), MEGABYTE, 3, MEGABYTE * 7 // 8),
        (Pattern("reduce_scatter", (5,)), 1000, 3, 800),
        (Pattern("all_reduce", (5,)), 1000, 3, 1600),
        (Pattern("all_reduce", (8,)), MEGABYTE, 3, MEGABYTE * 7 // 4),
        (Pattern("all_to_all", (4,)), 64, 2, 48),
        (Pattern("broadcast", (9,), source=3), 64, 4, 64),
        (Pattern("permute", (9,), perm=SWAP), 64, 1, 64),
        (Pattern("permute", (9,), perm=((3, 3), (4, 4))), 64, 0, 0),
        (Pattern("permute", (9,)), 64, 0, 0),
        (Pattern("all_gather", (3,)), 10, 2, 7),
        (Pattern("all_reduce", (3,)), 10, 2, 14),
        (Pattern("all_reduce", (65536,)), 2**40, 16, 2 * (2**40 - 2**24)),
        (Pattern("all_reduce", (2,)), 0, 1, 0),
    ],
)
def test_bounds(pattern, bytes_, rounds, wire_bytes):
    assert lower_bound(pattern, bytes_) == LowerBound(rounds, wire_bytes)


def test_one_device_alone_needs_nothing():
    for kind, dims in product(KINDS, [(), (1,), (1, 1)]):
        assert lower_bound(Pattern(kind, dims, perm=((0, 0),)), 1000) == LowerBound(0, 0)


KIND_OF_OP = {
    "all_gather": "all_gather",
    "psum": "all_reduce",
    "psum_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "permute",
}


@pytest.mark.parametrize("mesh", ["X=2,Y=4", "X=3,Y=3"])
@pytest.mark.parametrize("specs", ["XY,Y_", "XY,Y_->XY", "XY,_Y->XY", "X_,_X", "Y_,__->_Y", "X_,_Y->Y_"])
def test_a_plan_says_the_same_of_its_steps(mesh, specs):
    problem = problem_from_text(
        "bd,df->bf", mesh=parse_mesh(mesh), specs=specs, sizes="b=36,d=72,f=180", dtype="u8"
    )
    steps = plan(problem).collectives
    assert steps
    for step in steps:
        dims = tuple(problem.mesh.axis_size(axis) for axis in step.axes)
        pattern = Pattern(KIND_OF_OP[step.op], dims, perm=SWAP)
        assert lower_bound(pattern, step.bytes).wire_bytes == step.wire_bytes
