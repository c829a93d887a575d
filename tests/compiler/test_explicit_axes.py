"""Explicit axes: what `jax.typeof` says, and what settles a refusal. JAX in this process is the judge."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.errors import TargetError
from shardviz.targets import TARGETS

MESH = AbstractMesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2)
BOTH = [TARGETS["shardy"], TARGETS["cpu"]]


def typeof_in_jax(a, w, out):
    """What JAX says of both operands and the result, in this process."""
    said = []

    def program(*operands):
        said.extend(str(jax.typeof(operand)) for operand in operands)
        result = jnp.einsum(
            "bd,df->bf", *operands, out_sharding=None if out is None else NamedSharding(MESH, out)
        )
        said.append(str(jax.typeof(result)))
        return result

    shapes = ((8, 2048), (2048, 8192))
    jax.jit(program).trace(
        *(
            jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(MESH, spec))
            for shape, spec in zip(shapes, (a, w), strict=True)
        )
    )
    return said


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize(
    ("specs", "theirs"),
    [
        ("X_,_Y", (P("X", None), P(None, "Y"), None)),
        ("XY,Y_->X_", (P("X", "Y"), P("Y", None), P("X", None))),
        ("XY,Y_->XY", (P("X", "Y"), P("Y", None), P("X", "Y"))),
        ("(XY)_,__", (P(("X", "Y"), None), P(None, None), None)),
    ],
)
def test_typeof_is_what_jax_says(worker, matmul, target, specs, theirs):
    answer = worker.ask(matmul(specs, axis_types="explicit"), target)
    assert (answer.status, answer.error) == ("ok", "")
    assert [text for _, text in answer.typeof] == typeof_in_jax(*theirs)


@pytest.mark.parametrize("target", BOTH)
def test_auto_axes_have_no_types_to_show(worker, matmul, target):
    assert worker.ask(matmul("XY,Y_->X_"), target).typeof == ()


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize(
    ("specs", "words", "spec", "settled"),
    [
        ("XY,Y_", "ambiguous how the output should be sharded", P("X", None), "XY,Y_->X_"),
        ("X_,_X", "produces an illegally sharded result", P("X", None), "X_,_X->X_"),
    ],
)
def test_a_refusal_comes_with_a_sharding_that_settles_it(worker, matmul, target, specs, words, spec, settled):
    answer = worker.ask(matmul(specs, axis_types="explicit"), target)
    assert answer.status == "error"
    assert answer.error.startswith("ShardingTypeError: ")
    assert words in answer.error
    assert f"out_sharding={spec} resolves it".replace("PartitionSpec", "P") in answer.hint
    assert answer.hint.endswith(f"the spec {settled.split('->')[1]}")
    # The operands' types are known all the same.
    assert len(answer.typeof) == 2
    assert worker.ask(matmul(settled, axis_types="explicit"), target).status == "ok"


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("specs", ["XY,Y_->XY; ,Y_", "X_,_Y; ,Y_"])
def test_a_refusal_in_the_second_part_names_that_parts_result(worker, matmul, target, specs):
    """Also where JAX takes the result of the first as it comes."""
    problem = matmul(specs, einsum="bx,xy->by; by,yz->bz", sizes="b=8,x=64,y=64,z=64", axis_types="explicit")
    answer = worker.ask(problem, target)
    assert answer.status == "error"
    assert "out_sharding=P('X', None) resolves it" in answer.hint
    assert problem.result.name in answer.hint


@pytest.mark.parametrize("target", BOTH)
def test_a_result_may_stay_unreduced_under_explicit_axes_only(worker, target):
    from dataclasses import replace

    problem = unreduced_problem("explicit")
    answer = worker.ask(problem, target)
    assert (answer.status, answer.collectives) == ("ok", ())
    assert answer.result_spec == problem.result.spec
    assert answer.typeof[-1][1] == "float32[8@X,8]{U:Y}"
    with pytest.raises(TargetError) as caught:
        worker.ask(replace(problem, axis_types="auto"), target)
    assert caught.value.message == (
        "JAX leaves no array unreduced under Auto axes, and Out is unreduced over Y"
    )
    assert "--axis-types explicit" in caught.value.hint
    assert caught.value.exit_code == 2


def test_jax_refuses_what_is_refused_for_it():
    """The sentence of `check_axis_types`, judged by JAX."""
    spec = P("X", None, unreduced={"Y"})
    NamedSharding(AbstractMesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2), spec)
    with pytest.raises(ValueError, match="Unreduced axes can only refer to mesh axes"):
        NamedSharding(AbstractMesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2), spec)


def unreduced_problem(axis_types):
    from shardviz.notation.einsum import Einsum
    from shardviz.planner.problem import Problem, Statement
    from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

    a = ShardedArray("A", ("b", "d"), (8, 8), "f32", PartitionSpec((("X",), ("Y",))))
    w = ShardedArray("W", ("d", "f"), (8, 8), "f32", PartitionSpec((("Y",), ())))
    out = ShardedArray("Out", ("b", "f"), (8, 8), "f32", PartitionSpec((("X",), ()), ("Y",)))
    einsum = Einsum((("b", "d"), ("d", "f")), ("b", "f"))
    return Problem(Mesh(("X", "Y"), (2, 4)), (Statement(einsum, (a, w), out),), axis_types)
