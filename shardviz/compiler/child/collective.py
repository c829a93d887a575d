"""One collective on the shards that it is given, through `jax.shard_map`. Loaded when one is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardviz.compiler.child import xla
from shardviz.compiler.child.program import WIDE, jax_dtype, words_of
from shardviz.compiler.messages import RunCollective
from shardviz.errors import CompilerError, TargetError
from shardviz.reports.target_result import ExecutionResult

_ONLY_ON = {"pbroadcast": ("gpu",), "ragged_all_to_all": ("gpu", "tpu")}
"""Platforms of those collectives that not all have (JAX 0.10 and 0.12)."""

_SIMULATED = "use cpu, the simulated devices"


def run(request: RunCollective, report: Callable[[str], None]) -> ExecutionResult:
    """Run the collective. What JAX or XLA refuses is an answer too, with status "error"."""
    start = time.perf_counter()
    with jax.enable_x64(request.dtype in WIDE):
        try:
            ran = _run(request, report)
        except (TargetError, CompilerError) as error:
            status = "unavailable" if isinstance(error, TargetError) else "error"
            ran = ExecutionResult(request.target, status, error=error.message, hint=_SIMULATED)
        except Exception as error:
            ran = ExecutionResult(request.target, "error", error=words_of(error))
    return replace(ran, elapsed_s=time.perf_counter() - start)


def _run(request: RunCollective, report: Callable[[str], None]) -> ExecutionResult:
    report("starting devices")
    mesh, _ = xla.target_mesh(request, report)
    collective = CollectiveProgram(request, mesh.devices.flat[0].platform)
    spec = P(*request.mesh.jax_names)
    shape = (*request.mesh.jax_sizes, *request.shape)
    shards = np.frombuffer(request.shards, dtype=jax_dtype(request.dtype)).reshape(shape)
    ones = (1,) * len(request.mesh.jax_sizes)

    def program(shard: Any) -> Any:
        result = collective(shard.reshape(request.shape))
        return result.reshape(ones + result.shape)

    report("running")
    mapped = jax.shard_map(program, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    placed = jax.make_array_from_callback(shape, NamedSharding(mesh, spec), shards.__getitem__)
    # Not compiled by itself first: such a program refuses types under a byte (JAX 0.10 and 0.12).
    result = _everywhere(jax.jit(mapped)(placed))
    shards = result.reshape(mesh.size, *result.shape[len(ones) :])
    return ExecutionResult(request.target, "ok", shards, collective.program, collective.note)


def _everywhere(result: Any) -> Any:
    """All shards of an array, in every process that holds some of them."""
    if result.is_fully_addressable:
        return np.asarray(result)
    from jax.experimental.multihost_utils import process_allgather

    return process_allgather(result, tiled=True)


class CollectiveProgram:
    """The function of one device's shard. `program` is its call as text.

    Where a platform lacks it, an equal program runs in its place, and `note` says so.
    """

    def __init__(self, request: RunCollective, platform: str) -> None:
        self.name, self.axes = request.op, request.axes
        self.parameters = dict(request.parameters)
        self.note = ""
        for name in ("scatter_dimension", "split_axis", "concat_axis"):
            if name in self.parameters:
                # JAX before 0.12 takes no negative ones here.
                self.parameters[name] %= max(1, len(request.shape))
        axes = repr(self.axes[0] if len(self.axes) == 1 else self.axes)
        if "dealt" in self.parameters:
            arguments = f"pieces, {axes}{', 0, 0, tiled=True' if self.name == 'all_to_all' else ''}"
        elif self.name == "ragged_all_to_all":
            arguments = f"x, output, input_offsets, send_sizes, output_offsets, recv_sizes, axis_name={axes}"
        else:
            keywords = [f"{name}={value!r}" for name, value in self.parameters.items()]
            arguments = ", ".join(["x", axes, *keywords])
        self.program = f"jax.lax.{self.name}({arguments})"
        self._call: Callable[[Any], Any] = self._native
        if self.name == "ragged_all_to_all":
            self._call = self._ragged
        if "dealt" in self.parameters:
            self._call = self._of_pieces
        if platform not in _ONLY_ON.get(self.name, (platform,)):
            self._call = self._one_of_all if self.name == "pbroadcast" else self._rows_of_all
            chosen = self.parameters["source"] if self.name == "pbroadcast" else "rows"
            self.program = f"jax.lax.all_gather(x, {axes})[{chosen}]"
            missing = f"JAX has no {self.name} on {platform.upper()}"
            self.note = f"{missing}: an equal program with all_gather ran in its place"

    def __call__(self, shard: Any) -> Any:
        return self._call(shard)

    def _native(self, shard: Any) -> Any:
        return getattr(jax.lax, self.name)(shard, self.axes, **self.parameters)

    def _of_pieces(self, shard: Any) -> Any:
        """Of several dimensions: the pieces for all members stand along a dimension in front."""
        pieces = _rearranged(shard, *self.parameters["dealt"])
        if self.name == "psum_scatter":
            return jax.lax.psum_scatter(pieces, self.axes)
        arrived = jax.lax.all_to_all(pieces, self.axes, 0, 0, tiled=True)
        return _rearranged(arrived, *self.parameters["collected"])

    def _one_of_all(self, shard: Any) -> Any:
        return jax.lax.all_gather(shard, self.axes)[self.parameters["source"]]

    def _ragged(self, shard: Any) -> Any:
        sizes = self._send_sizes()
        output = jnp.zeros((int(sizes.sum(axis=0).max()), *shard.shape[1:]), shard.dtype)
        me = jax.lax.axis_index(self.axes)
        sent, received = (np.cumsum(sizes, axis=axis, dtype=np.int32) - sizes for axis in (1, 0))
        rows = (jnp.asarray(table)[me] for table in (sent, sizes, received, sizes.T))
        return jax.lax.ragged_all_to_all(shard, output, *rows, axis_name=self.axes)

    def _rows_of_all(self, shard: Any) -> Any:
        sizes = self._send_sizes()
        count, rows = len(sizes), shard.shape[0]
        # Of each receiver and each row of its result: which row of all shards, one behind the other.
        table = np.full((count, int(sizes.sum(axis=0).max())), -1, dtype=np.int32)
        for receiver in range(count):
            found = [
                sender * rows + sizes[sender, :receiver].sum() + np.arange(sizes[sender, receiver])
                for sender in range(count)
            ]
            line = np.concatenate(found)
            table[receiver, : len(line)] = line
        everything = jax.lax.all_gather(shard, self.axes, tiled=True)
        mine = jnp.asarray(table)[jax.lax.axis_index(self.axes)]
        there = (mine >= 0).reshape(-1, *(1,) * (shard.ndim - 1))
        return jnp.where(there, everything[jnp.maximum(mine, 0)], jnp.zeros((), shard.dtype))

    def _send_sizes(self) -> np.ndarray[Any, Any]:
        return np.array(self.parameters["send_sizes"], dtype=np.int32)


def _rearranged(array: Any, grid: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """An array as a grid, its dimensions in another order, joined to a shape."""
    return array.reshape(grid).transpose(order).reshape(shape)
