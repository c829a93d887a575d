"""One collective on the shards that it is given, through `jax.shard_map`. Loaded when one is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardviz.compiler.child import xla
from shardviz.compiler.child.program import WIDE, jax_axes, jax_dtype, refusal_by
from shardviz.compiler.messages import TargetMesh
from shardviz.errors import ShardvizError, TargetError
from shardviz.reports.target_result import ExecutionResult

_ONLY_ON = {"pbroadcast": ("gpu",), "ragged_all_to_all": ("gpu", "tpu")}
"""Platforms of those collectives that not all have (JAX 0.10 and 0.12)."""


def run(
    report: Callable[[str], None],
    devices: TargetMesh,
    op: str,
    axes: tuple[str, ...],
    parameters: Mapping[str, Any],
    shards: np.ndarray[Any, Any],
    dtype: str,
) -> ExecutionResult:
    """Run one collective over some axes, with JAX's parameters by name; the first dimension of `shards` has
    the devices by mesh position. What JAX or XLA refuses is an answer too, with status "error"."""
    start = time.perf_counter()
    target = devices.target
    with jax.enable_x64(dtype in WIDE):
        try:
            jax_dtype(dtype)
            report("starting devices")
            mesh, _ = xla.target_mesh(devices, report)
            platform = mesh.devices.flat[0].platform
            own = shards.shape[1:]
            collective = CollectiveProgram(op, jax_axes(axes, mesh), parameters, own, platform)
            report("running")
            ran = ExecutionResult(
                target, "ok", _run(collective, mesh, shards), collective.program, collective.note
            )
        except Exception as error:
            status = "unavailable" if isinstance(error, TargetError) else "error"
            hint = "use cpu, the simulated devices" if isinstance(error, ShardvizError) else ""
            ran = ExecutionResult(target, status, error=refusal_by(error).message, hint=hint)
    return replace(ran, elapsed_s=time.perf_counter() - start)


def _run(collective: CollectiveProgram, mesh: Any, shards: np.ndarray[Any, Any]) -> Any:
    ones = (1,) * mesh.devices.ndim
    spec = P(*mesh.axis_names)
    placed = shards.reshape(*mesh.devices.shape, *shards.shape[1:])

    def program(shard: Any) -> Any:
        result = collective(shard.reshape(shards.shape[1:]))
        return result.reshape(ones + result.shape)

    mapped = jax.shard_map(program, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    given = jax.make_array_from_callback(placed.shape, NamedSharding(mesh, spec), placed.__getitem__)
    # Not compiled by itself first: such a program refuses types under a byte (JAX 0.10 and 0.12).
    result = jax.jit(mapped)(given)
    if not result.is_fully_addressable:  # in a job every process gets all shards
        from jax.experimental.multihost_utils import process_allgather

        result = process_allgather(result, tiled=True)
    return np.asarray(result).reshape(mesh.size, *result.shape[len(ones) :])


class CollectiveProgram:
    """The function of one device's shard. `program` is its call as text.

    Where a platform lacks it, an equal program runs in its place, and `note` says so.
    """

    def __init__(
        self,
        name: str,
        axes: tuple[str, ...],
        parameters: Mapping[str, Any],
        shape: tuple[int, ...],
        platform: str,
    ) -> None:
        self.name, self.axes, self.parameters = name, axes, dict(parameters)
        self.note = ""
        for dimension in ("scatter_dimension", "split_axis", "concat_axis"):
            if dimension in self.parameters:
                # JAX before 0.12 takes no negative ones here.
                self.parameters[dimension] %= max(1, len(shape))
        over = repr(axes[0] if len(axes) == 1 else axes)
        self._call: Callable[[Any], Any] = self._native
        if "dealt" in self.parameters:
            self._call = self._of_pieces
            arguments = f"pieces, {over}{', 0, 0, tiled=True' if name == 'all_to_all' else ''}"
        elif name == "ragged_all_to_all":
            self._call = self._ragged
            arguments = f"x, output, input_offsets, send_sizes, output_offsets, recv_sizes, axis_name={over}"
        else:
            keywords = [f"{keyword}={value!r}" for keyword, value in self.parameters.items()]
            arguments = ", ".join(["x", over, *keywords])
        self.program = f"jax.lax.{name}({arguments})"
        if platform not in _ONLY_ON.get(name, (platform,)):
            self._call = self._one_of_all if name == "pbroadcast" else self._rows_of_all
            chosen = self.parameters["source"] if name == "pbroadcast" else "rows"
            self.program = f"jax.lax.all_gather(x, {over})[{chosen}]"
            missing = f"JAX has no {name} on {platform.upper()}"
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
        sizes = self._send_sizes
        output = jnp.zeros((int(sizes.sum(axis=0).max()), *shard.shape[1:]), shard.dtype)
        me = jax.lax.axis_index(self.axes)
        sent, received = (np.cumsum(sizes, axis=axis, dtype=np.int32) - sizes for axis in (1, 0))
        rows = (jnp.asarray(table)[me] for table in (sent, sizes, received, sizes.T))
        return jax.lax.ragged_all_to_all(shard, output, *rows, axis_name=self.axes)

    def _rows_of_all(self, shard: Any) -> Any:
        sizes, rows = self._send_sizes, shard.shape[0]
        starts = np.cumsum(sizes, axis=1) - sizes + rows * np.arange(len(sizes))[:, None]
        # Of each receiver and each row of its result: which row of all shards, one behind the other.
        table = np.full((len(sizes), int(sizes.sum(axis=0).max())), -1, dtype=np.int32)
        for line, own, begins in zip(table, sizes.T, starts.T, strict=True):
            taken = [begin + np.arange(size) for begin, size in zip(begins, own, strict=True)]
            line[: own.sum()] = np.concatenate(taken)
        everything = jax.lax.all_gather(shard, self.axes, tiled=True)
        mine = jnp.asarray(table)[jax.lax.axis_index(self.axes)]
        there = (mine >= 0).reshape(-1, *(1,) * (shard.ndim - 1))
        return jnp.where(there, everything[jnp.maximum(mine, 0)], jnp.zeros((), shard.dtype))

    @property
    def _send_sizes(self) -> np.ndarray[Any, Any]:
        return np.array(self.parameters["send_sizes"], dtype=np.int32)


def _rearranged(array: Any, grid: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """An array as a grid, its dimensions in another order, joined to a shape."""
    return array.reshape(grid).transpose(order).reshape(shape)
