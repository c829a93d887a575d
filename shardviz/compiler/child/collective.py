"""One collective on the shards that it is given, through `jax.shard_map`. Loaded when one is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardviz.compiler.child import xla
from shardviz.compiler.child.program import jax_dtype, refusal_by
from shardviz.compiler.messages import CollectiveCode, TargetMesh
from shardviz.errors import ShardvizError, TargetError
from shardviz.reports.target_result import ExecutionResult
from shardviz.sharding.array import WIDE


def run(
    report: Callable[[str], None],
    devices: TargetMesh,
    code: CollectiveCode,
    shards: np.ndarray[Any, Any],
    dtype: str,
) -> ExecutionResult:
    """Run one collective; the first dimension of `shards` has the devices by mesh position. What JAX or XLA
    refuses is an answer too, with status "error"."""
    start = time.perf_counter()
    target = devices.target
    with jax.enable_x64(dtype in WIDE):
        try:
            jax_dtype(dtype)
            report("starting devices")
            mesh, _ = xla.target_mesh(devices, report)
            function, program, note = collective_program(code, mesh.devices.flat[0].platform)
            report("running")
            ran = ExecutionResult(target, "ok", _run(function, mesh, shards), program, note)
        except Exception as error:
            status = "unavailable" if isinstance(error, TargetError) else "error"
            hint = "use cpu, the simulated devices" if isinstance(error, ShardvizError) else ""
            ran = ExecutionResult(target, status, error=refusal_by(error).message, hint=hint)
    return replace(ran, elapsed_s=time.perf_counter() - start)


def _run(function: Callable[[Any], Any], mesh: Any, shards: np.ndarray[Any, Any]) -> Any:
    ones = (1,) * mesh.devices.ndim
    spec = P(*mesh.axis_names)
    placed = shards.reshape(*mesh.devices.shape, *shards.shape[1:])

    def program(shard: Any) -> Any:
        result = function(shard.reshape(shards.shape[1:]))
        return result.reshape(ones + result.shape)

    mapped = jax.shard_map(program, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    given = jax.make_array_from_callback(placed.shape, NamedSharding(mesh, spec), placed.__getitem__)
    # Not compiled by itself first: such a program refuses types under a byte (JAX 0.10 and 0.12).
    result = jax.jit(mapped)(given)
    if not result.is_fully_addressable:  # in a job every process gets all shards
        from jax.experimental.multihost_utils import process_allgather

        result = process_allgather(result, tiled=True)
    return np.asarray(result).reshape(mesh.size, *result.shape[len(ones) :])


def collective_program(code: CollectiveCode, platform: str) -> tuple[Callable[[Any], Any], str, str]:
    """The function of one device's shard, its call as text, and a note where an equal program runs in its
    place, since the platform lacks it."""
    program, lines, note = code.program, code.lines, ""
    if code.platforms and platform not in code.platforms:
        program, lines = code.instead
        missing = f"JAX has no {code.name} on {platform.upper()}"
        note = f"{missing}: an equal program with all_gather ran in its place"
    *first, last = lines
    source = ["def program(x):", *(f"    {line}" for line in first), f"    return {last}"]
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "ragged_all_to_all": _ragged}
    exec("\n".join(source), names)
    return names["program"], program, note


def _ragged(shard: Any, axes: str | tuple[str, ...], send_sizes: Sequence[Sequence[int]]) -> Any:
    """JAX's own ragged_all_to_all, with the offsets that it wants, into a result as tall as the tallest."""
    sizes = np.array(send_sizes, dtype=np.int32)
    output = jnp.zeros((int(sizes.sum(axis=0).max()), *shard.shape[1:]), shard.dtype)
    me = jax.lax.axis_index(axes)
    sent, received = (np.cumsum(sizes, axis=axis, dtype=np.int32) - sizes for axis in (1, 0))
    rows = (jnp.asarray(table)[me] for table in (sent, sizes, received, sizes.T))
    return jax.lax.ragged_all_to_all(shard, output, *rows, axis_name=axes)
