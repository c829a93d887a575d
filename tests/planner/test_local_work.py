"""The dtype whose peak bounds a statement, and none where it multiplies no matrices."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.functions import matmul_dtype, statement_flops
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


@pytest.mark.parametrize(("rows", "window"), [(512, 512), (128, 512), (512, 64), (128, 64), (256, 300)])
def test_causal_attention_has_the_flops_of_the_device_that_sees_most_keys(rows, window):
    text = f"Y = window_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,v], {window})"
    (part,) = problem_from_text(text, mesh=MESH, sizes="b=1,t=512,n=1,h=4,v=6").parts
    keys, values = (1, 512, 1, 4), (1, 512, 1, 6)
    found = statement_flops(part, ((1, rows, 1, 4), keys, values), (1, rows, 1, 6))
    before = np.arange(512)[:, None] - np.arange(512)
    seen = [((before >= 0) & (before < window))[start : start + rows].sum() for start in range(0, 512, rows)]
    assert found / (2 * 4 + 2 * 6) == pytest.approx(max(seen), rel=0.01)  # half of the diagonal


def test_a_gradient_in_f32_of_operands_in_bf16():
    problem = problem_from_text("Y = X[b,d] * W[d,f]", mesh=MESH)
    step = with_backward(problem, Training(optimizer=Optimizer("adam")))
    dtypes = {part.result.name: (part.result.dtype, matmul_dtype(part)) for part in step.parts}
    assert dtypes["dW"] == ("f32", "bf16")
    assert dtypes["W_master_new"] == ("f32", "")
