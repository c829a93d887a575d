"""Costs over a range of sizes, with the crossings of compute and communication."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hardware.machine_file import read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.numbers import parse_range
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price, sweep
from shardviz.planner.problem.reading import problem_from_text


def placed(mesh):
    return place_mesh(assumed_machine(), mesh)


def swept(text, specs, sizes, given="", mesh="X=2,Y=4", dtype="bf16", on=placed):
    problem = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=given, dtype=dtype)
    return sweep(problem, parse_range(sizes), on)


def test_each_point_is_the_answer_to_that_size():
    found = swept("bd,df->bf", "XY,Y_->X_", "d=512:8Ki:4")
    assert found.sizes == (512, 2048, 8192)
    for size, cost in zip(found.sizes, found.costs, strict=True):
        problem = problem_from_text(
            "bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_", sizes=f"d={size}"
        )
        assert cost == price(plan(problem), placed(problem.mesh))


def test_each_point_of_an_axis_is_the_answer_on_that_mesh():
    found = swept("bd,df->bf", "XY,Y_->X_", "Y=1:8")
    for size, cost in zip(found.sizes, found.costs, strict=True):
        problem = problem_from_text("bd,df->bf", mesh=parse_mesh(f"X=2,Y={size}"), specs="XY,Y_->X_")
        assert cost == price(plan(problem), placed(problem.mesh))


@pytest.mark.parametrize(
    ("specs", "sizes", "given"),
    [
        ("XY,Y_->X_", "d=1Ki:1Mi", ""),
        ("X_,X_->X_", "b=4Ki:1Mi", ""),
        ("X_,XY->XY", "b=1Ki:1Mi:4", "d=512,f=4Ki"),
    ],
)
def test_a_crossing_is_the_least_size(specs, sizes, given):
    found = swept("bd,df->bf", specs, sizes, given)
    (crossing,) = found.crossings
    assert crossing.compute_grows
    assert crossing.same_plan

    own = {"d": 512, "f": 4096} if given else {}

    def compute_longer(size):
        text = ",".join(f"{dim}={count}" for dim, count in (own | {found.name: size}).items())
        problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs=specs, sizes=text)
        cost = price(plan(problem), placed(problem.mesh))
        return cost.compute_seconds >= cost.communication_seconds

    step = 2 if found.name == "b" else 4
    assert compute_longer(crossing.size)
    assert not compute_longer(crossing.size - step)


def test_on_an_axis_and_where_the_plan_changes_it_is_the_next_size_looked_at():
    found = swept("bd,df->bf", "X_,X_->X_", "X=2:64", "b=64Ki,d=4096,f=4096")
    (crossing,) = found.crossings
    assert (crossing.size, crossing.compute_grows, crossing.same_plan) == (32, False, False)
    changing = swept("bd,df->bf", "X_,X_->X_", "b=1Ki:16Ki")
    assert changing.plans_change == (2048,)


def test_no_crossing_where_nothing_is_sent():
    found = swept("bd,df->bf", "X_,_Y", "b=2:1Ki")
    assert found.crossings == ()
    assert found.plans_change == ()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("q=1:8", "'q' is neither a dimension nor a mesh axis"),
        ("b=1:8", "b=1 of A is not divisible by X=2"),
        ("X=2:4096", "b=1,024 of A is not divisible by X=2048"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(sizes, message):
    with pytest.raises(NotationError, match=message):
        swept("bd,df->bf", "XY,Y_->X_", sizes)


def test_without_a_peak_compute_is_a_lower_bound():
    found = swept("bd,df->bf", "X_,X_->X_", "b=1024:65536", dtype="f64")
    assert all(cost.unknown for cost in found.costs)
    (crossing,) = found.crossings
    assert crossing.compute_grows
    assert 16384 < crossing.size <= 32768


def test_times_that_are_not_known_and_other_meshes_are_refused():
    own = read_machine(
        'name = "ours"\n[node]\ndevices = 8\nbandwidth = "1GB/s"\n[device]\npeak.bf16 = "1TFLOP/s"'
    )
    bounds = swept("bd,df->bf", "XY,Y_->X_", "b=2:8", on=lambda mesh: place_mesh(own, mesh))
    assert bounds.costs[0].missing_figure == "no HBM bandwidth is given for ours"
    with pytest.raises(QuestionError, match="no peak in f64 and no HBM bandwidth are given for ours"):
        swept("bd,df->bf", "XY,Y_->X_", "b=2:8", dtype="f64", on=lambda mesh: place_mesh(own, mesh))
    with pytest.raises(QuestionError, match="no bandwidth of NeuronLink") as refused:
        swept("bd,df->bf", "XY,Y_->X_", "b=2:8", on=lambda mesh: place_mesh(parse_cluster("trn2:8"), mesh))
    assert "measure psum" in refused.value.hint
    cluster = parse_cluster("v5e:2x4")
    assert cluster is not None
    machine = cluster
    with pytest.raises(QuestionError, match="v5e:2x4 has a fixed size, but X varies"):
        swept("bd,df->bf", "XY,Y_->X_", "X=2:8", on=lambda mesh: place_mesh(machine, mesh))
