"""Functions of a user's, whose lines are run."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P


def scaled(x):
    y = x * 2
    return y + 1


def body(a, w):
    h = a @ w
    s = jax.lax.psum(h, "y")
    return scaled(s)


def mapped(mesh):
    a = jnp.arange(32.0).reshape(4, 8)
    w = jnp.arange(16.0).reshape(8, 2)
    f = jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    return f, a, w


def mlp(x, w1, w2):
    h = jax.nn.relu(
        x @ w1 - 40
    )  # fmt: skip
    h, _ = jax.lax.scan(lambda c, _: (c + 1, None), h, None, length=3)
    return h @ w2


def split(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


def jitted(mesh):
    w1, w2 = split(mesh, (4, 8), None, "y"), split(mesh, (8, 4), "y")
    return jax.jit(mlp, out_shardings=NamedSharding(mesh, P("x"))), split(mesh, (4, 4), "x"), w1, w2


def graded(mesh):
    def loss(w, x):
        h = x @ w
        return jnp.sum(h * h)

    return jax.jit(jax.grad(loss)), split(mesh, (4, 8), None, "y"), split(mesh, (4, 4), "x")


def large(mesh):
    return jax.jit(lambda x: x + 1), split(mesh, (1024, 1024), "x", "y")


def huge(mesh):
    return jax.jit(lambda x: x + 1), split(mesh, (1 << 14, 1 << 14), "x", "y")


def wrong(_mesh):
    return (lambda a: a @ a), jnp.ones((2, 3))


def lowered(mesh):
    return jax.jit(lambda x: x + 1).lower(split(mesh, (4, 4), "x"))
