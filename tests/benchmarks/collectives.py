"""Collectives: the simulator against JAX, schedules without numbers, any frame at once, queues on links."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from timing import call, line

from shardviz.collectives.algorithms import schedule_for
from shardviz.collectives.frames import Frames
from shardviz.collectives.operations import OPERATIONS
from shardviz.collectives.schedule import Pattern
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import topology_for
from shardviz.sharding import Mesh

DEVICES = 2048
JAX = f"""
import statistics, time
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
jax.config.update("jax_num_cpu_devices", {DEVICES})
mesh = jax.make_mesh(({DEVICES},), ("i",), axis_types=(AxisType.Auto,))
gather = jax.jit(jax.shard_map(
    lambda shard: jax.lax.all_gather(shard, "i", tiled=True),
    mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False,
))
numbers = jax.device_put(np.arange({DEVICES}, dtype=np.int32), NamedSharding(mesh, P("i")))
taken = []
for _ in range(6):
    start = time.perf_counter()
    jax.block_until_ready(gather(numbers))
    taken.append(time.perf_counter() - start)
print(statistics.median(taken[1:]))
"""


def report() -> None:
    link = LinkSpec()

    def gather() -> None:
        operation = OPERATIONS["all_gather"](("i",))
        shards = np.arange(DEVICES, dtype=np.int32).reshape(DEVICES, 1)
        schedule = schedule_for("ring", operation.pattern((DEVICES,)))
        frames = Frames(schedule, operation, Mesh(("i",), (DEVICES,)), shards)
        assert frames.after is not None

    ours, theirs = call(gather), jax_seconds()
    line(
        f"ring all-gather, {DEVICES:,} devices, all rounds: JAX / shardviz",
        f"{theirs / ours:.1f} ({theirs * 1e3:.0f} ms / {ours * 1e3:.0f} ms)",
        "5 or more, JAX compiled",
    )

    def reduce() -> None:
        pattern = Pattern("all_reduce", (65_536,))
        timed = timeline(schedule_for("ring", pattern), 1024, topology_for("ring", pattern.dims), link)
        assert timed.seconds > 0

    line("ring all-reduce, 65,536 devices: loads and times", f"{call(reduce) * 1e3:.0f} ms", "1 s")

    numbers = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    operation = OPERATIONS["psum"](("i",))
    schedule = schedule_for("ring", operation.pattern((64,)))
    frames = Frames(schedule, operation, Mesh(("i",), (64,)), numbers)
    order = np.random.default_rng(0).permutation(len(frames)).tolist()

    def access() -> None:
        for number in order:
            frame = frames[number]
            for member in range(64):
                frame.pieces(member)

    line("any frame of a psum over 64 devices", f"{call(access) / len(order) * 1e3:.2f} ms", "5 ms")
    for size, budget in ((256, "2 s"), (512, "some seconds")):
        pattern = Pattern("all_gather", (size,))

        def queue(pattern: Pattern = pattern) -> None:
            timed = timeline(schedule_for("direct", pattern), 4096, topology_for("ring", pattern.dims), link)
            assert timed.waiting

        taken = call(queue, runs=3)
        line(f"direct all-gather on a ring of {size}, with queues", f"{taken:.2f} s", budget)


def jax_seconds() -> float:
    """What JAX takes for the gather once it is compiled, on as many simulated devices."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    argv = [sys.executable, "-c", JAX]
    return float(subprocess.run(argv, check=True, env=environment, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    report()
