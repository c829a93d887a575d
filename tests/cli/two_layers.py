"""A model of two layers, compiled for `sys.argv[1]` into the folder `sys.argv[2]`: its loop, and unrolled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

BATCH, WIDTH, HIDDEN, LAYERS = 1024, 1024, 4096, 2


def layer(x, weights):
    into, out = weights
    hidden = jax.nn.gelu(jnp.einsum("bd,df->bf", x, into))
    return jnp.einsum("bf,fd->bd", hidden, out)


def loop(x, into, out):
    return jax.lax.scan(lambda x, weights: (layer(x, weights), None), x, (into, out))[0]


def unrolled(x, into, out):
    for i in range(LAYERS):
        x = layer(x, (into[i], out[i]))
    return x


def compiled(function, devices):
    mesh = Mesh(np.array(devices).reshape(2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)

    def array(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    jitted = jax.jit(function, out_shardings=NamedSharding(mesh, PartitionSpec("X", None)))
    return jitted.lower(
        array((BATCH, WIDTH), "X", None),
        array((LAYERS, WIDTH, HIDDEN), None, "X", "Y"),
        array((LAYERS, HIDDEN, WIDTH), None, "Y", "X"),
    ).compile()


if __name__ == "__main__":
    target, folder = sys.argv[1:]
    devices = topologies.get_topology_desc(platform="tpu", topology_name=target).devices
    for function in (loop, unrolled):
        Path(folder, f"{function.__name__}.txt").write_text(compiled(function, devices).as_text())
