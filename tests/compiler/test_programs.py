"""Programs of several statements, parts of mesh axes and layers, as the compilers answer them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.compare.comparison import compiled
from shardviz.compiler.reading import with_parts_of_axes
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Training, with_backward
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.targets import TARGETS
from tests.conftest import covering

SIZES = {"b": 64, "d": 128, "f": 256}
MESH = Mesh(("X", "Y"), (4, 2))


def array(name, dims, *spec):
    shape = tuple(SIZES[dim] for dim in dims)
    return ShardedArray(name, tuple(dims), shape, "bf16", PartitionSpec(spec) if spec else None)


def statement(text, *operands, result):
    left, right = text.split("->")
    einsum = Einsum(tuple(map(tuple, left.split(","))), tuple(right))
    return Statement(einsum, operands, result)


def gated(first=("X:(1)2",), layers=1):
    """Two products of the same operand, multiplied by each other, and brought back."""
    x = array("X", "bd", ("X",), ())
    h, g, s = (array(name, "bf") for name in "HGS")
    parts = (
        statement("bd,df->bf", x, array("W1", "df", first, ("Y",)), result=h),
        statement("bd,df->bf", x, array("W2", "df", (), ("Y",)), result=g),
        statement("bf,bf->bf", h, g, result=s),
        statement("bf,fd->bd", s, array("W3", "fd", ("Y",), ()), result=array("Y", "bd", ("X",), ())),
    )
    return Problem(MESH, parts, layers=layers)


def statements_of(collectives):
    """Operation, axes, how often it runs, and the statement in the name that the program gives it."""
    return [
        (
            each.op,
            each.axes,
            each.count,
            next((name for name in each.source.split("/") if name in "HGSY"), ""),
        )
        for each in collectives
    ]


@pytest.mark.parametrize("layers", [1, 3])
def test_cpu_gathers_a_part_of_an_axis_for_one_statement_of_a_program(worker, layers):
    problem = gated(layers=layers)
    answer = worker.ask(problem, TARGETS["cpu"])
    assert (answer.status, answer.error) == ("ok", "")
    gathered, added = statements_of(answer.partitioned)
    # Since jax 0.12 what moves an argument is not named after the statement that takes it.
    assert gathered[:3] == ("all-gather", ("X:(1)2",), layers)
    assert added == ("all-reduce", ("Y",), layers, "Y")
    moved = compiled(answer.partitioned, problem)
    assert ["W1" in moved[0].arrays, moved[1].arrays] == [True, ("Y",)]
    assert "W3" not in moved[0].arrays
    assert [each.bytes for each in answer.partitioned] == [128 * 128 * 2, 16 * 128 * 2]
    assert answer.result_spec == PartitionSpec((("X",), ()))


def test_shardy_names_parts_of_axes_and_statements(worker):
    answer = worker.ask(gated(), TARGETS["shardy"])
    assert (answer.status, answer.error) == ("ok", "")
    assert '@mesh = <["X"=4, "Y"=2]>' in answer.text
    assert '"X":(1)2' in answer.text
    assert "loc(" not in answer.text
    sums = [each for each in answer.collectives if each.op in ("reduce-scatter", "all-reduce")]
    assert statements_of(sums) == [("reduce-scatter", ("X:(1)2",), 1, "H"), ("all-reduce", ("Y",), 1, "Y")]
    assert answer.result_spec == PartitionSpec((("X",), ()))


def test_whole_axes_leave_the_text_as_it_is(worker):
    answer = worker.ask(gated(first=()), TARGETS["shardy"])
    assert with_parts_of_axes(answer.text, MESH) == answer.text
    assert statements_of(answer.collectives) == [("all-reduce", ("Y",), 1, "Y")]


def test_results_in_between_are_returned_as_they_are_asked_for(worker):
    problem = gated(first=())
    *_, last = problem.parts
    kept = array("H", "bf", (), ("Y",))
    parts = (statement("bd,df->bf", *problem.parts[0].operands, result=kept), *problem.parts[1:])
    answer = worker.ask(Problem(MESH, parts, returned=("H",)), TARGETS["cpu"])
    assert answer.status == "ok", answer.error
    assert ("all-gather", ("X",), 1) in [each[:3] for each in statements_of(answer.collectives)]
    assert answer.result_spec == last.result.spec


def test_a_program_that_cannot_follow_itself_is_refused(worker):
    problem = gated()
    answer = worker.ask(Problem(MESH, problem.parts[:1], layers=2), TARGETS["cpu"])
    assert answer.status == "error"
    assert "H cannot be the next layer's X" in answer.error


SWIGLU = "H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]"
ATTENTION = """
Q[b,t,k,g,h] = X[b_X,t,d] * WQ[d,k_Y,g,h]
K = X[b_X,s,d] * WK[d,k_Y,h]
V = X[b,s,d] * WV[d,k_Y,h]
O = causal_attention(Q, K, V)
Y[b_X,t,d] = X + O * WO[k_Y,g,h,d]
"""
LOGITS = "E = take(W[v_Y,d], T[b_X,t]); N = rms_norm(E, d, g[d]); L[b_X,t,v_Y] = N * W[v,d]"


@pytest.mark.parametrize(
    ("text", "sizes", "statement"),
    [
        (SWIGLU, "b=8,d=64,f=128", "Y"),
        (ATTENTION, "b=8,t=16,s=16,d=32,k=2,g=2,h=8", "Y_1"),
        (LOGITS, "b=8,t=16,d=32,v=64", "E"),
    ],
)
def test_tensor_parallel_layers_add_up_one_sum(worker, text, sizes, statement):
    problem = problem_from_text(text, mesh=MESH, sizes=sizes)
    for target in ("shardy", "cpu"):
        answer = worker.ask(problem, TARGETS[target])
        assert (answer.status, answer.error) == ("ok", "")
        (found,) = answer.collectives
        assert (found.op, found.axes) == ("all-reduce", ("Y",))
        if target == "cpu":
            assert f"/{statement}/" in found.source


@pytest.mark.parametrize(("remat", "layers"), covering(["none", "layer", "dots"], [1, 2]))
def test_a_train_step_is_differentiated_by_jax(worker, remat, layers):
    step = problem_from_text(SWIGLU, mesh=MESH, sizes="b=8,d=64,f=128")
    step = with_backward(replace(step, layers=layers), Training(remat))
    answer = worker.ask(step, TARGETS["cpu"])
    assert (answer.status, answer.error) == ("ok", "")
    found = [each for each in answer.partitioned if each.wire_bytes]
    # Two sums over Y in either direction, and the weights' gradients over X.
    over = [(each.op, each.axes) for each in found for _ in range(each.arrays)]
    assert over.count(("all-reduce", ("X",))) == 3
    assert 2 <= over.count(("all-reduce", ("Y",))) <= 3
    assert len({*over}) == 2
    assert {each.count for each in found} == {layers}
    assert ("rematted_computation" in answer.text) == (remat != "none")
