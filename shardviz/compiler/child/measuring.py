"""One operation again and again in a jitted loop, on the clock. Loaded when a measurement is asked for.

Each pass of the loop works on what the one before has left: the first element of the operand is chosen
between its old value and the last one of the result, by a flag that is false at run time, as no compiler can
know. So nothing is hoisted or left out, the loop moves no more than the operation itself, and after any
number of passes the result is that of the first, which is checked. The passes are so many that starting the
program takes no part of the time. In a job of several processes all do what the clock of process 0 says.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardviz.compiler.child import xla
from shardviz.compiler.child.device_clock import device_seconds
from shardviz.compiler.child.job import agree
from shardviz.compiler.child.program import WIDE, jax_dtype, words_of
from shardviz.compiler.messages import NO_ROOM, LoopOutput, TimeLoop
from shardviz.devices.measurement import Measurement, NoMeasurement
from shardviz.devices.question import Case
from shardviz.errors import CompilerError, TargetError
from shardviz.units import human_bytes

RUN_S = 0.02
"""A run takes so long at least, if it may have several passes."""
ROW_S = 4.0
"""All runs take about so long at most; then there are fewer."""
LEAST_RUNS = 3
MAX_PASSES = 20_000
DEVICE_PASSES = 50
"""Passes whose times are taken from a profile."""
MODULUS = 13
"""Elements count round from 0 to less than this, so that every element of every device has its place."""


def measure(request: TimeLoop, report: Callable[[str], None]) -> LoopOutput:
    """Time one operation. Raises `TargetError` where there are not so many devices, and `CompilerError` for
    what JAX or XLA refuses."""
    case = request.case
    with jax.enable_x64(case.dtype in WIDE):
        try:
            return _measured(request, report)
        except TargetError:
            raise
        except CompilerError as error:
            raise CompilerError(f"{case.op}: {error.message}", error.hint) from None
        except Exception as error:
            words = words_of(error)
            if NO_ROOM.search(words):
                return _without_room(case, "does not fit into the memory of a device")
            raise CompilerError(f"{case.op}: {words}") from None


def _measured(request: TimeLoop, report: Callable[[str], None]) -> LoopOutput:
    report("starting devices")
    loop = _Loop(request, xla.target_mesh(request, report)[0])
    report("compiling")
    compiled = loop.compiled()
    device = loop.mesh.local_devices[0]
    needed, free = _needed(compiled), _free(device) // _sharing(device, loop.mesh)
    if agree(needed > free):
        needs = f"needs {human_bytes(needed)} on each device, and {human_bytes(free)} are free"
        return _without_room(request.case, needs)
    report("running")
    state = loop.start()

    def run(passes: int) -> float:
        nonlocal state
        begin = time.perf_counter()
        state = jax.block_until_ready(compiled(*state, *loop.constants, False, np.int32(passes)))
        return time.perf_counter() - begin

    passes = _passes(run)
    runs = min(request.runs, max(LEAST_RUNS, int(ROW_S / agree(run(passes)))))
    seconds = [run(passes) / passes for _ in range(runs)]
    text = compiled.as_text()
    row = Measurement(request.case, tuple(agree(seconds)), device=device.device_kind)
    if device.platform != "cpu":
        # On CPUs a profile takes longer than the operations.
        by_device = device_seconds(partial(run, min(passes, DEVICE_PASSES)), text)
        by_device = tuple(agree(list(by_device)))
        row = replace(row, seconds=by_device, clock="device") if by_device else row
    return LoopOutput(replace(row, wrong=loop.wrong(state[1])), text)


def _without_room(case: Case, why: str) -> LoopOutput:
    return LoopOutput(NoMeasurement(case, f"{case.op} of {human_bytes(case.size)} {why}"))


def _passes(run: Callable[[int], float]) -> int:
    """The passes of a run, found in a few runs that also warm up."""
    passes = 1
    run(passes)
    for _ in range(4):
        took = agree(run(passes))
        if took >= RUN_S / 2 or passes == MAX_PASSES:
            break
        passes = min(MAX_PASSES, max(passes + 1, math.ceil(passes * RUN_S / took)))
    return passes


def _needed(compiled: Any) -> int:
    """Bytes of a device while the program runs, and its arrays once more, with which results are checked."""
    found = compiled.memory_analysis()
    arrays = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return int(arrays + found.temp_size_in_bytes + found.output_size_in_bytes)


def _free(device: Any) -> int:
    """Bytes that are free on a device; on a CPU in the host's memory."""
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return _free_on_host()


