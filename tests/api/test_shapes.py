"""`shardviz.with_shardings` beside `jax.jit`'s `in_shardings`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.errors import QuestionError

MESH = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
SHAPES = jax.eval_shape(lambda: ({"w": jnp.ones((8, 64)), "b": {"in": jnp.ones(64)}}, jnp.ones((16, 8)), 1.0))
SPECS = ({"w": P("X", "Y"), "b": P("Y")}, P("X"), None), P()


@pytest.mark.parametrize("specs", SPECS)
def test_a_prefix_stands_for_all_below_it_as_in_jit(specs):
    def step(params, x, rate):
        return jax.tree.map(jnp.sin, (params, x)), rate

    def is_end(each):
        return each is None or isinstance(each, P)

    def on_mesh(spec):
        return None if spec is None else NamedSharding(MESH, spec)

    placed = jax.tree.map(on_mesh, specs, is_leaf=is_end)
    arguments = shardviz.with_shardings(SHAPES, specs, MESH)
    wanted = jax.jit(step, in_shardings=placed).lower(*SHAPES).compile().input_shardings
    assert jax.jit(step).lower(*arguments).compile().input_shardings == wanted
    assert jax.tree.leaves(shardviz.with_shardings(SHAPES, placed)) == jax.tree.leaves(arguments)


def test_what_has_no_mesh_or_another_tree():
    with pytest.raises(QuestionError, match="is on no mesh"):
        shardviz.with_shardings(SHAPES, P("X"))
    with pytest.raises(ValueError, match="pytree structure error"):
        shardviz.with_shardings(SHAPES, (P("X"), {"x": P()}, None), MESH)
