"""The dtypes of a program's arrays, against JAX's."""

from __future__ import annotations

import itertools

import pytest

from shardviz.errors import QuestionError
from shardviz.planner.problem.dtypes import parse_dtypes
from shardviz.planner.problem.functions import FUNCTIONS, PROGRAM_FUNCTIONS, computed_dtype, local_work
from shardviz.planner.problem.jax_code import JaxCode
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.sharding.array import jax_name, promoted_dtype

DTYPES = ("bool", "uint8", "uint32", "int8", "int16", "int32", "float16", "bfloat16", "float32", "complex64")
MESH = Mesh(("X", "Y"), (2, 2))
CALLS = (
    "Y = A[b,d] * B[d,f]",
    "Y = A[b,d] + B[b,d]",
    "Y = A[b,d] - B[d]",
    "Y = -A[b,d]; Z = Y * B[d,f]",
    "Y = 0.5 * A[b,d]; Z = Y + B[b,d]",
    "Y = A[b,d] / B[b,d]",
    "Y = maximum(A[b,d], B[d])",
    "Y = exp(A[b,d]) * B[d,f]",
    "Y = square(A[b,d]) + B[d]",
    "Y = sum(A[b,d], d) + B[b]",
    "Y = mean(A[b,d], d) + B[b]",
    "Y = max(A[b,d], d) + B[b]",
    "Y = softmax(A[b,d], d) * B[d,f]",
    "Y = rms_norm(A[b,d], d, B[d])",
    "Y = take(A[v,d], T[b]) + B[d]",
    "Y = pick(A[b,v], T[b], v) + B[b]",
    "Y = attention(A[b,t,n,h], B[b,s,n,h], B)",
    "Y = reshape(A[b,d], d=nh) + B[h]",
    "Y = top_k(A[b,t,e], e, 2) + B[e]",
)


def problem(text, dtype, sizes=""):
    return problem_from_text(text, mesh=MESH, sizes=sizes, dtype=dtype, ranked=True)


def test_arrays_of_two_dtypes_meet_in_that_of_jax():
    import jax.numpy as jnp

    for both in itertools.combinations_with_replacement(DTYPES, 2):
        assert promoted_dtype(map(canonical_dtype, both)) == canonical_dtype(str(jnp.promote_types(*both))), (
            both
        )


@pytest.mark.parametrize(("a", "b"), [("int8", "bf16"), ("bf16", "int8"), ("int8", "int8"), ("f32", "bf16")])
def test_results_have_the_dtype_that_jax_gives_without_being_told(a, b):
    import jax
    import jax.numpy as jnp

    for part in (part for text in CALLS for part in problem(text, f"A={a},B={b}").parts):
        function = FUNCTIONS[part.function]
        plain = JaxCode(part, tuple(f"x[{number}]" for number in range(len(part.operands))))
        is_text = isinstance(function.code, str)
        code = plain.pointwise(function.code, function.averages) if is_text else function.code(plain)
        given = [
            jax.ShapeDtypeStruct(each.shape, getattr(jnp, jax_name(each.dtype))) for each in part.operands
        ]
        try:
            made = jax.eval_shape(lambda x, code=code: eval(code, {"jax": jax, "jnp": jnp, "x": x}), given)
        except TypeError:
            # Its rsqrt takes no whole numbers, but what we convert before.
            assert part.function == "normalize"
        else:
            assert canonical_dtype(str(made.dtype)) == part.result.dtype, part


def test_weights_of_one_byte_are_read_as_such_and_multiplied_as_the_activations_are():
    (part,) = problem("Y = X[b,d] * W[d,f]", "bf16,W=int8").parts
    assert local_work(part, [(8, 16), (16, 32)], (8, 32)) == (
        2 * 8 * 16 * 32, 2 * 8 * 16 + 16 * 32 + 2 * 8 * 32, "bf16"
    )  # fmt: skip
    (part,) = problem("Y = X[b,d] * W[d,f]", "X=f8e4m3fn,W=bf16").parts
    assert computed_dtype(part) == "bf16"


def test_a_result_may_have_a_dtype_of_its_own():
    asked = problem("H = X[b,d] * W[d,f]; Y = H * V[f,d]", "bf16,H=f32")
    assert [part.result.dtype for part in asked.parts] == ["f32", "f32"]


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        ("bf16,V=s8", "no array is called 'V'"),
        ("bf16,f32", "'f32' is a second dtype, at character 6 of 'bf16,f32'"),
        ("W=s8,W=f32", "W has two dtypes, at character 6 of 'W=s8,W=f32'"),
        ("bf16,W=int7", "unknown dtype 'int7'"),
        ("", "unknown dtype ''"),
        ("f32,T=f32", "T selects elements, which f32 cannot"),
    ],
)  # fmt: skip
def test_errors(dtype, message):
    with pytest.raises(QuestionError, match=message):
        problem("Y = take(X[v,d], T[b]) * W[d,f]", dtype)


def test_a_mask_of_numbers_is_refused_with_the_dtype_that_it_may_have():
    with pytest.raises(QuestionError) as error:
        problem("Y = where(M[b,d], X[b,d], 0)", "f32,M=f32")
    problem("Y = where(M[b,d], X[b,d], 0)", f"f32,{error.value.hint.removeprefix('write ')}")


def test_dtypes_are_written_as_they_are_read():
    assert str(parse_dtypes(" float32 , W1 = int8,V=i4")) == "f32,W1=s8,V=s4"
    assert str(parse_dtypes("W1=int8")) == "bf16,W1=s8"


def test_each_function_of_numbers_says_which_operands_are_not():
    assert {name for name, one in PROGRAM_FUNCTIONS.items() if one.selects} >= {"take", "pick"}
