"""The textbook's plans: as the four cases say, right on real numbers, never better than the planner's."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price, textbook_plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from tests.planner.executor import prove

BOOK = Mesh(("X", "Y"), (2, 4))


def textbook(placed, text, specs, mesh="X=2,Y=4", sizes="b=8,d=16,f=24"):
    grid = parse_mesh(mesh)
    found = textbook_plan(problem_from_text(text, mesh=grid, specs=specs, sizes=sizes), placed(grid))
    return [f"{step.op} {step.array} {''.join(step.axes)}".strip() for step in found.steps]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ("X_,_Y->XY", ["einsum Out"]),
        ("XY,__->X_", ["all_gather A Y", "einsum Out"]),
        ("XY,Y_->X_", ["einsum Out", "psum Out Y"]),
        ("XY,Y_->XY", ["einsum Out", "psum_scatter Out Y"]),
        ("X_,_X->X_", ["all_gather W X", "einsum Out"]),
        ("X_,X_->X_", ["all_gather W X", "einsum Out"]),
        ("_X,_X->_X", ["all_gather A X", "einsum Out"]),
        ("__,__->X_", ["einsum Out", "slice Out X"]),
    ],
)
def test_the_four_cases(placed, specs, expected):
    """Of the scaling book's cases: nothing, gather, add, add and scatter, gather one of two."""
    assert textbook(placed, "bd,df->bf", specs, sizes="b=64,d=16,f=32") == expected


def test_of_two_operands_the_one_with_fewer_bytes_is_gathered(placed):
    assert textbook(placed, "bd,df->bf", "X_,_X", sizes="b=8,d=16,f=64")[0] == "all_gather A X"
    assert textbook(placed, "bd,df->bf", "X_,_X", sizes="b=64,d=16,f=8")[0] == "all_gather W X"


def test_columns_then_rows_add_once_at_the_end(placed):
    """The MLP of Megatron-LM (https://arxiv.org/abs/1909.08053): one all-reduce for the pair."""
    assert textbook(placed, "bd,df->bf; bf,fd->bd", "__,_Y; ?,Y_->__") == [
        "einsum H1",
        "einsum Out",
        "psum Out Y",
    ]


def test_sums_of_an_intermediate_are_added_at_once(placed):
    assert textbook(placed, "bd,df->bf; bf,fd->bd", "_Y,Y_; ?,__->__") == [
        "einsum H1",
        "psum H1 Y",
        "einsum Out",
    ]


def test_other_programs_have_none(placed):
    problem = problem_from_text("H = X[b,d] * W[d,f]; Y = silu(H) * H", mesh=BOOK, specs="X=X_")
    assert textbook_plan(problem, placed(BOOK)) is None


def test_it_does_not_claim_to_be_the_best(placed):
    """It is what the cases say, at any cost: nothing was searched."""
    problem = problem_from_text("bd,df->bf", mesh=BOOK, specs="X_,X_->X_", sizes="b=1024,d=2048,f=8192")
    literal = textbook_plan(problem, placed(BOOK))
    assert (literal.optimal, literal.at_most) == (False, None)


def test_all_matmuls_on_two_axes(placed, matmul_specs):
    """Right on real numbers, and never cheaper than the plan."""
    on = placed(BOOK)
    planner = Planner(BOOK, on)
    proved = 0
    for specs in matmul_specs[::29]:
        problem = problem_from_text("bd,df->bf", mesh=BOOK, specs=specs, sizes="b=8,d=16,f=24")
        literal = textbook_plan(problem, on)
        prove(literal)
        proved += 1
        own, other = (price(each, on).serial_seconds for each in (planner.plan(problem), literal))
        assert own <= other + 1e-8, specs  # whole nanoseconds a step, rounded up
    assert proved > 20


@pytest.mark.parametrize("count", [6, 7, 8])
def test_over_many_axes_it_is_found_as_plans_are(placed, count):
    """With direct moves: all states over so many axes would be too many to look at."""
    names = "ABCDEFGH"[:count]
    mesh = Mesh(tuple(names), (2,) * count)
    half = names[: count // 2]
    specs = f"({half})({names[count // 2 :]}),({half})_->({names[::-1]})_"
    problem = problem_from_text("bd,df->bf", mesh=mesh, specs=specs, sizes="b=256,d=256,f=256")
    prove(textbook_plan(problem, placed(mesh)))
