"""The arguments whose gradients collectives sum, in train steps that XLA for CPU has compiled."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.hlo import read_hlo

ROWS, WIDTH = 16, 32
SIZES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "scale": (WIDTH,), "up": (WIDTH, 2 * WIDTH)}
NAMES = {f"params['{name}']" for name in SIZES}


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def array(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


def weights(mesh, *lead):
    return {name: array(mesh, (*lead, *shape)) for name, shape in SIZES.items()}


def layer(x, w):
    h = x * w["scale"]
    return x + (h @ w["q"]) * (h @ w["k"]) + (h @ w["up"])[:, :WIDTH]


def loss(w, x, y):
    return jnp.mean((layer(x, w) - y) ** 2)


def compiled(program, *arguments):
    return jax.jit(program).lower(*arguments).compile().as_text()


def told(text):
    """The names of the arguments whose gradients each of the program's sums has, () where it says nothing."""
    module = read_hlo(text, infer=True, origins=True)
    names = module.argument_names
    return [
        tuple(names[number] for number in module.gradients.get(each.name, ()))
        for each in module.collectives
        if each.op == "all-reduce"
    ]


def every(found):
    return {name for names in found for name in names}


def adam(gradients, params, mean, square):
    """As optax has it: clipped by the norm of all, with decay."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: jnp.where(norm < 1, g, g / norm), gradients)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, square, gradients)
    step = jax.tree.map(lambda p, m, s: m / (jnp.sqrt(s) + 1e-8) + 0.01 * p, params, mean, square)
    return jax.tree.map(lambda p, s: p - 0.1 * s, params, step), mean, square


def scanned_step(params, mean, square, x, y):
    def deep(w):
        return jnp.mean((jax.lax.scan(lambda x, w: (jax.checkpoint(layer)(x, w), None), x, w)[0] - y) ** 2)

    return adam(jax.grad(deep)(params), params, mean, square)


def test_of_an_optimizer_with_states_and_a_norm_of_all(mesh):
    """Each result depends on each gradient, by the norm; only the own one is added element by element."""
    x = array(mesh, (ROWS, WIDTH), "data")
    found = told(compiled(scanned_step, *[weights(mesh, 3)] * 3, x, x))
    assert every(found) == NAMES
    assert sum(map(len, found)) == len(NAMES)


def test_a_step_of_shard_map_with_a_statistic_beside(mesh):
    """The sum of a statistic is added to an argument, too."""

    def step(params, statistic, x, y):
        @partial(
            jax.shard_map, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False
        )
        def summed(params, x, y):
            return jax.lax.psum((jax.grad(loss)(params, x, y), x.T @ y), "data")

        gradients, products = summed(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), statistic + products

    x = array(mesh, (ROWS, WIDTH), "data")
    found = told(compiled(step, weights(mesh), array(mesh, (WIDTH, WIDTH)), x, x))
    assert every(found) == NAMES


def test_momentum_that_no_name_tells_from_the_weight(mesh):
    """An average of weights is made of the weight as the weight is of the momentum."""

    def step(params, momentum, x, y):
        gradients = jax.grad(loss)(params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum

    x = array(mesh, (ROWS, WIDTH), "data")
    text = compiled(step, weights(mesh), weights(mesh), x, x)
    assert every(told(text)) == NAMES
    assert every(told(text.replace("params[", "weights["))) == set()


def test_a_sum_of_activations_is_of_no_gradient(mesh):
    """It is added to an argument, and returned."""

    def add(x, y, w):
        return x + y @ w

    y, w = array(mesh, (8, 32), None, "data"), array(mesh, (32, 8), "data")
    found = told(compiled(add, array(mesh, (8, 8)), y, w))
    assert found
    assert every(found) == set()
