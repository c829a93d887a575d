"""The statements of a backward pass, evaluated, against `jax.grad` of the forward statements."""

from __future__ import annotations

import re
from itertools import cycle

import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.functions import FUNCTIONS, PROGRAM_FUNCTIONS, statement_code
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from tests.conftest import one_in

MESH = parse_mesh("X=1")
SIZES = dict(zip("btsdfnghkqvec", (2, 4, 4, 6, 5, 2, 3, 3, 2, 6, 7, 4, 3), strict=True))

PROGRAMS = {
    "mlp": "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]",
    "gated, with a residual": "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = X + (gelu(H) * G) * W3[f,d]",
    "the same array twice": "S = X[b,d] * X; Y = S * W[d,f]",
    "rms norm": "N = rms_norm(X[b,d], d, g[d]); Y = N * W[d,f]",
    "layer norm": "N = layer_norm(X[b,d], d, g[d], a[d]); Y = N * W[d,f]",
    "softmax": "P = softmax(X[b,t,d] * W[d,s], s); Y = P * V[s,f]",
    "softmax over the first": "P = softmax(X[t,b], t); Y = P * V[b,f]",
    "cross entropy": "L = X[b,t,d] * W[d,v]; Y = cross_entropy(L, T[b,t], v)",
    "log-sum-exp over the first": "Y = log_sum_exp(X[t,b], t) + pick(X, T[b], t)",
    "elementwise": "A = exp(X[b,d]); B = log(A + 2 * X * X); Y = tanh(sqrt(A) / (B * B + A)) - sigmoid(X)",
    "more elementwise": "A = rsqrt(square(X[b,d]) + exp(X)); Y = maximum(A, W[d]) + minimum(A, W) * relu(-X)",
    "reductions": "M = max(X[b,d] * W[d,f], f); Y = mean(X, d) + M - sum(X, d)",
    "embedding": "X = take(E[v,d], T[b,t]); Y = X * W[d,f]",
    "heads that are split": "P = X[b,t,d] * W[d,q]; R = reshape(P, q=nh); Y = R * V[n,h,f]",
    "heads that are merged": "P[b,t,n,h] = X[b,t,d] * W[d,n,h]; R = reshape(P, q=nh); Y = R * V[q,f]",
    "attention": """
        Q[b,t,n,h] = X[b,t,d] * WQ[d,n,h]
        K = X[b,s,d] * WK[d,n,h]
        V = X[b,s,d] * WV[d,n,h]
        Y[b,t,d] = X + attention(Q, K, V) * WO[n,h,d]
        """,
    "grouped heads": """
        Q[b,t,k,g,h] = X[b,t,d] * WQ[d,k,g,h]
        K = X[b,s,d] * WK[d,k,h]
        V = X[b,s,d] * WV[d,k,h]
        Y[b,t,d] = X + causal_attention(Q, K, V) * WO[k,g,h,d]
        """,
    "local attention": """
        Q[b,t,n,e] = rotary(X[b,t,d] * WQ[d,n,e], t)
        K = rotary(X[b,s,d] * WK[d,n,e], s, 100)
        Y = window_attention(Q, K, X[b,s,d] * WV[d,n,e], A[n], 3, 1.5)
        """,
    "parts": """
        H = concatenate(slice(X[b,t,d], d, p, 2), X, w) * W[w,h]
        Y = update(K[b,s,h], slice(H, t, r, 1), s) * V[h,n]
        """,
    "recurrences": "A = sigmoid(X[b,t,d]); Y = scan(A, conv(X, W[k,d], t), t) + cumsum(A, t)",
    "one factor for several": "Y[t,n,b] = scan(sigmoid(A[t,b]), X[b,t,n], t) + conv(X, W[n,k], t)",
    "linear attention": "Y[b,t,n,f] = linear_attention(sigmoid(A[b,t,n]), Q[b,t,h], K[b,t,h], V[b,t,n,f], t)",
    "delta rule": "Y = delta_rule(sigmoid(A[b,t,n]), sigmoid(B[b,t,n]), Q[b,t,h], K[b,t,h], V[b,t,n,f], t)",
    "values of another size": "Y = causal_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,f])",
    "masks": "Y = where(M[b,t], X[b,t,d], B[d]) + where(M, X, -2) + dropout(X, P[b,t,d], 0.2)",
    "experts": """
        G = top_k(softmax(X[b,t,d] * WR[d,e], e), e, 2)
        P = slots(G, t, c)
        D[e,b,c,d] = P * X
        H[e,b,c,f] = D * W1[e,d,f]
        O[e,b,c,d] = silu(H) * W2[e,f,d]
        Y[b,t,d] = O * scale(P, G)
        """,
    "rows to experts": """
        G = top_k(softmax(X[b,t,d] * WR[d,e], e), e, 2)
        H[e,b,c,f] = dispatch(X, G, t, c) * W1[e,d,f]
        O[e,b,c,d] = silu(H) * W2[e,f,d]
        Y[b,t,d] = combine(O, G, t, c)
        """,
}


