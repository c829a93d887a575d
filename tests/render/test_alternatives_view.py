"""The plans that others would choose, in words: what they save and cost beside the plan that is shown."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.cost_view import alternatives_view, bound_words, comparison_words, faster_words
from shardviz.render.palette import PLAIN
from tests.planner.conftest import _placed as on_rings

MEGATRON = ("btd,df->btf; btf,fd->btd", "(data)__,_(tensor); ?,(tensor)_->(data)__")


def cost_of(text, specs, mesh, sizes, objective="given"):
    grid = parse_mesh(mesh)
    placed = on_rings(grid)
    problem = problem_from_text(text, mesh=grid, specs=specs, sizes=sizes)
    return price(plan(problem, placed, objective), placed)


def words(cost, width=100):
    return [line.plain for line in alternatives_view(cost, width, PLAIN)]


def test_an_mlp_that_adds_says_what_gathering_would_send_and_compute():
    """176,160,768 bytes against 402,653,184 are 56 % less; each device would do the work of four."""
    cost = cost_of(*MEGATRON, "data=2,tensor=4", "b=16,t=4096,d=4096,f=14336")
    assert cost.wire_bytes == 402_653_184
    fewest = next(each for each in cost.alternatives if each.name == "fewest bytes")
    assert fewest.cost.wire_bytes == 176_160_768
    assert fewest.cost.flops == 4 * cost.flops
    lines = words(cost)
    at = next(i for i, line in enumerate(lines) if line.startswith(" The plan with the fewest bytes"))
    assert lines[at].startswith(" The plan with the fewest bytes sends 56 % less, computes 4 ×, takes 2.9 ×")
    assert lines[at + 1] == "    all_gather W1 tensor, all_gather W2 tensor"


def test_a_plan_by_bytes_says_how_much_faster_another_is():
    cost = cost_of(*MEGATRON, "data=2,tensor=4", "b=16,t=4096,d=4096,f=14336", "bytes")
    names = [each.name for each in cost.alternatives]
    assert "fastest" in names
    assert "fewest bytes" not in names
    assert any("computes 75 % less, takes 6" in line for line in words(cost))


def test_a_plan_that_all_would_choose_stands_alone():
    cost = cost_of("bd,df->bf", "X_,_Y->XY", "X=2,Y=4", "b=1024,d=2048,f=8192")
    assert cost.alternatives == ()
    assert words(cost) == []


def figures(cost, **changed):
    """The figures of a plan that words compare, some of them others."""
    compared = ("wire_bytes", "flops", "unknown", "serial_seconds", "peak_bytes")
    return SimpleNamespace(**{name: getattr(cost, name) for name in compared} | changed)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (100, "sends as much, takes as long"),
        (44, "sends 56 % less, takes as long"),
        (112, "sends 12 % more, takes as long"),
        (250, "sends 2.5 ×, takes as long"),
        (0, "sends nothing, takes as long"),
    ],
)
def test_words_of_bytes(sent, said):
    cost = cost_of("i->i", "X->_", "X=4", "i=1024")
    assert comparison_words(figures(cost, wire_bytes=sent), figures(cost, wire_bytes=100)) == said


def test_the_fastest_plan_is_the_one_that_was_found_beside_the_plan():
    """The plan divides the work as its arrays are divided, which here takes a third longer."""
    cost = cost_of(
        "btd,df->btf",
        "__(YWX),(ZXWY)_->(ZW)_X",
        "X=2,Y=3,Z=2,W=3",
        "b=384,t=1536,d=4608,f=1536",
    )
    assert cost.plan.at_most == pytest.approx(1.36, abs=0.01)
    (fastest,) = (each for each in cost.alternatives if each.name == "fastest")
    assert fastest.plan is cost.plan.faster
    assert cost.serial_seconds / fastest.cost.serial_seconds == pytest.approx(cost.plan.at_most, rel=1e-4)


@pytest.mark.parametrize(
    ("factor", "said"), [(1 - 4e-6, ""), (1.004, ""), (1.12, ", computes 12 % more"), (4, ", computes 4 ×")]
)
def test_work_that_differs_by_less_than_a_reader_sees_is_not_told(factor, said):
    cost = cost_of("bd,df->bf", "X_,_Y->XY", "X=2,Y=4", "b=1024,d=2048,f=8192")
    other = figures(cost, flops=int(cost.flops * factor))
    assert comparison_words(other, cost) == f"sends as much{said}, takes as long"


@pytest.mark.parametrize(
    ("at_most", "expected"),
    [
        (1.1, "1.1"),
        (1.341, "1.35"),
        (2.0, "2"),
        (9.999, "10"),
        (12.341, "12.4"),
        (100.2, "101"),
        (1234.5, "1,235"),
    ],
)
def test_a_bound_is_never_rounded_below_itself(at_most, expected):
    cost = cost_of("bd,df->bf", "X_,_Y->XY", "X=2,Y=4", "b=1024,d=2048,f=8192")
    cost = replace(cost, plan=replace(cost.plan, optimal=False, at_most=at_most))
    assert bound_words(cost) == (
        f"The search was not exhaustive; this plan takes at most {expected} × the minimum time."
    )


def test_no_bound_is_told_where_the_best_plan_stands_beside_it():
    """The plan shown splits the work as the arrays are; that which the program's best is proved to be stands
    below."""
    cost = cost_of(
        "H = X[b,d] * W1[d,f]; Y = X + silu(H) * W2[f,d]",
        "X=X _, W1=_ Y, W2=Y _, Y=X _",
        "X=2,Y=4",
        "b=8192,d=1024,f=1024",
    )
    assert not cost.plan.optimal
    (fastest,) = (each for each in cost.alternatives if each.name == "fastest")
    assert fastest.plan.optimal
    lines = words(cost)
    assert lines[0] == " The work is divided as the given arrays are, as compilers and textbooks do."
    assert lines[1].startswith(
        " A plan that divides the work differently is 20 % faster (2.7 × bytes, 75 % fewer"
    )
    assert bound_words(cost) == ""


SMALL_BATCH = ("bd,df->bf", "XY,Y_->X_", "X=2,Y=4", "b=8,d=2048,f=8192")


def test_a_faster_plan_stands_in_one_line_with_its_reason():
    """Over X each device holds, and so reads, half as much of W: 4 MiB of 8."""
    cost = cost_of(*SMALL_BATCH)
    (faster,) = (each for each in cost.alternatives if each.name == "fastest")
    assert faster_words(faster.cost, cost) == (
        "A plan that divides the work differently is 22 % faster (38 % more bytes, 50 % more memory)"
    )
    assert faster.cost.serial_seconds / cost.serial_seconds == pytest.approx(0.78, abs=0.005)
    assert faster.cost.wire_bytes / cost.wire_bytes == pytest.approx(1.375)
    assert faster.cost.hbm_bytes / cost.hbm_bytes == pytest.approx(0.53, abs=0.005)


def test_the_plan_by_time_is_that_faster_one():
    given, fastest = cost_of(*SMALL_BATCH), cost_of(*SMALL_BATCH, "time")
    (faster,) = (each for each in given.alternatives if each.name == "fastest")
    assert fastest.plan.steps == faster.plan.steps
    assert words(given)[0] == " The work is divided as the given arrays are, as compilers and textbooks do."
    assert words(fastest)[0] == (
        " The work is not divided as the given arrays are; that would take 28 % longer."
    )


def test_a_plan_that_takes_more_than_twice_as_long_is_not_the_one_given():
    cost = cost_of("bd,df->bf", "XY,__->X_", "X=4,Y=4", "b=8,d=16384,f=16384")
    assert cost.plan.as_given is not None
    assert cost.plan.as_given > 2
    assert words(cost)[0].startswith(" The work is not divided as the given arrays are; that would take ")
