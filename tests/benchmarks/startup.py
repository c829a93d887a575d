"""Start-up: whole commands against bare scripts."""

from __future__ import annotations

from timing import commands, line, python, shardviz

QUESTION = ("bd,df->bf", "--mesh", "X=2,Y=4", "--specs", "XY,Y_->X_", "--sizes", "b=8,d=2048,f=8192")
MODEL = (
    *("llama-3-70b", "--rules", "fsdp+tensor", "--mesh", "data=16,tensor=4"),
    *("--machine", "v5p:4x4x4"),
)
BARE_MATMUL = """
import jax
jax.config.update('jax_num_cpu_devices', 8)
import jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ('X', 'Y'))
a = jax.ShapeDtypeStruct((8, 2048), jnp.bfloat16, sharding=NamedSharding(mesh, P('X', 'Y')))
w = jax.ShapeDtypeStruct((2048, 8192), jnp.bfloat16, sharding=NamedSharding(mesh, P('Y', None)))
f = jax.jit(lambda a, w: jnp.einsum('bd,df->bf', a, w), out_shardings=NamedSharding(mesh, P('X', None)))
print(f.lower(a, w).compile().as_text())
"""
BARE_TPU_MATMUL = """
import os
os.environ.update(TPU_SKIP_MDS_QUERY='1', ALLOW_MULTIPLE_LIBTPU_LOAD='1')
import jax, jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
devices = topologies.get_topology_desc('v5e:2x4', platform='tpu').devices
mesh = jax.make_mesh((2, 4), ('X', 'Y'), axis_types=(AxisType.Auto,) * 2, devices=devices)
a = jax.ShapeDtypeStruct((8, 2048), jnp.bfloat16, sharding=NamedSharding(mesh, P('X', 'Y')))
w = jax.ShapeDtypeStruct((2048, 8192), jnp.bfloat16, sharding=NamedSharding(mesh, P('Y', None)))
f = jax.jit(lambda a, w: jnp.einsum('bd,df->bf', a, w), out_shardings=NamedSharding(mesh, P('X', None)))
print(f.lower(a, w).compile().as_text())
"""


def report() -> None:
    ours, bare = commands(shardviz("--help"), python("import click"))
    line("shardviz --help / import click", _ratio(ours, bare), "2.5")
    ours, bare = commands(shardviz("explain", *QUESTION, "--target", "none"), python("import jax"))
    line("explain --target none / import jax", _ratio(ours, bare), "0.4")
    ours, bare = commands(shardviz("model", *MODEL), python("import jax"))
    line("model llama-3-70b, a train step, in 500 ms / import jax", _ratio(ours, bare), "1.0")
    ours, bare = commands(shardviz("explain", *QUESTION, "--target", "cpu"), python(BARE_MATMUL))
    line("explain --target cpu / a bare script that compiles it", _ratio(ours, bare), "1.15")
    ours, bare = commands(shardviz("explain", *QUESTION, "--target", "v5e:2x4"), python(BARE_TPU_MATMUL))
    line("explain --target v5e:2x4 / a bare script", _ratio(ours, bare), "1.15")


def _ratio(ours: float, bare: float) -> str:
    return f"{ours / bare:.2f}  ({ours * 1e3:.0f} ms / {bare * 1e3:.0f} ms)"


if __name__ == "__main__":
    report()
