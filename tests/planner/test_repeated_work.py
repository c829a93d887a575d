"""Work that devices repeat: found where a plan leaves an axis idle that the specs split by."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.plan import einsum_parts, multiply_adds, repeated_work
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text

MEGATRON = ("btd,df->btf; btf,fd->btd", "(data)__,_(tensor); ?,(tensor)_->(data)__")
SIZES = "b=16,t=4096,d=4096,f=14336"


def made(text, specs, mesh, sizes, objective):
    return plan(problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes), None, objective)


def test_fewest_bytes_of_an_mlp_repeat_its_work_along_tensor():
    found = made(*MEGATRON, "data=2,tensor=4", SIZES, "bytes")
    repeated = repeated_work(found)
    assert (repeated.factor, repeated.axes, repeated.parts) == (4, ("tensor",), (0, 1))
    devices = found.problem.mesh.size
    for operands, _ in einsum_parts(found):
        whole = 16 * 4096 * 4096 * 14336
        assert multiply_adds(operands, found.problem.mesh) * devices == repeated.factor * whole


def test_the_fastest_plan_of_it_repeats_nothing():
    assert repeated_work(made(*MEGATRON, "data=2,tensor=4", SIZES, "given")) is None


@pytest.mark.parametrize("specs", ["__,__->__", "X_,__->X_", "X_,_Y->XY", "XY,Y_->X_"])
def test_work_that_nothing_divides_is_not_repeated(specs):
    assert repeated_work(made("bd,df->bf", specs, "X=2,Y=4", "b=8,d=64,f=64", "bytes")) is None
