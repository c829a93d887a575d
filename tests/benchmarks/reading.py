"""Reading HLO: megabytes a second and memory, on a 32-layer model's step repeated to 80 MB."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec

from timing import line

MEGABYTE = 1_000_000
SIZE = 80 * MEGABYTE
LAYERS = 32

MODEL = """
import os, sys
os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

topology, layers, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
devices = jax.devices() if topology == "cpu" else topologies.get_topology_desc(
    platform="tpu", topology_name=topology).devices
mesh = Mesh(np.array(devices).reshape(2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
D, H, K, F = 128, 4, 32, 512

def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

def layer(x, weights):
    q, k, v, o, up, down = weights
    h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    queries, keys, values = (jnp.einsum("bsd,dhk->bshk", h, w) for w in (q, k, v))
    attention = jax.nn.softmax(jnp.einsum("bshk,bthk->bhst", queries, keys) / K**0.5, -1)
    x = x + jnp.einsum("bhst,bthk,hkd->bsd", attention, values, o)
    return x + jax.nn.relu(x @ up) @ down

def loss(weights, x):
    for each in weights:
        x = layer(x, each)
    return jnp.mean(x * x)

def step(weights, x):
    return jax.tree.map(lambda w, g: w - g * 1e-3, weights, jax.grad(loss)(weights, x))

one = (array((D, H, K), "X", "Y"),) * 3 + (
    array((H, K, D), "Y", None, "X"), array((D, F), "X", "Y"), array((F, D), "Y", "X"))
text = jax.jit(step).lower([one] * layers, array((8, 64, D), "X")).compile().as_text()
open(path, "w").write(text)
"""
READ = """
import resource, sys, time
from shardviz.hlo import read_hlo
from shardviz.sharding import Mesh

one = open(sys.argv[1]).read()
text = one * (int(sys.argv[2]) // len(one) + 1)
mesh = Mesh(("X", "Y"), (2, 4))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds = []
for _ in range(5):
    start = time.process_time()
    module = read_hlo(text, mesh)
    seconds.append(time.process_time() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert not module.unread
print(len(text) / 1e6 / min(seconds), len(text) / 1e6, (peak - before) / 1e3, len(module.collectives))
"""


def report() -> None:
    topologies = ["cpu", *(["v5e:2x4"] if find_spec("libtpu") else [])]
    with tempfile.TemporaryDirectory() as folder:
        for topology in topologies:
            path = f"{folder}/text"
            subprocess.run(
                [sys.executable, "-c", MODEL, topology, str(LAYERS), path],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            found = subprocess.run(
                [sys.executable, "-c", READ, path, str(SIZE)], check=True, capture_output=True, text=True
            )
            speed, size, more, collectives = map(float, found.stdout.split())
            what = f"read_hlo, {LAYERS} layers on {topology}, {size:.0f} MB, {collectives:,.0f} collectives"
            line(what, f"{speed:.0f} MB/s, {more:.0f} MB more memory", "≥ 100 MB/s")


if __name__ == "__main__":
    report()
