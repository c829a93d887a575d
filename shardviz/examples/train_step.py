"""A train step in plain JAX: a transformer of 16 layers, split over the axes data and model, with Adam."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

LAYERS, BATCH, LENGTH, WIDTH, HEADS, HIDDEN = 16, 64, 1024, 2048, 16, 8192
SPLIT = {  # the shape of each weight, those of all layers stacked, and how it is split
    "qkv": ((LAYERS, WIDTH, 3, HEADS, WIDTH // HEADS), P(None, "data", None, "model")),
    "out": ((LAYERS, HEADS, WIDTH // HEADS, WIDTH), P(None, "model", None, "data")),
    "up": ((LAYERS, WIDTH, HIDDEN), P(None, "data", "model")),
    "down": ((LAYERS, HIDDEN, WIDTH), P(None, "model", "data")),
}


def layer(x, w):
    q, k, v = jnp.einsum("btd,dchk->cbthk", x, w["qkv"])
    x = x + jnp.einsum("bthk,hkd->btd", jax.nn.dot_product_attention(q, k, v, is_causal=True), w["out"])
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None


def loss(params, x, wanted, policy):
    found, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, params)
    return jnp.mean(jnp.square((found - wanted).astype(jnp.float32)))


def step(params, mean, square, x, wanted, policy):
    gradients = jax.grad(loss)(params, x, wanted, policy)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, square, gradients)
    params = jax.tree.map(lambda w, m, s: w - 3e-4 * m * jax.lax.rsqrt(s + 1e-8), params, mean, square)
    return params, mean, square


def train_step(mesh, batch=BATCH, remat="nothing_saveable"):
    """The step, then its arguments on a mesh with the axes data and model: shapes, none of them allocated."""
    split = lambda shape, spec: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
    params = {name: split(shape, spec) for name, (shape, spec) in SPLIT.items()}
    x, policy = split((batch, LENGTH, WIDTH), P("data")), getattr(jax.checkpoint_policies, remat)
    return jax.jit(step, donate_argnums=(0, 1, 2), static_argnums=5), params, params, params, x, x, policy
