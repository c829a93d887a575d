"""Programs as users write them: each takes a mesh of data and model, and returns a function, then arguments.

Run as a script, it compiles them ahead of time for a TPU that is not here, as JAX's documentation says, and
prints the compiled texts as JSON: ``python own_programs.py v5e:2x4 2,4``.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P


def split(mesh, shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def matmul(mesh):
    def product(a, b):
        return a @ b

    return product, split(mesh, (512, 2048), "data", "model"), split(mesh, (2048, 512), "model", None)


def mapped(mesh):
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("data"), P(None, "model")), out_specs=P("data", "model"))
    def layer(x, w):
        y = lax.all_to_all(x, "model", 0, 1, tiled=True)
        return lax.psum(x @ w, "data") / y.shape[1] + lax.ppermute(x @ w, "model", [(0, 1), (1, 0)])

    return layer, split(mesh, (512, 256), "data", None), split(mesh, (256, 1024), None, "model")


def scanned(mesh):
    def loss(weights, x):
        def layer(x, w):
            return lax.with_sharding_constraint(jnp.tanh(x @ w["up"]) @ w["down"], sharding), None

        return jnp.sum(lax.scan(jax.checkpoint(layer), x, weights)[0])

    sharding = NamedSharding(mesh, P("data", None))
    weights = {
        "up": split(mesh, (6, 512, 1024), None, "data", "model"),
        "down": split(mesh, (6, 1024, 512), None, "model", "data"),
    }
    return jax.grad(loss), weights, split(mesh, (256, 512), "data", None)


def train_step(mesh):
    def loss(params, x, wanted):
        found = jax.nn.relu(x @ params["layers"]["mlp"]["w_in"]) @ params["layers"]["mlp"]["w_out"]
        return jnp.mean((found - wanted) ** 2)

    @partial(jax.jit, donate_argnums=0, static_argnames="rate")
    def step(params, x, wanted, key, *, rate=0.1):
        noise = jax.random.normal(key, x.shape, x.dtype)
        gradients = jax.grad(loss)(params, x + noise, wanted)
        return jax.tree.map(lambda w, g: w - rate * g, params, gradients)

    mlp = {
        "w_in": split(mesh, (512, 2048), "data", "model"),
        "w_out": split(mesh, (2048, 512), "model", "data"),
    }
    x = split(mesh, (256, 512), "data", None)
    return step, {"layers": {"mlp": mlp}}, x, x, jax.eval_shape(lambda: jax.random.key(0))


def pallas(mesh):
    from jax.experimental import pallas as pl

    def double(x_ref, y_ref):
        y_ref[...] = x_ref[...] * 2

    def kernel(x):
        return pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    @jax.jit
    def layer(x, w):
        split_kernel = jax.shard_map(
            kernel, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False
        )
        return split_kernel(x) @ w

    return layer, split(mesh, (512, 256), "data", None), split(mesh, (256, 512), "model", None)


PROGRAMS = (matmul, mapped, scanned, train_step, pallas)


def main(topology, sizes):
    from jax.experimental import topologies

    devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    mesh = jax.make_mesh(sizes, ("data", "model"), devices=devices, axis_types=(AxisType.Auto,) * 2)
    texts = {}
    for program in PROGRAMS:
        function, *arguments = program(mesh)
        function = function if hasattr(function, "lower") else jax.jit(function)
        texts[program.__name__] = function.lower(*arguments).compile().as_text()
    print(
        json.dumps({"texts": texts, "ids": np.vectorize(lambda each: each.id)(mesh.devices).ravel().tolist()})
    )


if __name__ == "__main__":
    main(sys.argv[1], tuple(map(int, sys.argv[2].split(","))))
