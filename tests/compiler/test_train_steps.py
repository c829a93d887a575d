"""The collectives of planned train steps against those that XLA gives `jax.grad` on CPUs."""

from __future__ import annotations

from collections import Counter

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Training, parse_training
from shardviz.planner.training import with_backward
from shardviz.targets import TARGETS

GATED = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
LARGE = "b=65536,d=1024,f=2048"
ATTENTION = """
Q[b,t,k,g,h] = X[b,t,d] * WQ[d,k,g,h]
K = X[b,s,d] * WK[d,k,h]
V = X[b,s,d] * WV[d,k,h]
O = causal_attention(Q, K, V)
Y[b,t,d] = X + O * WO[k,g,h,d]
"""


def planned_moves(problem):
    """Gathers and sums by their axes, with the sizes of a group's whole array, whatever their order."""
    kinds = {"all_gather": "gather", "psum": "sum", "psum_scatter": "sum"}
    return Counter(
        (kinds[step.op], step.axes, tuple(sorted(step.shape))) for step in plan(problem).collectives
    )


def compiled_moves(answer):
    """The same of a program right after partitioning, where a sum that is cut is an all-reduce still."""
    kinds = {"all-gather": "gather", "all-reduce": "sum", "reduce-scatter": "sum"}
    found = Counter()
    for each in answer.partitioned:
        shape = each.result_shape if each.op == "all-gather" else each.operand_shape
        found[kinds[each.op], each.axes, tuple(sorted(shape))] += each.count
    return found


@pytest.mark.parametrize(
    ("text", "mesh", "specs", "sizes", "summed_once"),
    [
        # Data parallel: each weight's gradient is summed.
        (GATED, "X=4", "X=X_,Y=X_", LARGE, {}),
        # Fully sharded: each weight is gathered, each gradient summed and cut.
        (GATED, "X=4", "X=X_,W1=X_,W2=X_,W3=_X,Y=X_", LARGE, {}),
        # Tensor parallel: JAX sums what H and G each say of dX, the plan what both say together.
        (GATED, "Y=4", "X=__,W1=_Y,W2=_Y,W3=Y_,Y=__", LARGE, {("sum", ("Y",), (1024, 65536)): 1}),
        (
            GATED,
            "X=4,Y=2",
            "X=X_,W1=XY,W2=XY,W3=YX,Y=X_",
            LARGE,
            {("sum", ("Y",), (1024, 16384)): 1},
        ),
        pytest.param(
            ATTENTION,
            "X=4,Y=2",
            "X=X__,WQ=_Y__,WK=_Y_,WV=_Y_,WO=Y___,Y=X__",
            "b=8,t=512,s=512,d=8192,k=8,g=8,h=128",
            {("sum", ("Y",), (2, 512, 8192)): 2},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["data", "fully sharded", "tensor", "fully sharded and tensor", "attention"],
)
def test_the_collectives_are_those_of_jax(worker, text, mesh, specs, sizes, summed_once):
    forward = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes)
    problem = with_backward(forward, Training())
    answer = worker.ask(problem, TARGETS["cpu"])
    assert (answer.status, answer.error) == ("ok", "")
    assert compiled_moves(answer) == planned_moves(problem) + Counter(summed_once)


@pytest.mark.parametrize("axis_types", ["auto", "explicit"])
def test_the_optimizer_of_stacked_layers_sends_nothing(worker, axis_types):
    """Its arrays are those of all layers, and split as those of one."""
    forward = problem_from_text(
        "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d] x 4",
        mesh=parse_mesh("X=2,Y=4"),
        specs="X=X_,W1=_Y,W2=Y_",
        sizes="b=16,d=64,f=128",
        axis_types=axis_types,
    )
    plain, adam = (
        worker.ask(
            with_backward(forward, parse_training(True, "layer", rule, forward.mesh)), TARGETS["shardy"]
        )
        for rule in ("none", "adam")
    )
    assert (plain.status, adam.status) == ("ok", "ok")
    sent = [[(one.op, one.axes, one.bytes) for one in answer.collectives] for answer in (plain, adam)]
    assert sent[0] == sent[1]
    if axis_types == "explicit":
        # What JAX says of forward arrays stands before what it says of the optimizer's.
        assert adam.typeof[: len(plain.typeof)] == plain.typeof
        assert [name for name, _ in plain.typeof] == ["X", "W1", "H", "Y_1", "W2", "Y"]
