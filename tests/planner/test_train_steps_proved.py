"""Train steps are what calculus says, and their plans give the same numbers device by device."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Training, with_backward
from shardviz.sharding import Mesh, PartitionSpec
from tests.conftest import one_in
from tests.planner.executor import Values, prove, reference, values_for

MESH = Mesh(("X", "Y"), (2, 2))
PROGRAMS = {
    "two layers": ("H = X[b,d] * W1[d,f]; Y = gelu(H) * W2[f,d]", "X=X_,W1=_Y,W2=Y_", "b=4,d=4,f=8"),
    "SwiGLU, fully sharded": (
        "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = X + (silu(H) * G) * W3[f,d]",
        "X=X_,W1=XY,W2=XY,W3=YX",
        "b=4,d=4,f=8",
    ),
    "a norm": (
        "N = rms_norm(X[b,d], d, g[d]); Y = X + (N * W[d,e]) * V[e,d]",
        "X=X_,W=_Y,V=Y_",
        "b=4,d=4,e=8",
    ),
    "cross entropy of a split vocabulary": (
        "L = X[b,d] * W[d,v]; Y = cross_entropy(L, T[b], v)",
        "X=X_,W=_Y,T=X,Y=X",
        "b=4,d=4,v=8",
    ),
    "scores split along the keys": (
        "S[b,t,s] = X[b,t,d] * K[b,s,d]; P = softmax(S, s); Y[b,t,d] = P * K",
        "X=X__,K=XY_,P=X_Y,Y=X__",
        "b=2,t=4,s=4,d=4",
    ),
    "attention": (
        "Q[b,t,k,g,h] = X[b,t,d] * WQ[d,k,g,h]; K = X[b,s,d] * WK[d,k,h]; V = X[b,s,d] * WV[d,k,h]; "
        "O = causal_attention(Q, K, V); Y[b,t,d] = X + O * WO[k,g,h,d]",
        "X=X__,WQ=_Y__,WK=_Y_,WV=_Y_,WO=Y___",
        "b=2,t=4,d=4,k=2,g=2,h=2",
    ),
    "local attention of a sequence that is split": (
        "Q[b,t,n,h] = rotary(X[b,t,d] * WQ[d,n,h], t); K = rotary(X[b,s,d] * WK[d,n,h], s); "
        "V = X[b,s,d] * WV[d,n,h]; Y[b,t,d] = X + window_attention(Q, K, V, 3) * WO[n,h,d]",
        "X=XY_,WQ=___,WK=___,WV=___,WO=___",
        "b=2,t=4,d=4,n=2,h=2",
    ),
    "a recurrence": (
        "U = conv(X[b,t,d] * W[d,e], C[k,e], t); A = sigmoid(X * V[d,e]); H = scan(A, silu(U), t); "
        "Y = H * O[e,d] + cumsum(X, t)",
        "X=X__,W=_Y,V=_Y,C=_Y,O=Y_,Y=X__",
        "b=2,t=4,d=4,e=4,k=3",
    ),
    "latent attention": (
        "Q[b,t,n,h] = X[b,t,d] * WQ[d,n,h]; P[b,t,n,r] = X * WP[d,n,r]; R[b,s,r] = X[b,s,d] * WR[d,r]; "
        "L[b,s,l] = X[b,s,d] * A[d,l]; K[b,s,n,h] = L * WK[l,n,h]; V[b,s,n,v] = L * WV[l,n,v]; "
        "Y = X + causal_attention(Q, K, V, P, R) * WO[n,v,d]",
        "X=X__,A=__,WK=_Y_,WV=_Y_,WR=__,WQ=_Y_,WP=_Y_,WO=Y__,Y=X__",
        "b=2,t=4,d=4,l=6,n=2,h=6,v=4,r=2",
    ),
    "experts": (
        "G = top_k(softmax(X[b,t,d] * R[d,e], e), e, 2); D = dispatch(X, G, t, c); "
        "H[e,b,c,f] = D * W[e,d,f]; O[e,b,c,d] = silu(H) * V[e,f,d]; Y = combine(O, G, t, c)",
        "X=X__,R=__,W=X_Y,V=XY_,Y=X__",
        "b=2,t=4,d=4,e=4,f=4,c=3",
    ),
    "masks": (
        "H = dropout(X[b,t,d] * W[d,f], M[b,t,f], 0.5); S[b,t,s] = H * H[b,s,f]; P = where(N[t,s], S, -9); "
        "Y[b,t,d] = where(N, P, S * S) * X[b,s,d]",
        "X=X_Y,W=Y_,M=X_Y,N=__,Y=X__",
        "b=2,t=4,d=4,f=4",
    ),
}
ALONE = {
    "Y = window_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h], 3)": "btnh",
    "Y = causal_attention(Q[b,t,n,g,h], K[b,s,n,h], V[b,s,n,h], S[n,g], 2)": "btngh",
    "Y = causal_attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,v])": "btnhv",
    "Y = attention(Q[b,t,n,h], K[b,s,h], K, P[b,t,n,r], R[b,s,r], S[n])": "btnhr",
    "Y = dispatch(X[b,t,d], G[b,t,e], t, c)": "btdec",
    "Y = combine(O[e,b,c,d], G[b,t,e], t, c)": "btdec",
    "Y = rotary(X[b,t,n,h] + X, t)": "btnh",
    "Y = cumsum(X[b,t,d], t)": "btd",
    "Y = scan(A[b,t], X[b,t,d], t)": "btd",
    "Y = linear_attention(A[b,t,n], Q[b,t,h], K[b,t,h], V[b,t,n,v], t)": "btnhv",
    "Y = delta_rule(A[b,t,n], B[b,t,n], Q[b,t,h], K[b,t,h], V[b,t,n,v], t)": "btnhv",
    "Y = read_state(delta_state(S[b,n,h,v], A[b,n], B[b,n], K[b,h], V[b,n,v]), Q[b,h], h)": "bnhv",
    "Y = read_state(linear_state(S[b,n,h,v], A[b,n], K[b,h], V[b,n,v]), Q[b,h], h)": "bnhv",
    "Y = conv(X[b,t,d], W[k,d], t)": "btdk",
    "Y = where(M[b,t], A[b,t,d], B[b,t,d]) * W[d,f]": "btdf",
    "Y = dropout(X[b,d] * W[d,f], M[b,f], 0.1)": "bdf",
}


def random_spec(rank, draw):
    """Each axis on a dimension or on none."""
    places = [draw.randrange(-1, rank) for _ in "XY"]
    dims = [tuple(axis for axis, at in zip("XY", places, strict=True) if at == dim) for dim in range(rank)]
    return PartitionSpec(tuple(dims))


@pytest.mark.parametrize("seed", one_in(2, (6, 5)))
@pytest.mark.parametrize("text", ALONE)
def test_functions_on_random_shardings(text, seed):
    sizes, draw = ",".join(f"{dim}=8" for dim in ALONE[text]), random.Random(seed)
    known = problem_from_text(text, mesh=Mesh(("X", "Y"), (2, 4)), sizes=sizes)
    for _ in range(3):
        ends = (*known.arguments, known.result)
        specs = {array.name: random_spec(array.rank, draw) for array in ends}
        prove(plan(known.with_arrays(lambda array, specs=specs: array.with_spec(specs.get(array.name)))))


@pytest.fixture(params=PROGRAMS)
def step(request):
    """A forward program and its train step."""
    text, specs, sizes = PROGRAMS[request.param]
    forward = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    return forward, with_backward(forward, Training(optimizer=None))


def test_gradients_are_those_of_small_changes(step):
    forward, train = step
    values = values_for(train, seed=3)
    made = reference(train, values)
    ends = train.gradients[: len(forward.results)]

    def loss(own: dict[str, Values]) -> float:
        found = reference(forward, own)
        return sum(float(np.sum(found[end] * values[given])) for end, given in ends)

    numbers = np.random.default_rng(4)
    for name, gradient in train.gradients[len(ends) :]:
        way = numbers.normal(size=values[name].shape)
        near = [loss(values | {name: values[name] + sign * 1e-6 * way}) for sign in (1, -1)]
        assert np.isclose(np.sum(made[gradient] * way), (near[0] - near[1]) / 2e-6, rtol=1e-5), name


def test_its_plan_gives_the_same_numbers(step):
    prove(plan(step[1]))
