"""Slices, concatenations and updates of a cache: their numbers on devices and in JAX, their gradients, their
prices, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.errors import ShardvizError
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem import statement_text
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Training
from shardviz.planner.training import with_backward
from shardviz.sharding import Mesh
from shardviz.stepping.plan_run import small_run
from shardviz.targets.hardware import placed_for
from tests.planner.executor import prove, reference, values_for

MESH = Mesh(("X", "Y"), (2, 2))
SLICED = "P = X[b,d] * W[d,e]; Y = slice(P, e, k, 4) * V[k,f]"
JOINED = "Y = concatenate(A[b,p], square(B[b,q]), d) * W[d,f]"
CACHE = "C = update(K[b,s,h], X[b,t,d] * W[d,h], s); Y[b,t,s] = (X * Q[d,h]) * C[b,s,h]"
PROGRAMS = {SLICED: "b=4,d=8,e=16,k=8,f=4", JOINED: "b=4,p=8,q=4,f=4", CACHE: "b=4,s=8,d=4,h=4"}
SPECS = {
    SLICED: ["W=_Y,Y=Y_", "P=X_,Y=_X"],
    JOINED: ["A=_X,B=_Y,W=X_", "B=Y_,Y=_X"],
    CACHE: ["K=XY_,X=X__,W=_Y", "K=_Y_,W=Y_"],
}


def problem(text, specs="", sizes=None, dtype="f32"):
    return problem_from_text(text, mesh=MESH, specs=specs or None, sizes=sizes or PROGRAMS[text], dtype=dtype)


def in_jax(text, jnp, v):
    if text == SLICED:
        return {"Y": (v["X"] @ v["W"])[:, 4:12] @ v["V"]}
    if text == JOINED:
        return {"Y": jnp.concatenate([v["A"], v["B"] ** 2], 1) @ v["W"]}
    import jax

    new = jnp.einsum("btd,dh->bth", v["X"], v["W"])
    cache = jax.lax.dynamic_update_slice(jnp.asarray(v["K"]), new, (0, v["K"].shape[1] - new.shape[1], 0))
    return {"C": cache, "Y": jnp.einsum("btd,dh,bsh->bts", v["X"], v["Q"], cache)}


@pytest.mark.parametrize(("text", "specs"), [(text, specs) for text, own in SPECS.items() for specs in own])
def test_plans_have_the_numbers_of_jax_in_both_directions(text, specs):
    import jax
    import jax.numpy as jnp

    asked = problem(text, specs)
    results = [name for name in asked.results if name in ("C", "Y")]
    step = with_backward(asked, Training())
    for one in (asked, step):
        prove(plan(one))
    assert small_run(plan(step)).results
    values = {name: np.asarray(value, np.float32) for name, value in values_for(step).items()}
    made = reference(step, values)
    arguments = {array.name: values[array.name] for array in asked.arguments}
    found, back = jax.vjp(
        lambda v: {k: r for k, r in in_jax(text, jnp, v).items() if k in results}, arguments
    )
    assert found.keys() == {*results}
    for name, value in found.items():
        assert np.allclose(made[name], value), name
    given = dict(step.gradients)
    (gradients,) = back({name: values[given[name]] for name in results})
    for name, gradient in gradients.items():
        assert np.allclose(made[given[name]], gradient, rtol=1e-4), name


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_text_of_each_statement_is_one_that_may_be_written(text):
    written = "; ".join(statement_text(part) for part in problem(text).parts)
    assert "; ".join(statement_text(part) for part in problem(written, sizes=PROGRAMS[text]).parts) == written


def test_sizes_follow_from_each_other():
    assert problem("Y = concatenate(A[b,p], B[b,q], d)", sizes="b=2,p=3,q=5").sizes["d"] == 8
    assert problem("Y = concatenate(A[b,p], B[b,q], d)", sizes="b=2,p=3,d=5").sizes["q"] == 2
    assert problem("Y = slice(X[b,d], d, k, 6)", sizes="b=2,d=8").sizes["k"] == 2
    assert problem("Y = update(C[b,s], N[b,t], s)", sizes="b=2,s=8").sizes["t"] == 1


def test_a_capacity_factor_makes_room_for_so_many_times_the_average():
    text = "G = top_k(A[b,t,e], e, 2); P = slots(G, t, c, 1.25); Y[b,e,c] = sum(P, t)"
    asked = problem(text, sizes="b=2,t=64,e=8")
    assert asked.sizes["c"] == 1.25 * 64 * 2 / 8
    assert "slots(G[b,t,e], t, c, 1.25)" in asked.text


def cost(text, specs, sizes):
    return price(plan(problem(text, specs, sizes, "bf16")), placed_for("v5e:2x2", (), MESH))


def test_a_slice_of_a_whole_dimension_sends_nothing_and_one_of_a_split_dimension_less_than_a_gather():
    sizes = "b=1024,d=4096,k=128"
    whole = cost("Y = slice(X[b,d], d, k, 256)", "X=X_,Y=X_", sizes)
    assert whole.wire_bytes == 0
    assert whole.hbm_bytes == 2 * 2 * 512 * 128
    split = cost("Y = slice(X[b,d], d, k, 256)", "X=_X,Y=__", sizes)
    # Each device adds its part of the slice, which are 2/32 of what a gather would bring.
    assert [step.op for step in split.plan.steps] == ["apply", "psum"]
    assert split.wire_bytes == 2 * 1024 * 128


def test_an_update_moves_the_new_rows_alone_and_the_cache_is_there_once():
    found = cost("C = update(K[b,s,h], N[b,t,h], s)", "K=XY_,N=X__", "b=64,s=4096,t=1,h=128")
    assert (found.wire_bytes, found.hbm_bytes) == (0, 2 * 2 * 32 * 128)
    assert found.peak_bytes == 2 * 32 * 2048 * 128 + 2 * 32 * 128
    assert found.plan.problem.updates == (("K", "C"),)
    (part,) = problem("C = update(K[b,s], N[b,t], s)", sizes="b=2", dtype="bf16,K=int8").parts
    assert part.result.dtype == "s8"


@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        ("Y = slice(X[b,d], d, k, 6)", "d=8,k=4", "k=4 of Y, from 6 on, is more than there is of d=8"),
        ("Y = slice(X[b,d], d, b, 6)", "", r"X\[b, d\] already has the dimension b"),
        (
            "Y = slice(X[b,d], d, k)",
            "",
            "slice takes an array, a dimension, the new one and the first element",
        ),
        ("Y = concatenate(A[b,p], B[b,q], d)", "p=3,q=5,d=7", "d=7 of Y is not p=3 . q=5"),
        ("Y = concatenate(A[b,p], B[b,p], d)", "", "must differ in one dimension, which each has for itself"),
        ("Y = concatenate(A[b,p], d)", "", "concatenate takes arrays and the new dimension"),
        ("Y = update(C[b,s], N[t], s)", "", r"N\[t\] must have the dimensions of C\[b, s\], and another one"),
        ("Y = update(C[b,s], N[b,t], s)", "s=4,t=5", "t=5 of Y is more than there is of s=4"),
    ],
)
def test_errors(text, sizes, message):
    with pytest.raises(ShardvizError, match=message):
        problem(text, sizes=sizes or "b=8")
