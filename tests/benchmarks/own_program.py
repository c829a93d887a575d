"""A function for a target that is not here, against a bare script that compiles it ahead of time."""

from __future__ import annotations

import sys

from timing import commands, line

from shardviz.targets import EXTRAS

RUNS = 3
TARGET = "v5e:4x4"
BARE = f"""
import os
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
import jax
from jax.experimental import topologies
from jax.sharding import AxisType
from shardviz.examples.train_step import train_step
devices = topologies.get_topology_desc(platform="tpu", topology_name={TARGET!r}).devices
mesh = jax.make_mesh((4, 4), ("data", "model"), devices=devices, axis_types=(AxisType.Auto,) * 2)
function, *arguments = train_step(mesh)
compiled = function.lower(*arguments).compile()
print(compiled.as_text())
"""
INSPECT = f"""
import jax, shardviz
from jax.sharding import AbstractMesh, AxisType
from shardviz.examples.train_step import train_step
mesh = AbstractMesh((4, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
function, *arguments = train_step(mesh)
print(shardviz.inspect(function, *arguments, target={TARGET!r}))
"""


def report() -> None:
    if not EXTRAS["tpu"].installed:
        return
    bare, ours = commands([sys.executable, "-c", BARE], [sys.executable, "-c", INSPECT], runs=RUNS)
    line(f"inspect of a train step for {TARGET}", f"{ours / bare:.2f} x {bare:.1f} s", "1.15 x")


if __name__ == "__main__":
    report()
