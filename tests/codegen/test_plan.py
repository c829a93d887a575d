"""A plan as a program: JAX runs it, finds the same result, and compiles the same collectives."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardviz.codegen.plan import plan_code
from shardviz.errors import QuestionError
from shardviz.notation.einsum import Einsum
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.plan import Plan, Step
from shardviz.planner.planner import plan
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

HLO = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
SIZES = "b=16,d=32,f=64"
DEVICES = re.compile(r'jax\.config\.update\("jax_(platforms|num_cpu_devices)", .*\)\n')
"""What the tests have set up already."""


def planned(einsum, specs, mesh="X=2,Y=4", sizes=SIZES, dtype="f32"):
    problem = problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype=dtype)
    return plan(problem, objective="bytes")


def expected(plan):
    """Kind and groups of a plan's collectives, sorted; a ppermute's groups stand for its pairs."""
    return sorted((HLO[step.op], plan.problem.mesh.groups(step.axes)) for step in plan.collectives)


def run(code, capsys):
    exec(compile(DEVICES.sub("", code), "program", "exec"), {})
    return capsys.readouterr().out


CHOSEN = (
    ("bd,df->bf", "XY,_Y->Y_"),
    ("bd,df->bf; bf,fd->bd", "X_,__->?; ?,Y_->X_"),
    ("bd,df->bf; bf,fd->bd", "XY,Y_->XY; YX,X_->X_"),
)
"""Together they have every kind of step."""


def test_programs_by_hand_have_the_plans_collectives_and_the_result_of_one_device(capsys, collectives_in):
    seen = set()
    for einsum, specs in CHOSEN:
        found = planned(einsum, specs)
        said = run(plan_code(found), capsys)
        assert said.endswith("the result is the same as on one device\n"), specs
        kinds = [kind for kind, _ in expected(found)]
        assert [kind for kind, _ in collectives_in(said)] == kinds, specs
        if "collective-permute" not in kinds:
            assert collectives_in(said) == expected(found), specs
        seen |= {step.op for step in found.steps}
    assert seen == {*HLO, "einsum", "slice"}


def test_a_wrong_step_is_found(capsys):
    code = plan_code(planned("bd,df->bf", "XY,Y_->X_"))
    wrong = code.replace('jax.lax.psum(Out, "Y")', "Out")
    assert wrong != code
    with pytest.raises(AssertionError):
        run(wrong, capsys)


def test_pending_sums_stand_in_front(capsys):
    code = plan_code(planned("bd,df->bf", "X_{U_Y},__->X_{U_Y}"))
    assert "A = ones((4, 16, 32), 1 / 2, jnp.float32)" in code
    assert 'in_specs=(P("Y", "X", None), P(None, None)), out_specs=P("Y", "X", None)' in " ".join(
        code.split()
    )
    assert run(code, capsys).endswith("the result is the same as on one device\n")


def test_a_step_with_a_mask_and_narrow_weights_runs(capsys):
    text, sizes = "Y = where(M[b,f], X[b,d] * W[d,f], 0)", "b=32,d=16,f=16"
    forward = problem_from_text(
        text, mesh=parse_mesh("X=2,Y=4"), specs="X=X_,W=_Y", sizes=sizes, dtype="f32,W=bf16"
    )
    code = plan_code(plan(with_backward(forward, Training())))
    assert "rng.random((32, 16)) < 0.5" in code
    assert run(code, capsys).endswith("the results are the same as on one device\n")


def test_every_step_has_its_reason():
    found = planned("bd,df->bf", "XY,_Y->Y_")
    text = " ".join(plan_code(found).replace("    # ", "").split())
    for number, step in enumerate(found.steps, 1):
        assert f"{number}. {step.reason}" in text


def test_large_arrays_are_compiled_but_not_made():
    code = plan_code(planned("bd,df->bf", "X_,_Y->XY", sizes="b=65536,d=65536,f=65536"))
    assert "ShapeDtypeStruct" in code
    assert "compiled(" not in code


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"mesh": "X=64,Y=64"}, "a plan for 4,096 devices cannot run on simulated ones"),
        ({"dtype": "f8e4m3fn"}, "XLA for CPU may not multiply f8e4m3fn"),
    ],
)
def test_what_cannot_run_here_is_refused(question, message):
    with pytest.raises(QuestionError, match=message):
        plan_code(planned("bd,df->bf", "X_,__", **{"sizes": "b=64,d=64,f=64", **question}))


MOVES = [
    ("all_gather", "X,YZ", "_,Y", ("X", "Z")),
    ("psum_scatter", "X,_{U_YZ}", "XZ,Y", ("Z", "Y")),
    ("all_to_all", "_,XYZ,_", "Z,X,Y", ("Y", "Z")),
    ("slice", "X,_,_", "XZ,Y,_", ("Z", "Y")),
    ("mask", "X,_", "X,_{U_YZ}", ("Y", "Z")),
    ("pad", "XY,Z", "X,_{U_YZ}", ("Y", "Z")),
]


def spec(text, rank):
    dims, _, pending = text.partition("{U_")
    axes = [tuple(dim.strip("_")) for dim in dims.split(",")]
    return PartitionSpec((*axes, *((),) * (rank - len(axes))), tuple(pending.strip("}")))


@pytest.mark.parametrize(("op", "before", "after", "axes"), MOVES)
def test_moves_of_several_dimensions_are_one_collective(capsys, collectives_in, op, before, after, axes):
    dims = "ijk"[: before.count(",") + 1]
    shape = tuple({"i": 8, "j": 16, "k": 8}[dim] for dim in dims)
    old, new = spec(before, len(dims)), spec(after, len(dims))
    einsum = Einsum((tuple(dims),), tuple(dims))
    made = ShardedArray("B", tuple(dims), shape, "f32", new)
    problem = Problem(
        Mesh(("X", "Y", "Z"), (2, 2, 2)), (Statement(einsum, (replace(made, name="A", spec=old),), made),)
    )
    moved = Step(op, "A", axes, None, old, new, shape, "f32", 0, 0, "moves")
    step = Step("einsum", "B", (), None, new, new, shape, "f32", 0, 0, "works", ("A",), einsum)
    said = run(plan_code(Plan(problem, (moved, step), new, ("",))), capsys)
    assert said.endswith("the result is the same as on one device\n")
    assert [kind for kind, _ in collectives_in(said)] == ([HLO[op]] if op in HLO else [])


def test_parts_of_axes_are_axes_of_the_programs_mesh(capsys):
    found = planned("bd,df->bf", "X:(1)2 _, _ X:(2)2 -> X:(1)2 _", mesh="X=4,Y=2")
    code = plan_code(found)
    assert "# JAX has no sub-axes: X1 and X2 are the parts of X, the major first." in code
    assert "jax.make_mesh((2, 2, 2), ('X1', 'X2', 'Y')".replace("'", '"') in code
    assert run(code, capsys).endswith("the result is the same as on one device\n")


PROGRAMS = {
    "gated": (
        "H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]",
        "b=16,d=32,f=64",
    ),
    "attention": (
        "Q[b,t,k,g,h] = X[b_X,t,d] * WQ[d,k_Y,g,h]; K = X[b_X,s,d] * WK[d,k_Y,h]; "
        "V = X[b,s,d] * WV[d,k_Y,h]; O = causal_attention(Q, K, V); Y[b_X,t,d] = X + O * WO[k_Y,g,h,d]",
        "b=4,t=16,s=16,d=32,k=4,g=2,h=8",
    ),
    "cross entropy": (
        "L = X[b_X,d] * W[d,v_Y]; Y[b_X] = cross_entropy(L, T[b_X], v)",
        "b=16,d=32,v=64",
    ),
    "scores": (
        "Q = X[b_X,t_Y,d] * WQ[d,h]; K = X[b,s,d] * WK[d,h]; S[b,t,s_Y] = Q * K; P[b,t,s_Y] = softmax(S, s); "
        "Y[b_X,t,h_Y] = P * K",
        "b=4,t=8,s=8,d=16,h=8",
    ),
    "recurrence": (
        "U = conv(X[b_X,t,d] * W[d,e_Y], C[k,e_Y], t); H = scan(sigmoid(U), U, t); "
        "Y[b_X,t_Y,d] = dropout(rotary(H * O[e_Y,d], t), M[b_X,t_Y,d], 0.25)",
        "b=4,t=8,d=8,e=16,k=3",
    ),
    "halos": (
        "U = conv(X[b_X,t_Y,d], C[k,d], t); O[b_X,t_Y,n,h] = window_attention(reshape(U, d=nh), "
        "K[b_X,s_Y,n,h], K, 4)",
        "b=2,t=256,n=4,h=128,k=3",
    ),
    "shared rows": (
        "O[b_X,t,n,h] = attention(Q[b_X,t,n,h], K[b_X,s_Y,n,h], V[b_X,s_Y,n,h]); Y[b_X,t,d] = O * W[n,h,d]",
        "b=2,t=1,s=4096,n=2,h=64,d=8",
    ),
    "logits": (
        "E = take(W[v_Y,d], T[b_X,t]); N = rms_norm(E, d, g[d]); L[b_X,t,v_Y] = N * W[v,d]",
        "b=4,t=8,d=32,v=64",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cross entropy", "scores", "halos", "shared rows", "logits"])
def test_programs_of_other_functions_give_the_result_of_one_device(capsys, name):
    text, sizes = PROGRAMS[name]
    problem = problem_from_text(text, mesh=parse_mesh("X=2,Y=4"), sizes=sizes, dtype="f32")
    found = plan(problem)
    assert any(step.is_beside for step in found.steps) == (name in ("halos", "shared rows"))
    said = run(plan_code(found), capsys)
    assert said.endswith("the result is the same as on one device\n")


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("gated", Training("layer", Optimizer("adam", over=("X",)))),
        pytest.param("recurrence", Training("layer"), marks=pytest.mark.slow),
        pytest.param("attention", Training("dots"), marks=pytest.mark.slow),
        pytest.param("halos", Training("none"), marks=pytest.mark.slow),
        pytest.param("shared rows", Training("none"), marks=pytest.mark.slow),
    ],
)
def test_train_steps_by_hand_give_the_gradients_of_jax(capsys, name, training):
    text, sizes = PROGRAMS[name]
    problem = problem_from_text(text, mesh=parse_mesh("X=2,Y=4"), sizes=sizes, dtype="f32")
    code = plan_code(plan(with_backward(problem, training)))
    assert "backward = jax.vjp(" in code
    assert run(code, capsys).endswith("the results are the same as on one device\n")
