"""The train step whose texts `reading.py` repeats: a decoder of checkpointed layers in a loop, with Adam.

``python tests/benchmarks/train_step.py`` writes them to ``programs/``: as libtpu schedules it for eight v5e
chips, and as XLA's partitioner leaves it for eight GPUs. The second is what the same partitioner makes for
CPUs; it is given what GPU programs of other releases have: file and line in each instruction's metadata
instead of tables in front, and a Triton kernel whose metadata go over several lines.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ.setdefault("TPU_STDERR_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

PROGRAMS = Path(__file__).parent / "programs"
PATH = "/opt/train/train_step.py"
LAYERS, BATCH, LENGTH = 2, 8, 512
VOCABULARY, MODEL, HEADS, HEAD, HIDDEN = 8192, 1024, 8, 128, 4096
WEIGHTS = {
    "query": ((MODEL, HEADS, HEAD), "data", "model"),
    "key": ((MODEL, HEADS, HEAD), "data", "model"),
    "value": ((MODEL, HEADS, HEAD), "data", "model"),
    "out": ((HEADS, HEAD, MODEL), "model", None, "data"),
    "wi_0": ((MODEL, HIDDEN), "data", "model"),
    "wi_1": ((MODEL, HIDDEN), "data", "model"),
    "wo": ((HIDDEN, MODEL), "model", "data"),
    "norm_in": ((MODEL,), None),
    "norm_mlp": ((MODEL,), None),
}
FRAME = re.compile(r" stack_frame_id=(\d+)")
KERNEL = """frontend_attributes={kernel_metadata={
  "name": "layer_norm",
  "grid": [512, 1, 1],
  "num_warps": 4
}}"""


def norm(x: Any, scale: Any) -> Any:
    with jax.named_scope("norm"):
        wide = x.astype(jnp.float32)
        normed = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
        return normed.astype(x.dtype) * scale.astype(x.dtype)


def rotary(x: Any) -> Any:
    frequencies = 10000 ** (jnp.arange(0, HEAD, 2) / HEAD)
    angles = jnp.arange(LENGTH)[None, :, None, None] / frequencies
    one, other = jnp.split(x.astype(jnp.float32), 2, -1)
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    return jnp.concatenate([one * cos - other * sin, other * cos + one * sin], -1).astype(x.dtype)


@jax.checkpoint
def layer(x: Any, weights: dict[str, Any]) -> Any:
    w = {name: each.astype(jnp.bfloat16) for name, each in weights.items()}
    with jax.named_scope("self_attention"):
        h = norm(x, w["norm_in"])
        q, k, v = (jnp.einsum("bsd,dhk->bshk", h, w[name]) for name in ("query", "key", "value"))
        scores = jnp.einsum("bshk,bthk->bhst", rotary(q), rotary(k)).astype(jnp.float32) / HEAD**0.5
        masked = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
        attended = jax.nn.softmax(masked, -1).astype(x.dtype)
        out = jnp.einsum("bhst,bthk,hkd->bsd", attended, v, w["out"])
        x = x + jax.lax.with_sharding_constraint(out, PartitionSpec("data", None, "model"))
    with jax.named_scope("mlp"):
        h = norm(x, w["norm_mlp"])
        out = (jax.nn.silu(h @ w["wi_0"]) * (h @ w["wi_1"])) @ w["wo"]
        return x + jax.lax.with_sharding_constraint(out, PartitionSpec("data", None, "model"))


def loss(params: Any, tokens: Any, targets: Any) -> Any:
    with jax.named_scope("decoder"):
        x = params["embedding"].astype(jnp.bfloat16)[tokens]
        x = jax.lax.with_sharding_constraint(x, PartitionSpec("data", None, "model"))
        x = jax.lax.scan(lambda x, weights: (layer(x, weights), None), x, params["layers"])[0]
        logits = norm(x, params["norm"]) @ params["logits"].astype(jnp.bfloat16)
        likelihoods = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(likelihoods, targets[..., None], -1))


def train_step(state: Any, tokens: Any, targets: Any) -> Any:
    params, mean, variance, count = state
    value, grads = jax.value_and_grad(loss)(params, tokens, targets)
    size = jnp.sqrt(sum(jnp.sum(each * each) for each in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: jnp.where(size > 1, g / size, g), grads)
    with jax.named_scope("adam"):
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        variance = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, variance, grads)
        scale = jnp.sqrt(1 - 0.95 ** (count + 1.0)) / (1 - 0.9 ** (count + 1.0))
        params = jax.tree.map(
            lambda p, m, v: p - 3e-4 * scale * m / (jnp.sqrt(v) + 1e-8), params, mean, variance
        )
    return (params, mean, variance, count + 1), value


def compiled(devices: Sequence[Any], options: dict[str, Any]) -> str:
    axes = (AxisType.Auto,) * 2
    mesh = Mesh(np.array(devices).reshape(2, 4), ("data", "model"), axis_types=axes)

    def array(shape: tuple[int, ...], dtype: Any, *spec: str | None) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    params = {
        "embedding": array((VOCABULARY, MODEL), jnp.float32, "model", "data"),
        "layers": {
            name: array((LAYERS, *shape), jnp.float32, None, *spec)
            for name, (shape, *spec) in WEIGHTS.items()
        },
        "norm": array((MODEL,), jnp.float32),
        "logits": array((MODEL, VOCABULARY), jnp.float32, "data", "model"),
    }
    tokens = array((BATCH, LENGTH), jnp.int32, "data")
    state = params, params, params, array((), jnp.int32)
    with jax.set_mesh(mesh):
        lowered = jax.jit(train_step, donate_argnums=0).lower(state, tokens, tokens)
    return lowered.compile(compiler_options=options).as_text()


def v5e() -> str:
    devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    return compiled(devices, {})


def gpu() -> str:
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": "spmd-part.*", "xla_dump_hlo_as_text": True}
        compiled(jax.devices(), options)
        (partitioned,) = Path(folder).glob("*.after_spmd-partitioning*")
        text = partitioned.read_text()
    frames = dict(re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE))
    lines = dict(re.findall(r"^(\d+) \{file_name_id=\d+.*? line=(\d+)", text, re.MULTILINE))

    def place(frame: re.Match[str]) -> str:
        line = lines[frames[frame[1]]]
        return f' source_file="{PATH}" source_line={line} source_end_line={line} source_column=8'

    header, _, rest = text.partition("\n\nFileNames\n")
    computations = FRAME.sub(place, rest[rest.index("\n\n%") :])
    kernel = f'custom-call(\\2), custom_call_target="__gpu$xla.gpu.triton", {KERNEL}, '
    computations = re.sub(r" (rsqrt)\((%[\w.]+)\), ", f" {kernel}", computations)
    return header + computations


def main() -> None:
    for name, text in (("v5e", v5e()), ("gpu", gpu())):
        text = text.replace(__file__, PATH)
        (PROGRAMS / f"train_step_{name}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
