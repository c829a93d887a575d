"""A train step in plain JAX: 16 layers of a transformer, split over the axes data and model, with Adam."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

LAYERS, BATCH, LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 16, 64, 1024, 2048, 16, 8192, 32_000
SPLIT = {  # each parameter's shape, and how it is split; those of all layers are stacked
    "embed": ((WORDS, WIDTH), P("model", "data")),
    "w_qkv": ((LAYERS, WIDTH, 3, HEADS, WIDTH // HEADS), P(None, "data", None, "model")),
    "w_o": ((LAYERS, HEADS, WIDTH // HEADS, WIDTH), P(None, "model", None, "data")),
    "w_in": ((LAYERS, WIDTH, HIDDEN), P(None, "data", "model")),
    "w_out": ((LAYERS, HIDDEN, WIDTH), P(None, "model", "data")),
}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def layer(x, w):
    q, k, v = jnp.einsum("btd,dihk->ibthk", norm(x), w["w_qkv"])
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + jnp.einsum("bthk,hkd->btd", mixed, w["w_o"])
    return x + jax.nn.gelu(norm(x) @ w["w_in"]) @ w["w_out"], None


def loss(params, tokens):
    stacked = {name: params[name] for name in params if name != "embed"}
    x, _ = jax.lax.scan(jax.checkpoint(layer), params["embed"][tokens], stacked)
    scores = jax.nn.log_softmax((norm(x) @ params["embed"].T).astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores[:, :-1], tokens[:, 1:, None], axis=-1))


def step(params, mean, square, tokens):
    gradients = jax.grad(loss)(params, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, square, gradients)
    return jax.tree.map(lambda w, m, s: w - 3e-4 * m * jax.lax.rsqrt(s + 1e-8), params, mean, square), mean, square


def train_step(mesh):
    """The step and its arguments on a mesh with the axes data and model: shapes alone, nothing is allocated."""
    params = {
        name: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
        for name, (shape, spec) in SPLIT.items()
    }
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=NamedSharding(mesh, P("data")))
    return jax.jit(step, donate_argnums=(0, 1, 2)), params, params, params, tokens
