"""The ranking of shardings: all that are worth considering, ranked, with the unbeaten ones marked."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.spec_string import write_spec
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.ranking import rank
from shardviz.sharding import Layout, Mesh, PartitionSpec

MESH = Mesh(("X", "Y"), (2, 4))
SIZES = "b=8,d=2048,f=8192"


def ranking_of(problem):
    return rank(problem, place_mesh(assumed_machine(), problem.mesh))


@cache
def candidates(text="bd,df->bf", mesh=MESH, sizes=SIZES, dtype="bf16"):
    return ranking_of(problem_from_text(text, mesh=mesh, sizes=sizes, dtype=dtype))


def seconds_and_memory(one):
    return one.cost.serial_seconds, one.cost.peak_bytes


def bytes_and_work(one):
    return one.plan.wire_bytes, one.cost.peak_bytes, one.work_per_device


def specs(one):
    return tuple(array.decided_spec for array in one.plan.problem.arguments)


@pytest.mark.parametrize(
    ("text", "mesh", "sizes", "count"),
    [
        ("bd,df->bf", MESH, SIZES, 81),
        ("bd->b", MESH, "b=8,d=8", 9),
        ("b,b->", Mesh(("X", "Y", "Z"), (2, 3, 5)), "b=30", 64),
        ("b,b->", Mesh(("X", "Y", "Z"), (2, 2, 2)), "b=8", 20),
        ("bx,xy->by;by,yz->bz", Mesh(("X",), (2,)), "b=8,x=8,y=8,z=8", 27),
        (",->", MESH, "", 1),
    ],
)
def test_every_axis_on_each_dimension_or_on_none(text, mesh, sizes, count):
    found = candidates(text, mesh, sizes)
    assert len({specs(one) for one in found}) == len(found) == count


@pytest.mark.parametrize(
    ("given", "operands", "results"),
    [
        ("X?,__->X_", {"X_", "XY"}, {"X_"}),
        ("(X?)_,__->__", {"X_", "(XY)_"}, {"__"}),
        ("X_,__->?Y", {"X_"}, {"_Y", "XY"}),
        ("??,__->__", {"__", "X_", "_X", "Y_", "_Y", "XY", "YX", "(XY)_", "_(XY)"}, {"__"}),
    ],
)
def test_dimensions_that_are_left_open_are_split_in_every_way(given, operands, results):
    asked = problem_from_text("bd,df->bf", mesh=MESH, sizes=SIZES, specs=given, ranked=True)
    found = ranking_of(asked)
    assert {write_spec(specs(one)[0]) for one in found} == operands
    assert {write_spec(one.plan.result_spec) for one in found} == results
    with pytest.raises(QuestionError, match="is open"):
        problem_from_text("bd,df->bf", mesh=MESH, sizes=SIZES, specs=given)


@pytest.mark.parametrize(
    ("given", "count", "kept"),
    [("X_,?->?", 9, "X_"), ("X_,?->XY", 9, "X_"), ("?,?->?", 81, None), ("X_,?->X_{U_Y}", 9, "X_")],
)
def test_specs_that_are_given_stay(given, count, kept):
    asked = problem_from_text("bd,df->bf", mesh=MESH, sizes=SIZES, specs=given, ranked=True)
    found = ranking_of(asked)
    assert len(found) == count
    assert kept is None or {write_spec(specs(one)[0]) for one in found} == {kept}
    wanted = given.partition("->")[2]
    assert wanted == "?" or {write_spec(one.plan.result_spec) for one in found} == {wanted}


def test_a_copy_is_a_pending_sum_whose_other_addends_are_zeros():
    asked = problem_from_text("b,b->b", mesh=MESH, sizes="b=8", specs="X,?->X{U_Y}", ranked=True)
    assert {write_spec(one.plan.result_spec) for one in ranking_of(asked)} == {"X{U_Y}"}


def test_ranked_by_seconds_then_memory():
    costs = [(*seconds_and_memory(one), *bytes_and_work(one)) for one in candidates()]
    assert costs == sorted(costs)
    assert costs[0][0] < costs[-1][0]


def test_ranked_by_bytes_where_a_time_is_not_known():
    found = candidates(dtype="f64")
    assert all(one.cost.unknown for one in found)
    costs = [bytes_and_work(one) for one in found]
    assert costs == sorted(costs)
    check_best(found, bytes_and_work)


def test_those_that_do_not_fit_come_last_and_are_not_the_best():
    found = candidates(sizes="b=64Ki,d=64Ki,f=64Ki")
    over = [bool(one.cost.over_bytes) for one in found]
    assert over == sorted(over)
    assert any(over)
    assert not all(over)
    assert not any(one.best for one in found if one.cost.over_bytes)
    check_best([one for one in found if not one.cost.over_bytes], seconds_and_memory)


def check_best(found, figures):
    def beats(one, other):
        pairs = list(zip(figures(one), figures(other), strict=True))
        return all(mine <= theirs for mine, theirs in pairs) and any(mine < theirs for mine, theirs in pairs)

    for one in found:
        assert one.best == (not any(beats(other, one) for other in found)), specs(one)
    assert 0 < sum(one.best for one in found) < len(found)


@pytest.mark.parametrize(
    ("mesh", "sizes"), [(MESH, SIZES), (MESH, "b=64,d=64,f=64"), (Mesh(("X", "Y"), (3, 2)), "b=6,d=12,f=24")]
)
def test_best_are_those_that_no_other_beats(mesh, sizes):
    check_best(candidates(mesh=mesh, sizes=sizes), seconds_and_memory)


def test_each_plan_is_the_plan_of_that_problem():
    for one in candidates()[::9]:
        assert one.plan == plan(one.plan.problem)
        assert one.plan.problem.result.spec is None


def test_work_counts_multiply_adds():
    work = {specs(one): one.work_per_device for one in candidates()}
    whole = 8 * 2048 * 8192

    def of(a, w):
        return work[PartitionSpec(a), PartitionSpec(w)]

    assert of(((), ()), ((), ())) == whole
    assert of((("X",), ()), ((), ("Y",))) == whole // 8
    assert of((("X",), ("Y",)), (("Y",), ())) == whole // 8
    assert of(((), ("Y",)), (("Y",), ())) == whole // 4


def test_splits_that_do_not_divide_are_left_out():
    found = candidates(sizes="b=2,d=2048,f=8192")
    for one in found:
        for array in one.plan.problem.arguments:
            assert Layout(array, MESH).uneven == ()
    assert len(found) == 54


def test_axes_of_one_device_are_not_placed():
    assert len(candidates(mesh=Mesh(("X", "one"), (2, 1)))) == 9


def test_given_specs_stay():
    problem = problem_from_text("bd,df->bf", mesh=MESH, sizes=SIZES)
    part = problem.parts[0]
    given = PartitionSpec((("X",), ("Y",)))
    wanted = PartitionSpec((("X",), ()))
    fixed = type(problem)(
        MESH,
        (
            type(part)(
                part.einsum,
                (part.operands[0].with_spec(given), part.operands[1]),
                part.result.with_spec(wanted),
            ),
        ),
    )
    found = ranking_of(fixed)
    assert len(found) == 9
    assert {specs(one)[0] for one in found} == {given}
    assert {one.plan.result_spec for one in found} == {wanted}


def test_too_many_are_refused_with_their_number():
    mesh = Mesh(tuple("ABCDEF"), (2,) * 6)
    with pytest.raises(QuestionError) as caught:
        candidates(mesh=mesh, sizes="b=64,d=64,f=64")
    assert caught.value.message == ("there are more than 1,500 shardings on the mesh A=2,B=2,C=2,D=2,E=2,F=2")
    assert caught.value.hint == "give the specs, or use a mesh with fewer axes"


def test_the_same_specs_in_the_mesh_s_order_only():
    """Axes on one dimension stand in the mesh's order: the other orders cost the same."""
    planned = {specs(one): one.plan.wire_bytes for one in candidates()}
    for a, w in product(("(YX)_", "_(YX)"), ("__", "X_")):
        turned = problem_from_text("bd,df->bf", mesh=MESH, specs=f"{a},{w}", sizes=SIZES)
        assert tuple(array.decided_spec for array in turned.arguments) not in planned
