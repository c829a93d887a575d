"""Specs as Python code has them: of JAX's objects the same question as of text."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.api.explaining import problem_of
from shardviz.errors import QuestionError

MESH = AbstractMesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)


def struct(shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec)))


def problem(specs, einsum="bd,df->bf", sizes=None, mesh=None, dtype=None, ranked=False):
    return problem_of(einsum, mesh, specs, sizes, dtype, ranked=ranked)


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ((P("X", "Y"), P("Y", None)), "XY,Y_"),
        ((P("X", "Y"), P("Y"), P("X")), "XY,Y_->X_"),
        ([P(("X", "Y")), P()], "(XY)_,__"),
        ((NamedSharding(MESH, P("X")), "Y_", None), "X_,Y_->?"),
        ("P('X','Y'),P('Y',None)", "XY,Y_"),
        ("P('X','Y'),P('Y')->PartitionSpec('X')", "XY,Y_->X_"),
        ("P(), P(None, ('X', 'Y'))", "__,_(XY)"),
        ((P("X", "Y"), P("Y"), P("X", unreduced={"Y"})), "XY,Y_->X_{U_Y}"),
    ],
)
def test_says_the_same_as_text(specs, text):
    assert problem(specs) == problem(text)


def test_a_chain_has_one_for_each_operand():
    chain = "bd,df->bf; bf,fg->bg"
    assert problem((P("X"), P(None, "Y"), P("Y")), chain) == problem("X_,_Y; ?,Y_", chain)


def test_arrays_bring_mesh_sizes_and_dtype():
    specs = (struct((8, 16), "X", "Y", dtype=jnp.float32), struct((16, 4), "Y", dtype=jnp.float32))
    found = problem(specs)
    assert found == problem("XY,Y_", sizes="b=8,d=16,f=4", dtype="f32")
    assert problem(specs, sizes={"b": 8}) == found
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
    arrays = [
        jax.device_put(jnp.zeros(s.shape, s.dtype), NamedSharding(mesh, s.sharding.spec)) for s in specs
    ]
    assert problem(arrays) == found
    assert shardviz.explain("bd,df->bf", specs=specs, target="none").plan.problem == found


def test_an_open_operand_constrains_a_ranking():
    assert problem((P("X"), None), ranked=True) == problem("X_,?", ranked=True)


@pytest.mark.parametrize(
    ("specs", "rest", "message"),
    [
        ((P("X"),), {}, "specs has 1 entry, but 'bd,df->bf' has 2 operands"),
        ((P("X"), 3), {}, "'3' has no sharding"),
        ((P("X", P.UNCONSTRAINED), P()), {}, "leaves a dimension open"),
        ((struct((8, 16), "X"), struct((8, 4))), {}, "dimension d has the size 8 and the size 16"),
        ((struct((8,), "X"), P()), {}, "an array of shape (8,) is given for the dimensions b, d"),
        ((struct((8, 16), "X"), P()), {"mesh": "X=4,Y=4"}, "the shardings are on the mesh X=2,Y=4"),
        ((struct((8, 16)), struct((16, 4), dtype=jnp.int8)), {}, "the arrays have the dtypes bfloat16, int8"),
        ((jnp.zeros((8, 16)), P()), {}, "has no sharding"),
    ],
)
def test_refuses(specs, rest, message):
    with pytest.raises(QuestionError) as caught:
        problem(specs, **rest)
    assert message in caught.value.message
    assert caught.value.hint