def _sharing(device: Any, mesh: Any) -> int:
    """Devices that share this memory."""
    return len(mesh.local_devices) if device.platform == "cpu" else 1


def _free_on_host() -> int:
    """Bytes that this host can still give, as Linux tells, and its limit for this process's group."""
    found = [2**62]
    groups = Path("/sys/fs/cgroup")
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(int(fields["MemAvailable"].split()[0]) * 1024)
        limit = (groups / "memory.max").read_text().strip()
        if limit.isdecimal():
            found.append(int(limit) - int((groups / "memory.current").read_text()))
    except (OSError, KeyError, ValueError):
        pass  # another system, or no such limit
    return max(0, min(found))


class _Loop:
    """The program: `operation` in a loop on the devices of `mesh`, and the data that it works on.

    The element number i of device number d is (d + i) modulo `modulus`, a small whole number that every dtype
    has, and the sums of a group are exact as well, where `modulus` is not 0.
    """

    def __init__(self, request: TimeLoop, mesh: Any) -> None:
        self.case, self.shape, self.mesh = request.case, request.shape, mesh
        self.axes = request.case.axes
        self.dtype = jax_dtype(request.case.dtype)
        self._names, sizes = request.mesh.jax_names, request.mesh.jax_sizes
        self._sizes = dict(zip(self._names, sizes, strict=True))
        self._spec = P(self._names)
        self._members = math.prod(self._sizes[axis] for axis in self.axes)
        self._positions = self._numbers()
        self.modulus = _modulus(self.dtype, self._members if self.case.op in ("psum", "psum_scatter") else 1)
        self.constants = (self._second_operand(),) if self.case.op == "matmul" else ()

    def compiled(self) -> Any:
        """The program of the two arrays, a matmul's other operand, the flag and the number of passes; the
        arrays are donated."""
        operand = (self._array(self.shape), self._array(self._result_shape))
        more = [jax.ShapeDtypeStruct((), jnp.bool_), jax.ShapeDtypeStruct((), jnp.int32)]
        count = len(self.constants)
        mapped = jax.shard_map(
            self._passes,
            mesh=self.mesh,
            in_specs=(self._spec, self._spec, *(self._spec,) * count, P(), P()),
            out_specs=(self._spec, self._spec),
            check_vma=False,
        )
        return jax.jit(mapped, donate_argnums=(0, 1)).lower(*operand, *self.constants, *more).compile()

    def start(self) -> tuple[Any, Any]:
        """The arrays before the first pass, made on the devices."""
        return self._made(self._operand), self._made(lambda: jnp.zeros(self._result_shape, self.dtype))

    def wrong(self, result: Any) -> int | None:
        """Elements of all devices that are not the exact result; None where rounding leaves none exact."""
        if not self.modulus:
            return None

        def count(own: Any) -> Any:
            return lax.psum((own != self._exact()).sum(dtype=jnp.int32), self._names)

        counted = jax.shard_map(count, mesh=self.mesh, in_specs=self._spec, out_specs=P(), check_vma=False)
        return int(jax.jit(counted)(result))

    def _passes(self, operand: Any, result: Any, *more: Any) -> Any:
        *constants, flag, passes = more

        def body(_: Any, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            before, _ = carried
            after = self._operation(before, *constants)
            first, last = (0,) * before.ndim, (-1,) * after.ndim
            chosen = jnp.where(flag, after[last], before[first])
            return before.at[first].set(chosen), after

        return lax.fori_loop(0, passes, body, (operand, result))

    def _operation(self, x: Any, *constants: Any) -> Any:
        axes: Any = self.axes if len(self.axes) > 1 else self.axes[:1]
        match self.case.op:
            case "psum":
                return lax.psum(x, axes)
            case "all_gather":
                return lax.all_gather(x, axes, tiled=True)
            case "psum_scatter":
                return lax.psum_scatter(x, axes, tiled=True)
            case "all_to_all":
                return lax.all_to_all(x, axes, 0, 0, tiled=True)
            case "ppermute":
                return lax.ppermute(x, axes, [(i, (i + 1) % self._members) for i in range(self._members)])
            case "matmul":
                return (x @ constants[0]).astype(self.dtype)
            case _:
                return -x

    @property
    def _result_shape(self) -> tuple[int, ...]:
        shape = self.shape
        factor = {"all_gather": (self._members, 1), "psum_scatter": (1, self._members)}
        more, less = factor.get(self.case.op, (1, 1))
        return (shape[0] * more // less, *shape[1:])

    def _array(self, shape: tuple[int, ...]) -> Any:
        """All devices' shards of a shape, one behind the other."""
        whole = (shape[0] * self.mesh.size, *shape[1:])
        return jax.ShapeDtypeStruct(whole, self.dtype, sharding=NamedSharding(self.mesh, self._spec))

    def _made(self, shard: Callable[[], Any]) -> Any:
        made = jax.shard_map(shard, mesh=self.mesh, in_specs=(), out_specs=self._spec, check_vma=False)
        return jax.block_until_ready(jax.jit(made)())

    def _numbers(self) -> list[int]:
        """The number of each member of a group, less that of the first."""
        places = np.arange(self.mesh.size).reshape(*self._sizes.values())
        chosen = tuple(slice(None) if axis in self.axes else 0 for axis in self._sizes)
        return [int(number) for number in places[chosen].flatten()]

    def _own(self) -> Any:
        """The device's number."""
        return lax.axis_index(tuple(self._sizes))

    def _rank(self) -> Any:
        """Its place in its group."""
        return lax.axis_index(self.axes)

    def _first(self) -> Any:
        """The number of the first member of its group."""
        return self._own() - jnp.asarray(self._positions, jnp.int32)[self._rank()]

    def _counted(self, device: Any, start: Any, length: int) -> Any:
        """So many elements of a device from one on."""
        return (device + start + jnp.arange(length, dtype=jnp.int32)) % (self.modulus or MODULUS)

    def _operand(self) -> Any:
        shape = self.shape
        if self.case.op == "matmul":
            row, column = jnp.ogrid[: shape[0], : shape[1]]
            return ((row + column) % 3 - 1).astype(self.dtype)
        return self._counted(self._own(), 0, shape[0]).astype(self.dtype)

    def _second_operand(self) -> Any:
        shape = self.shape

        def shard() -> Any:
            row, column = jnp.ogrid[: shape[0], : shape[1]]
            return ((row + 2 * column) % 3 - 1).astype(self.dtype)

        return self._made(shard)

    def _exact(self) -> Any:
        """The result of this device, by its numbers alone."""
        length, rank = self._result_shape[0], self._rank() if self.axes else 0
        match self.case.op:
            case "psum":
                found = self._sums()[jnp.arange(length, dtype=jnp.int32) % self.modulus]
            case "psum_scatter":
                here = rank * length + jnp.arange(length, dtype=jnp.int32)
                found = self._sums()[here % self.modulus]
            case "all_gather":
                part = self.shape[0]
                found = self._of_members(lambda device: self._counted(device, 0, part))
            case "all_to_all":
                part = length // self._members
                found = self._of_members(lambda device: self._counted(device, rank * part, part))
            case "ppermute":
                before = jnp.asarray(self._positions, jnp.int32)[(rank - 1) % self._members]
                found = self._counted(self._first() + before, 0, length)
            case "matmul":
                return self._product()
            case _:
                found = -self._counted(self._own(), 0, length)
        return found.astype(self.dtype)

    def _sums(self) -> Any:
        """The sums over the group of the elements number 0 to `modulus`, after which they come again."""
        members = self._first() + jnp.asarray(self._positions, jnp.int32)
        numbers = members[:, None] + jnp.arange(self.modulus, dtype=jnp.int32)
        return (numbers % self.modulus).sum(axis=0)

    def _of_members(self, part: Callable[[Any], Any]) -> Any:
        members = self._first() + jnp.asarray(self._positions, jnp.int32)
        return jax.vmap(part)(members).reshape(-1)

    def _product(self) -> Any:
        """The matmul's result: with operands that come again after three rows and columns so does it."""
        rows, inner = self.shape
        along = np.arange(inner)
        table = [
            [int((((i + along) % 3 - 1) * ((along + 2 * j) % 3 - 1)).sum()) for j in range(3)]
            for i in range(3)
        ]
        row, column = jnp.ogrid[:rows, :inner]
        return jnp.asarray(table, jnp.int32)[row % 3, column % 3].astype(self.dtype)


def _modulus(dtype: Any, terms: int) -> int:
    """The count of numbers, from 0 on, of which sums of so many terms are exact; 0 where none are."""
    if jnp.issubdtype(dtype, jnp.integer):
        most = int(jnp.iinfo(dtype).max)
    else:
        most = 2 ** (int(jnp.finfo(dtype).nmant) + 1)
    found = min(MODULUS, most // terms + 1)
    return found if found > 1 else 0