def train_step(text, training):
    names = set(re.findall(r"\b[a-z]\b", " ".join(re.findall(r"\[(.*?)\]", text)))) | (
        {"q", "n", "h"} if "q=nh" in text else {"c"} if "slots" in text or "dispatch" in text else set()
    )
    sizes = ",".join(f"{dim}={size}" for dim, size in SIZES.items() if dim in names)
    return with_backward(problem_from_text(text, mesh=MESH, sizes=sizes, dtype="f32"), training)


def evaluated(parts, values):
    """All arrays by name, from those that are given."""
    import jax
    import jax.numpy as jnp

    made = dict(values)
    for part in parts:
        code = statement_code(part, [f"made[{operand.name!r}]" for operand in part.operands])
        made[part.result.name] = eval(code, {"jax": jax, "jnp": jnp, "made": made})
        assert made[part.result.name].shape == part.result.shape, part
    return made


def given_values(step):
    rng = np.random.default_rng(0)
    return {
        each.name: rng.integers(0, SIZES["v"], each.shape).astype(np.int32)
        if each.dtype == "s32"
        else rng.integers(0, 2, each.shape).astype(bool)
        if each.dtype == "pred"
        else rng.normal(size=each.shape).astype(np.float32)
        for each in step.arguments
    }


SOFTMAXES = {
    "Y = softmax(X[b,t,v], t)": lambda jax, rows, _: jax.nn.softmax(rows, 1),
    "Y = log_sum_exp(X[b,t,v], v)": lambda jax, rows, _: jax.nn.logsumexp(rows, -1),
    "Y = cross_entropy(X[b,t,v], T[b,t], v)": lambda jax, rows, places: (
        -jax.numpy.take_along_axis(jax.nn.log_softmax(rows), places[..., None], -1)[..., 0]
    ),
}


@pytest.mark.parametrize("text", one_in(2, SOFTMAXES))
def test_softmaxes_and_their_gradients_are_those_of_jax_itself(text):
    import jax
    import jax.numpy as jnp

    step = train_step(text, Training())
    values = given_values(step)
    made = evaluated(step.parts, {name: jnp.asarray(value) for name, value in values.items()})

    def weighted(rows):
        return jnp.sum(SOFTMAXES[text](jax, rows, values.get("T")) * values["dY"])

    assert np.allclose(made["Y"], SOFTMAXES[text](jax, values["X"], values.get("T")), atol=1e-6)
    assert np.allclose(made["dX"], jax.grad(weighted)(values["X"]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "remat"), [*zip(PROGRAMS, cycle(("none", "dots", "layer")), strict=False)])
def test_the_gradients_are_those_of_jax(name, remat):
    import jax
    import jax.numpy as jnp

    step = train_step(PROGRAMS[name], Training(remat))
    values = given_values(step)
    forward = {part.result.name for part in step.forward}
    results = {name: gradient for name, gradient in step.gradients if name in forward}
    trained = {name: gradient for name, gradient in step.gradients if name not in forward}

    def weighted(arguments):
        made = evaluated(step.forward, {**values, **arguments})
        return sum(jnp.sum(made[name] * values[gradient]) for name, gradient in results.items())

    wanted = jax.grad(weighted)({name: jnp.asarray(values[name]) for name in trained})
    made = evaluated(step.parts, {name: jnp.asarray(value) for name, value in values.items()})
    for name, gradient in trained.items():
        assert np.allclose(made[gradient], wanted[name], rtol=2e-4, atol=2e-5), gradient


def test_the_programs_take_every_function():
    taken = {part.function for text in PROGRAMS.values() for part in train_step(text, Training()).forward}
    assert taken == {"fill", *(name for name in PROGRAM_FUNCTIONS if not FUNCTIONS[name].decodes)}


@pytest.mark.parametrize(
    "text",
    [
        "R = linear_state(S[b,n,h,v], A[b,n], K[b,h], V[b,n,v])",
        "R = delta_state(S[b,n,h,v], A[b,n], B[b,n], K[b,h], V[b,n,v])",
        "R = read_state(S[b,n,h,v], Q[b,h], h)",
    ],
)
def test_a_state_of_decoding_has_no_gradient(text):
    """Not a step without the gradients of its operands."""
    with pytest.raises(QuestionError, match="has no gradient"):
        train_step(f"{text}; Y = R * W[n]", Training())


def test_the_steps_of_adam():
    """As the paper has them, with zero moments before and the bias of the moments left in."""
    step = train_step(PROGRAMS["mlp"], Training(optimizer=Optimizer("adam")))
    values = given_values(step) | {
        each.name: np.zeros(each.shape, np.float32)
        for each in step.arguments
        if each.name.endswith(("_mean", "_square"))
    }
    made = evaluated(step.parts, values)
    gradient = np.asarray(made["dW1"], np.float64)
    mean, square = 0.1 * gradient, 0.001 * gradient**2
    wanted = values["W1"] - 1e-3 * mean / (np.sqrt(square) + 1e-8)
    assert np.allclose(made["W1_new"], wanted, rtol=1e-4, atol=1e-6)
