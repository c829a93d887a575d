"""Gradients as statements: names, sums of several uses, constraints, what is computed again."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.notation.einsum import parse_chain
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import parse_specs
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from shardviz.sharding import ShardedArray

MESH = parse_mesh("D=2,T=4")
SIZES = {"b": 8, "d": 16, "f": 32, "g": 4}


def program(*lines: str, returned: tuple[str, ...] = (), dtype: str = "bf16", **specs: str) -> Problem:
    """``"H = X[bd] W1[df]"``, or with a function ``"S = silu H[bf]"``; arrays that `specs` name have one."""
    arrays: dict[str, ShardedArray] = {}
    parts = []

    def array(name: str, dims: str) -> ShardedArray:
        spec = parse_specs(specs[name], MESH.axis_names)[0].operands[0] if name in specs else None
        shape = tuple(SIZES[dim] for dim in dims)
        return arrays.setdefault(name, ShardedArray(name, tuple(dims), shape, dtype, spec))

    for line in lines:
        made, _, rest = line.partition(" = ")
        words = rest.split()
        function = "multiply" if "[" in words[0] else words.pop(0)
        operands = [word.rstrip("]").partition("[") for word in words]
        name, _, dims = made.rstrip("]").partition("[")
        made_before = {part.result.name for part in parts}
        taken = [array(each, letters) for each, _, letters in operands]
        (einsum,) = parse_chain(f"{','.join(letters for _, _, letters in operands)}->{dims}")
        operands_taken = tuple(each.with_spec(None) if each.name in made_before else each for each in taken)
        parts.append(Statement(einsum, operands_taken, array(name, dims), function))
    return Problem(MESH, tuple(parts), returned=returned)


def told(problem: Problem, phase: str = "backward") -> list[str]:
    """The statements of a phase: ``dW1 = multiply(X, dH) bd,bf->df``."""
    lines = []
    for part in problem.parts:
        operands = ", ".join(each.name for each in part.operands)
        if part.phase == phase:
            lines.append(f"{part.result.name} = {part.function}({operands}) {part.einsum}")
    return lines


MLP = program("H[bf] = X[bd] W1[df]", "Y[bd] = H[bf] W2[fd]", X="D_", W1="_T", W2="T_", Y="D_")


def test_the_gradients_of_a_chain():
    step = with_backward(MLP, Training())
    assert told(step) == [
        "dH = multiply(dY, W2) bd,fd->bf",
        "dW2 = multiply(H, dY) bf,bd->fd",
        "dX = multiply(dH, W1) bf,df->bd",
        "dW1 = multiply(X, dH) bd,bf->df",
    ]
    assert step.returned == ("Y", "dX", "dW1", "dW2")
    assert step.gradients == (("Y", "dY"), ("X", "dX"), ("W1", "dW1"), ("W2", "dW2"))
    assert step.forward == MLP.parts


def test_an_array_that_is_used_twice_has_the_sum_of_both_gradients():
    gated = program(
        "H[bf] = X[bd] W1[df]",
        "G[bf] = X[bd] W2[df]",
        "M[bf] = H[bf] G[bf]",
        "Z[bd] = M[bf] W3[fd]",
        "Y[bd] = add X[bd] Z[bd]",
        X="D_",
        W1="_T",
        W2="_T",
        W3="T_",
        Y="D_",
    )
    step = with_backward(gated, Training())
    assert told(step) == [
        "dM = multiply(dY, W3) bd,fd->bf",
        "dW3 = multiply(M, dY) bf,bd->fd",
        "dH = multiply(dM, G) bf,bf->bf",
        "dG = multiply(H, dM) bf,bf->bf",
        "dX_1 = multiply(dG, W2) bf,df->bd",
        "dX_2 = add(dY, dX_1) bd,bd->bd",
        "dW2 = multiply(X, dG) bd,bf->df",
        "dX_3 = multiply(dH, W1) bf,df->bd",
        "dX = add(dX_2, dX_3) bd,bd->bd",
        "dW1 = multiply(X, dH) bd,bf->df",
    ]


def test_an_operand_that_stands_twice_in_a_statement():
    square = program("S[bd] = X[bd] X[bd]", X="D_", S="D_")
    assert told(with_backward(square, Training())) == [
        "dX_1 = multiply(dS, X) bd,bd->bd",
        "dX_2 = multiply(X, dS) bd,bd->bd",
        "dX = add(dX_1, dX_2) bd,bd->bd",
    ]


def test_a_result_that_is_used_again_has_the_given_gradient_and_its_uses():
    both = program(
        "H[bf] = X[bd] W1[df]",
        "Y[bd] = H[bf] W2[fd]",
        returned=("H",),
        X="D_",
        W1="_T",
        W2="T_",
        H="DT",
        Y="D_",
    )
    step = with_backward(both, Training())
    assert step.gradients[:2] == (("H", "dH_given"), ("Y", "dY"))
    assert told(step)[0] == "dH_1 = multiply(dY, W2) bd,fd->bf"
    assert told(step)[1] == "dH = add(dH_given, dH_1) bf,bf->bf"
    assert {each.name for each in step.arguments} == {"X", "W1", "W2", "dH_given", "dY"}


def test_what_is_summed_forward_is_repeated_backward_and_the_other_way_round():
    bias = program("Y[bf] = add H[bf] B[f]", "S[b] = Y[bf]", H="D_", B="_", S="D")
    assert told(with_backward(bias, Training())) == [
        "dY = sum(dS) b->bf",
        "dH = sum(dY) bf->bf",
        "dB = sum(dY) bf->f",
    ]


def test_gradients_are_split_as_their_arrays():
    step = with_backward(
        program("H[bf] = X[bd] W1[df]", "Y[bd] = H[bf] W2[fd]", X="D_", W1="D T", W2="T_", H="DT", Y="D_"),
        Training(),
    )
    specs = {part.result.name: part.result.spec for part in step.parts}
    forward = {array.name: array.spec for array in step.arrays if array.spec is not None}
    for name in ("X", "W1", "W2", "H"):
        assert specs[f"d{name}"] == forward[name]
    assert forward["dY"] == forward["Y"]


SILU = ("H[bf] = X[bd] W1[df]", "S[bf] = silu H[bf]", "Y[bd] = S[bf] W2[fd]")


@pytest.mark.parametrize(
    ("remat", "recomputed"),
    [
        ("none", []),
        ("dots", ["S_remat = silu(H) bf->bf"]),
        ("layer", ["H_remat = multiply(X, W1) bd,df->bf", "S_remat = silu(H_remat) bf->bf"]),
    ],
)
def test_what_is_computed_again(remat, recomputed):
    problem = program(*SILU, X="D_", W1="_T", W2="T_", Y="D_")
    step = with_backward(problem, Training(remat))
    assert told(step, "recomputed") == recomputed
    assert "dW2 = multiply(S_remat, dY) bf,bd->fd" in told(step) or remat == "none"
    made = {array.name for array in step.arguments}
    for part in step.parts:
        assert {each.name for each in part.operands} <= made
        made.add(part.result.name)


def test_names_that_the_program_has_already():
    taken = program("dY[bf] = X[bd] W[df]", "Y[bd] = dY[bf] W2[fd]", X="D_", W="_T", W2="T_", Y="D_")
    step = with_backward(taken, Training())
    assert dict(step.gradients) == {"Y": "dY_1", "X": "dX", "W": "dW", "W2": "dW2"}


def test_a_result_without_a_spec():
    step = with_backward(program("Y[bf] = X[bd] W[df]", X="D_", W="_T"), Training())
    given = next(each for each in step.arguments if each.name == "dY")
    assert str(given.spec) == "P('D', 'T')"
    assert step.forward[-1].result.spec == given.spec


def test_integers_have_no_gradients():
    with pytest.raises(QuestionError, match="depends on an argument of floating point"):
        with_backward(program("Y[bf] = X[bd] W[df]", X="D_", W="__", Y="D_", dtype="s32"), Training())


def test_adam_in_mixed_precision():
    problem = program("Y[bf] = X[bd] W[df]", X="D_", W="_T", Y="DT")
    step = with_backward(problem, Training(optimizer=Optimizer("adam")))
    assert told(step, "optimizer") == [
        "W_mean_new = adam_mean(W_mean, dW) df,df->df",
        "W_square_new = adam_square(W_square, dW) df,df->df",
        "W_master_new = adam_update(W_master, W_mean_new, W_square_new) df,df,df->df",
        "W_new = convert(W_master_new) df->df",
    ]
    assert step.returned == ("Y", "dX", "W_mean_new", "W_square_new", "W_master_new", "W_new")
    dtypes = {array.name: array.dtype for array in step.arrays}
    assert [dtypes[name] for name in ("W", "dW", "W_master", "W_mean", "W_new", "dX")] == [
        "bf16",
        "f32",
        "f32",
        "f32",
        "bf16",
        "bf16",
    ]


def test_the_state_of_a_sharded_optimizer():
    problem = program("Y[bf] = X[bd] W[df]", X="D_", W="_T", Y="DT")
    step = with_backward(problem, Training(optimizer=Optimizer("adam", over=("D", "T"))))
    specs = {array.name: str(array.spec) for array in step.arrays if array.spec is not None}
    assert specs["W_mean"] == specs["W_master"] == "P('D', 'T')"
    assert specs["W_new"] == specs["W"] == "P(None, 'T')"
    assert "dW" not in specs


def test_sgd_without_a_master_copy_has_no_state():
    problem = program("Y[bf] = X[bd] W[df]", X="D_", W="_T", Y="DT")
    step = with_backward(problem, Training(optimizer=Optimizer("sgd", master="", gradients="bf16")))
    assert told(step, "optimizer") == ["W_new = sgd_update(W, dW) df,df->df"]


def test_inputs_are_whole_numbers_and_what_has_their_dimensions():
    """Labels beside features: what stands for the same examples is not a parameter."""
    text = "L = X[b,t,d] * W[d,v]; Y = cross_entropy(L + E[t,v], T[b,t], v)"
    problem = problem_from_text(text, mesh=MESH, specs="W=__", sizes="b=8,t=8,d=8,v=8")
    assert problem.parameters == ("W", "E")
