"""A program of two steps on eight simulated devices, profiled: `python profiled_program.py FOLDER`.

In a process of its own: the profiler of a process ends it where another libtpu is loaded than jax asks for.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P


def main(folder: str) -> None:
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)

    def of(*spec: str | None) -> NamedSharding:
        return NamedSharding(mesh, P(*spec))

    @partial(jax.jit, in_shardings=(of("X", None), of("Y", None), of(None, "Y")), out_shardings=of("X", None))
    def step(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        def layer(h: jax.Array, _: None) -> tuple[jax.Array, None]:
            return jnp.tanh(jax.nn.relu(h @ w) @ v.T), None

        return jax.lax.scan(layer, x, None, length=3)[0]

    x, w, v = (jnp.ones(shape) for shape in ((128, 256), (256, 256), (256, 256)))
    compiled = step.lower(x, w, v).compile()
    Path(folder, "step.txt").write_text(compiled.as_text(), encoding="utf-8")
    step(x, w, v).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder, profiler_options=options):
        for number in range(2):
            with jax.profiler.StepTraceAnnotation("train", step_num=number + 7):
                step(x, w, v).block_until_ready()


if __name__ == "__main__":
    main(sys.argv[1])
