"""Uneven sizes: what is padded, and that the plan is that of the padded problem."""

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.sizes import padded

MESH = parse_mesh("X=2,Y=4")


def problem(text="bd,df->bf", **options):
    return problem_from_text(text, **({"mesh": MESH, "specs": "XY,Y_->X_"} | options))


def priced(found):
    return price(plan(found), place_mesh(assumed_machine(), MESH))


@pytest.mark.parametrize(
    ("text", "specs", "sizes", "padding"),
    [
        ("bd,df->bf", "XY,Y_->X_", "b=8,d=16,f=8", []),
        ("bd,df->bf", "XY,Y_->X_", "b=7,d=10,f=8", [("b", 7, 8), ("d", 10, 12)]),
        # One size for all arrays: b is over X here, over X and Y there.
        ("bd,df->bf", "X_,__->(XY)_", "b=10", [("b", 10, 16)]),
        ("bd,df->bf", "Y:(1)2_,__->X_", "b=7", [("b", 7, 8)]),
        ("bd,df->bf; bf,fd->bd", "X_,_Y; ,Y_", "b=3,d=5,f=6", [("b", 3, 4), ("f", 6, 8)]),
    ],
)
def test_dimensions_are_padded_once(text, specs, sizes, padding):
    found = problem(text, specs=specs, sizes=sizes)
    assert [tuple(each) for each in found.padding] == padding
    asked = dict(item.split("=") for item in sizes.split(","))
    size = {dim: int(count) for dim, count in asked.items()} | {dim: large for dim, _, large in padding}
    for array in found.arrays:
        assert all(
            array.shape[place] == size.get(dim, array.shape[place]) for place, dim in enumerate(array.dims)
        )
        if array.spec is not None:
            assert not any(n % parts for n, parts in zip(array.shape, array.spec.parts(MESH), strict=True))


def test_the_plan_is_that_of_the_padded_sizes():
    uneven, even = problem(sizes="b=7,d=10,f=8"), problem(sizes="b=8,d=12,f=8")
    assert plan(uneven).steps == plan(even).steps
    assert padded(uneven) == uneven
    assert padded(even) is even


def test_a_dimension_that_stands_for_others_is_padded_by_the_major_one():
    text = "Q = X[b,d] * W[d,q]; P = reshape(Q, q=nh); S = silu(P)"
    found = problem(text, specs="W=_Y,S=_Y_", sizes="b=4,d=8,n=6,h=2")
    assert {(each.dim, each.size, each.padded) for each in found.padding} == {("q", 12, 16), ("n", 6, 8)}
    found = problem(text, specs="W=_(XY)", sizes="b=4,d=8,n=6,h=2")
    assert {(each.dim, each.size, each.padded) for each in found.padding} == {("q", 12, 16), ("n", 6, 8)}
    assert problem(text, specs="W=_Y", sizes="b=4,d=8,n=6,h=2").padding == ()


def test_an_array_used_under_two_names_of_a_dimension_has_one_size():
    found = problem("S[t,s] = X[b,t] * X[b,s]; Y = silu(S)", specs="X=_Y,Y=_X", sizes="b=4,t=5,s=5")
    assert {(each.dim, each.size, each.padded) for each in found.padding} == {("t", 5, 8), ("s", 5, 8)}


def test_specs_that_do_not_fit_are_refused():
    with pytest.raises(QuestionError, match="unknown mesh axis 'Z'"):
        problem(specs="XZ,Y_")
