"""The dtype whose peak bounds a statement, and none where it multiplies no matrices."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem import dropped_words
from shardviz.planner.problem.functions import matmul_dtype, statement_flops
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from shardviz.targets.hardware import placed_for

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


@pytest.mark.parametrize("capacity", [8.0, 1.25])
def test_experts_of_a_load_take_what_the_fullest_of_random_tokens_takes(capacity):
    """Each of 8 devices has one expert, and tokens that choose two, the first more often than the mean."""
    mesh = parse_mesh("expert=8")
    liking = np.random.default_rng(0).normal(size=(1024, 8)) + np.array([1.2, *[0.0] * 7])
    chosen = np.argsort(liking, axis=-1)[:, -2:]
    counts = (chosen[..., None] == np.arange(8)).sum((0, 1))
    taken = np.minimum(counts, capacity * counts.mean())
    problem = problem_from_text(
        "G = top_k(S[b,t,e], e, 2); "
        f"D = dispatch(X[b,t,d], G, t, c, {capacity}, {counts.max() / counts.mean()}); "
        "H[e,b,c,f] = D * W[e,d,f]; O[e,b,c,d] = H * V[e,f,d]; Y = combine(O, G, t, c)",
        specs="X=expert _ _, S=expert _ _, W=expert _ _, V=expert _ _, Y=expert _ _",
        mesh=mesh,
        sizes="b=8,t=1024,e=8,d=16,f=32",
    )
    steps = price(plan(problem), placed_for(None, (), mesh)).steps
    busiest = int(8 * taken.max())
    assert [step.flops for step in steps if step.step.op == "einsum"] == [busiest * 2 * 16 * 32] * 2
    sent = [step.step.bytes for step in steps if step.step.op == "all_to_all"]
    assert sent == [busiest * 16 * 2] * 2
    words = re.findall(r"[\d.]+(?= %| to)", " ".join(dropped_words(problem)))
    shares = [float(word) / 100 for word in words] or [0.0] * 3
    dropped = counts - taken
    assert shares[0] == pytest.approx(dropped[0] / counts[0], rel=0.01)
    assert shares[1] * 0.99 <= dropped.sum() / counts.sum() <= shares[2]
