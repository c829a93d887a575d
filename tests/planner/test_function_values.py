"""The functions in NumPy, against the JAX code that the compilers are asked with."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from shardviz.planner.problem.functions import PROGRAM_FUNCTIONS, statement_code
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from tests.planner.function_values import value

PROGRAMS = [
    "Y = A[b,d] + c[d]",
    "Y = c[b] - A[b,d]",
    "Y[d,b] = -A[b,d]",
    "Y = 0.5 * A[b,d]",
    "Y = A[b,d] / c[b]",
    "Y[d,b,t] = maximum(A[b,t,d], B[d,t])",
    "Y = minimum(A[b,d], B[b,d])",
    *(f"Y[d,b] = {name}(A[b,d])" for name in ("silu", "gelu", "relu", "sigmoid", "tanh", "exp", "square")),
    *(f"Y = {name}(square(A[b,d]))" for name in ("log", "sqrt", "rsqrt")),
    *(f"Y = {name}(A[b,t,d], t)" for name in ("sum", "mean", "max", "softmax")),
    "Y[t,b] = sum(A[b,t,d,f], d, f)",
    "Y[d,b,t] = softmax(A[b,t,d], t)",
    "Y[d,b] = log_sum_exp(A[b,t,d], t)",
    "Y = cross_entropy(A[b,v,t], T[b,t], v)",
    "Y = rms_norm(A[b,d], d, g[d])",
    "Y = layer_norm(A[b,d], d, g[d], c[d])",
    "Y = reshape(A[b,q,d], q=nh)",
    "Y = reshape(A[b,n,h,d], q=nh)",
    "Y = take(W[v,d], T[b,t])",
    "Y[d,b] = take(W[v,d], T[b])",
    "Y = attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h])",
    "Y[b,t,h,g,n] = causal_attention(Q[b,t,n,g,h], K[b,s,n,h], V[b,s,n,h])",
    "Y = attention(Q[b,t,n,h], K[b,s,h], K, P[b,t,n,g], R[b,s,g])",
    "Y[b,t,d,n] = causal_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,d], P[b,t,n,g], R[b,s,n,g])",
    "Y = causal_attention(Q[b,t,n,g,h], K[b,s,n,h], V[b,s,n,h], A[g,n], 2)",
    "Y = window_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h], A[n], 2, 0.5)",
    "Y = attention(Q[b,t,n,h], K[b,s,h], K, P[b,t,n,g], R[b,s,g], A[n])",
    "Y = top_k(A[b,t,e], e, 2)",
    "Y = top_k(A[b,e,t], e, 3)",
    "Y = slots(top_k(A[b,t,e], e, 2), t, c)",
    "Y[e,b,c,t] = slots(A[b,t,e], t, c)",
    "Y[b,d,c,e] = dispatch(A[b,t,d], top_k(G[b,t,e], e, 2), t, c)",
    "Y = combine(O[e,b,c,d], top_k(G[b,t,e], e, 2), t, c)",
    "Y[t,b,n,h] = window_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h], 3)",
    "Y[h,b,t] = rotary(A[b,t,h], t)",
    "Y = rotary(A[t,n,h], t, 100)",
    "Y[d,b,t] = cumsum(A[b,t,d], t)",
    "Y[d,t,b] = scan(F[t,b], A[b,t,d], t)",
    "Y = scan(F[t,d], A[t,d], t)",
    "Y[n,b,t,v] = linear_attention(F[t,n], Q[t,b,h], K[b,t,n,h], V[b,t,v,n], t)",
    "Y[n,b,t,v] = delta_rule(F[t,n], G[b,n,t], Q[t,b,h], K[b,t,n,h], V[b,t,v,n], t)",
    "Y = delta_state(S[b,n,v,h], F[n,b], G[n], K[b,h], V[b,n,v])",
    "Y[v,n,b] = read_state(linear_state(S[b,n,v,h], F[n], K[h,b], V[v,b,n]), Q[b,h], h)",
    "Y[b,t,v,n] = causal_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,v])",
    "Y[d,b,t] = conv(A[b,t,d], W[d,c], t)",
    "Y[f,b] = slice(A[b,d], d, f, 1)",
    "Y[v,b,t] = concatenate(A[b,f,t], B[t,b,n], v)",
    "Y[t,n,b] = update(A[b,t,n], B[n,b,c], t)",
    "Y = where(M[t], A[b,t], B[b,t]) + where(M, A, -1e3)",
    "Y[d,b] = dropout(A[b,d], M[b,d], 0.25)",
]
SIZES = {
    "b": 2,
    "d": 6,
    "k": 3,
    "t": 5,
    "s": 5,
    "f": 4,
    "n": 3,
    "h": 4,
    "g": 2,
    "v": 7,
    "e": 5,
    "c": 2,
    "q": 12,
}
RUN = """
import json, sys
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
codes, values = json.load(sys.stdin)

@jax.jit
def run(values):
    return [
        eval(code, {"jax": jax, "jnp": jnp, "operands": operands})
        for code, operands in zip(codes, values, strict=True)
    ]

print(json.dumps([found.tolist() for found in run([[jnp.asarray(each) for each in row] for row in values])]))
"""


def problem_of(text):
    sizes = [f"{dim}={size}" for dim, size in SIZES.items() if re.search(rf"[\[,(=n ]{dim}[\],)h]", text)]
    return problem_from_text(text, mesh=Mesh(("X",), (1,)), sizes=",".join(sizes))


@pytest.fixture(scope="module")
def cases():
    """Every statement of the programs with its operands, NumPy's value and JAX's."""
    random = np.random.default_rng(0)
    found = []
    for text in PROGRAMS:
        problem = problem_of(text)
        draws = {
            "s32": lambda shape: random.integers(0, SIZES["v"], shape),
            "pred": lambda shape: random.random(shape) < 0.5,
            "bf16": random.standard_normal,
        }
        values = {each.name: draws[each.dtype](each.shape) for each in problem.arguments}
        for part in problem.parts:
            operands = [values[each.name] for each in part.operands]
            values[part.result.name] = value(part, operands)
            if part.function != "multiply":
                found.append((part, operands, values[part.result.name]))
    codes = [
        statement_code(part, [f"operands[{number}]" for number in range(len(operands))])
        for part, operands, _ in found
    ]
    questions = codes, [[each.tolist() for each in operands] for _, operands, _ in found]
    answer = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(questions), capture_output=True, text=True, check=True
    )
    return [(*case, jax) for case, jax in zip(found, json.loads(answer.stdout), strict=True)]


def test_every_function_is_among_them(cases):
    assert {part.function for part, *_ in cases} | {"multiply"} >= PROGRAM_FUNCTIONS.keys()


def test_jax_computes_what_they_mean(cases):
    for part, _, meant, made in cases:
        assert meant.shape == part.result.shape, part
        np.testing.assert_allclose(np.asarray(made), meant, rtol=1e-6, atol=1e-9, err_msg=str(part))
