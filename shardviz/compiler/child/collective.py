"""One collective, or the steps of a plan, on given shards, by `jax.shard_map`; loaded when asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

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
    """Run one collective on `shards`, by mesh position first. A refusal is an answer, with status "error"."""

    def found(mesh: Any) -> ExecutionResult:
        function, program, note = collective_program(code, mesh.devices.flat[0].platform)
        report("running")
        (result,) = _run(lambda shard: [function(shard)], mesh, [shards])
        return ExecutionResult(devices.target, "ok", result, program, note)

    return _answered(report, devices, dtype, found)


def run_plan(
    report: Callable[[str], None],
    devices: TargetMesh,
    code: str,
    shards: Sequence[np.ndarray[Any, Any]],
    arguments: Sequence[np.ndarray[Any, Any]],
) -> ExecutionResult:
    """Run ``program`` of the code on the shards of all arguments, and ``on_one_device`` on the arguments."""

    def found(mesh: Any) -> ExecutionResult:
        names: dict[str, Any] = {"jax": jax, "jnp": jnp}
        exec(code, names)
        report("running")
        steps = _run(names["program"], mesh, shards)
        whole = jax.jit(names["on_one_device"])(*arguments)
        results = tuple(map(np.asarray, whole if isinstance(whole, tuple) else (whole,)))
        return ExecutionResult(devices.target, "ok", steps=steps, on_one_device=results)

    return _answered(report, devices, "f64", found)


def _answered(
    report: Callable[[str], None], devices: TargetMesh, dtype: str, found: Callable[[Any], ExecutionResult]
) -> ExecutionResult:
    start = time.perf_counter()
    with jax.enable_x64(dtype in WIDE):
        try:
            jax_dtype(dtype)
            report("starting devices")
            mesh, _ = xla.target_mesh(devices, report)
            ran = found(mesh)
        except Exception as error:
            status = "unavailable" if isinstance(error, TargetError) else "error"
            hint = "use cpu, the simulated devices" if isinstance(error, ShardvizError) else ""
            ran = ExecutionResult(devices.target, status, error=refusal_by(error).message, hint=hint)
    return replace(ran, elapsed_s=time.perf_counter() - start)


def _run(
    function: Callable[..., Sequence[Any]], mesh: Any, shards: Sequence[np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], ...]:
    """The results of every device, by mesh position."""
    ones = (1,) * mesh.devices.ndim
    spec = P(*mesh.axis_names)

    def program(*given: Any) -> list[Any]:
        own = (shard.reshape(all_of.shape[1:]) for shard, all_of in zip(given, shards, strict=True))
        return [result.reshape(ones + result.shape) for result in function(*own)]

    def placed(shards: np.ndarray[Any, Any]) -> Any:
        grid = shards.reshape(*mesh.devices.shape, *shards.shape[1:])
        return jax.make_array_from_callback(grid.shape, NamedSharding(mesh, spec), grid.__getitem__)

    mapped = jax.shard_map(program, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    # Not compiled by itself first: such a program refuses types under a byte (JAX 0.10 and 0.12).
    results = jax.jit(mapped)(*map(placed, shards))
    if not all(result.is_fully_addressable for result in results):  # in a job every process gets all shards
        from jax.experimental.multihost_utils import process_allgather

        results = process_allgather(results, tiled=True)
    return tuple(np.asarray(array).reshape(mesh.size, *array.shape[len(ones) :]) for array in results)


def collective_program(code: CollectiveCode, platform: str) -> tuple[Callable[[Any], Any], str, str]:
    """The function of one device's shard, its call, and a note where an equal program runs in its place."""
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
