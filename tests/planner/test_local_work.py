"""The dtype whose peak bounds a statement, and none where it multiplies no matrices."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.functions import matmul_dtype
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward

MESH = parse_mesh("X=2")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("Y = X[b,d] * W[d,f]", "bf16"),
        ("Y = scale(X[b,d], G[d])", ""),
        ("Y = sum(X[b,d], d)", ""),
        ("Y[b,d] = silu(X[b,d])", ""),
        ("Y = attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h])", "bf16"),
    ],
)
def test_forward(text, dtype):
    problem = problem_from_text(text, mesh=MESH)
    assert matmul_dtype(problem.parts[-1]) == dtype


def test_a_gradient_in_f32_of_operands_in_bf16():
    problem = problem_from_text("Y = X[b,d] * W[d,f]", mesh=MESH)
    step = with_backward(problem, Training(optimizer=Optimizer("adam")))
    dtypes = {part.result.name: (part.result.dtype, matmul_dtype(part)) for part in step.parts}
    assert dtypes["dW"] == ("f32", "bf16")
    assert dtypes["W_master_new"] == ("f32", "")
