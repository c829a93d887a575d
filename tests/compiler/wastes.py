"""Programs with one planted waste each, and clean ones, on the mesh data=2, model=4.

A function of `WASTES` returns the program and its arguments, `is_mended` with the change that is to be found.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def over(*spec):
    return NamedSharding(MESH, P(*spec))


def array(shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=over(*spec))


def split(x, *spec):
    return jax.lax.with_sharding_constraint(x, over(*spec))


def updated(weights, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def squares(w, x):
    return jnp.sum(jnp.square(jnp.tanh(x @ w["up"]) @ w["down"]))


def step(w, x):
    return updated(w, jax.grad(squares)(w, x))


def jitted(function, weights):
    """A step that donates its weights, and returns them split as they are."""
    kept = jax.tree.map(lambda each: each.sharding, weights)
    return jax.jit(function, out_shardings=kept, donate_argnums=0)


ASYNCHRONOUS = "xla_enable_async_all_reduce", "xla_tpu_enable_async_collective_fusion_fuse_all_reduce"
BOTH = "data", "model"
COLUMNS_THEN_ROWS = {"up": array((1024, 4096), None, "model"), "down": array((4096, 1024), "model")}
WEIGHTS = {"up": array((1024, 4096)), "down": array((4096, 1024))}


def sum_in_a_loop(is_mended):
    """Gradient accumulation: every micro-batch sums its gradients over the devices."""

    def loop(w, x):
        add = lambda total, one: (jax.tree.map(jnp.add, total, jax.grad(squares)(w, one)), None)  # noqa: E731
        return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), x)[0]

    def once(w, x):
        return jax.shard_map(
            lambda *own: jax.lax.psum(loop(*own), ("data",)),
            axis_names={"data"},
            mesh=MESH,
            in_specs=(P(), P(None, "data")),
            out_specs=P(),
            check_vma=False,
        )(w, x)

    weights = COLUMNS_THEN_ROWS
    summed = once if is_mended else loop
    x = array((4, 512, 1024), None, "data")
    return jitted(lambda w, x: updated(w, summed(w, x)), weights), (weights, x)


def gather_then_slice(is_mended):
    """Logits of all places are gathered, and those of the last place are taken."""

    def last(x, w):
        x = jnp.tanh(x @ w)
        if not is_mended:
            x = split(x, "data")
        return x[:, -1]

    return jax.jit(last), (array((16, 512, 256), "data"), array((256, 4096), None, "model"))


def gather_and_split_again(is_mended):
    """An activation is gathered, changed element by element, and split again as before."""

    def program(x, w):
        x = x @ w
        if not is_mended:
            x = split(x, "data")
        return split(jnp.tanh(x), "data", "model")

    return jax.jit(program), (array((4096, 256), "data"), array((256, 8192), None, "model"))


def few_heads(is_mended):
    """A cache of two heads of keys and values, split over four devices along the size of a head."""

    def decode(q, k, v):
        return split(jax.nn.dot_product_attention(q, k, v), "data", None, "model")

    cache = array((8, 16384, 2, 64), "data", None, None, "model")
    keys = array((8, 16384, 2, 64), BOTH) if is_mended else cache
    return jax.jit(decode), (array((8, 1, 8, 64), "data", None, "model"), keys, cache)


def static_scatter(is_mended):
    """Rows of activations are added at places that the program knows."""
    at = jnp.arange(0, 4096, 2)
    u = array((2048, 512), *(() if is_mended else ("data",)))
    return jax.jit(lambda x, u: jnp.tanh(x.at[at].add(u))), (array((4096, 512), "data"), u)


def embedding(is_mended):
    """A lookup in a table that is split over its features by the axis that splits the batch."""

    def loss(w, tokens):
        x = w["table"][tokens]
        if is_mended:
            x = split(x, "data", None, None)
        for each in w["layers"]:
            x = x + jnp.tanh(x @ each["up"]) @ each["down"]
        return jnp.mean(jnp.square(x))

    layer = {"up": array((256, 1024), "data"), "down": array((1024, 256), "data")}
    weights = {"table": array((4096, 256), None, "data"), "layers": [layer] * 2}
    tokens = array((64, 512), "data", dtype=jnp.int32)
    return jitted(lambda w, tokens: updated(w, jax.grad(loss)(w, tokens)), weights), (weights, tokens)


def lost_donation(is_mended):
    """A cache is donated, and comes back split in another way."""
    cache = array((8, 1024, 16, 64), "data", None, "model")
    new = array((8, 1, 16, 64), "data", None, "model")
    write = lambda cache, new, at: jax.lax.dynamic_update_slice(cache, new, (0, at, 0, 0))  # noqa: E731
    kept = cache.sharding if is_mended else over("data")
    return jax.jit(write, donate_argnums=0, out_shardings=kept), (cache, new, array((), dtype=jnp.int32))


def rematerialized(is_mended):
    """A reshard for which XLA knows no way but the whole array on every device."""
    after = None, ("data", "model"), None
    x = array((256, 256, 256), *(after if is_mended else ("model", None, "data")))
    return jax.jit(lambda x: jnp.sin(split(x * 2, *after))), (x,)


def reshaped_batch(is_mended):
    """Micro-batches are made of the batch, and its split goes to their number."""

    def program(w, x):
        x = x.reshape(4, 256, 1024)
        if is_mended:
            x = split(x, None, "data", None)
        return jax.lax.scan(lambda total, one: (total + squares(w, one), None), jnp.zeros(()), x)[0]

    return jax.jit(program), (COLUMNS_THEN_ROWS, array((1024, 1024), "data"))


def convolution(is_mended):
    """The channels of an activation, gathered for a convolution whose kernel is split over those it makes."""

    def conv(k, x):
        return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    spec = (("data", "model"), None, None, None) if is_mended else ("data", None, None, "model")
    kernel = array((3, 3, 128, 128), None, None, None, "model")
    return jax.jit(conv), (kernel, array((32, 64, 64, 128), *spec))


def padded(is_mended):
    """Six heads over four devices."""
    spec = (BOTH,) if is_mended else ("data", None, "model")

    def attend(x, w):
        q, k, v = (split((x @ w[name]).reshape(16, 512, 6, 64), *spec) for name in "qkv")
        return jax.nn.dot_product_attention(q, k, v)

    return jax.jit(attend), (array((16, 512, 512), "data"), {name: array((512, 384)) for name in "qkv"})


def replicated(is_mended):
    """Weights that every device holds whole, while one axis of the mesh splits nothing."""
    weights = WEIGHTS | ({"up": array((1024, 4096), None, "model")} if is_mended else {})
    return jitted(step, weights), (weights, array((2048, 1024), "data"))


def barrier(is_mended):
    """A weight is gathered only when the layer before has run, since a barrier ties both."""

    def program(x, w, v):
        x = jnp.tanh(x @ w)
        if not is_mended:
            x, v = jax.lax.optimization_barrier((x, v))
        return x @ split(v)

    w, v = array((2048, 2048), dtype=jnp.bfloat16), array((2048, 4096), None, BOTH, dtype=jnp.bfloat16)
    return jax.jit(program), (array((8192, 2048), BOTH, dtype=jnp.bfloat16), w, v)


def synchronous(is_mended):
    """An all-reduce beside matmuls that do not depend on it."""

    def program(x, w, a, b):
        return split(jnp.tanh(x @ w), "data"), split(jnp.tanh(jnp.tanh(a @ b) @ b), "data")

    options = dict.fromkeys(ASYNCHRONOUS, "true") if is_mended else None
    square = functools.partial(array, (4096, 4096), dtype=jnp.bfloat16)
    given = square("data", "model"), square("model"), square("data"), square()
    return jax.jit(program, compiler_options=options), given


WASTES = {
    "reduction in a loop": sum_in_a_loop,
    "gather then slice": gather_then_slice,
    "superfluous constraint": gather_and_split_again,
    "small dimension": few_heads,
    "lookup": embedding,
    "lookup at places that are known": static_scatter,
    "lost donation": lost_donation,
    "rematerialization": rematerialized,
    "reshaped batch": reshaped_batch,
    "convolution": convolution,
    "padding": padded,
    "replicated argument": replicated,
    "no overlap": barrier,
    "no overlap at an option": synchronous,
}


def fsdp():
    weights = {"up": array((1024, 4096), BOTH), "down": array((4096, 1024), None, BOTH)}
    return jitted(step, weights), (weights, array((4096, 1024), BOTH))


def tensor_parallel():
    return jitted(step, COLUMNS_THEN_ROWS), (COLUMNS_THEN_ROWS, array((4096, 1024), "data"))


def data_parallel():
    weights = {"up": array((256, 512)), "down": array((512, 256))}
    return jitted(step, weights), (weights, array((65536, 256), BOTH))


def sequence_parallel():
    """The sequence is split over `model` outside of each layer."""

    def loss(w, x):
        for each in w:
            h = split(jnp.tanh(x @ each["up"]), "data", None, "model")
            x = split(x + h @ each["down"], "data", "model")
        return jnp.mean(jnp.square(x))

    weights = [{"up": array((512, 2048), None, "model"), "down": array((2048, 512), "model")}] * 2
    train = jitted(lambda w, x: updated(w, jax.grad(loss)(w, x)), weights)
    return train, (weights, array((16, 512, 512), "data", "model"))


def by_hand():
    def own(x, w):
        h = jnp.tanh(x @ w["up"]) @ w["down"]
        return jax.lax.psum_scatter(h, "model", scatter_dimension=1, tiled=True)

    weights = {"up": P(None, "model"), "down": P("model")}
    program = jax.shard_map(own, mesh=MESH, in_specs=(P("data"), weights), out_specs=P("data", "model"))
    return jax.jit(program), (array((4096, 1024), "data"), COLUMNS_THEN_ROWS)


def inference():
    """One token of a decoder's attention, with a cache of keys that are values, too."""

    def decode(w, cache, x, at):
        heads = lambda name: (x @ w[name]).reshape(16, 1, 8, 64)  # noqa: E731
        cache = jax.lax.dynamic_update_slice(cache, heads("k"), (0, at, 0, 0))
        found = jax.nn.dot_product_attention(heads("q"), cache, cache)
        return found.reshape(16, 512) @ w["o"], cache

    w = {name: array((512, 512), None, "model") for name in "qk"} | {"o": array((512, 512), "model")}
    cache = array((16, 1024, 8, 64), "data", None, "model")
    program = jax.jit(decode, donate_argnums=1, out_shardings=(over("data"), cache.sharding))
    return program, (w, cache, array((16, 512), "data"), array((), dtype=jnp.int32))


CLEAN = [fsdp, tensor_parallel, data_parallel, sequence_parallel, by_hand, inference]
