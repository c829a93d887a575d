"""One operation again and again in a jitted loop, on the clock.

Each pass of the loop works on what the one before has left: the first element of the operand is chosen
between its old value and the last one of the result, by a flag that is false at run time, as no compiler can
know. So nothing is hoisted or left out, and after any number of passes the result is that of the first, which
is checked. In a job all processes do what the clock of process 0 says. Where devices have a clock of their
own, a profile of the loop tells the time of each pass."""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from shardviz.compiler.child import xla
from shardviz.compiler.child.job import agree
from shardviz.compiler.child.program import jax_dtype, refusal_by
from shardviz.compiler.messages import NO_ROOM, TargetMesh
from shardviz.devices.found_hardware import free_bytes
from shardviz.devices.question import Case, Measurement, NoMeasurement
from shardviz.errors import CompilerError, TargetError
from shardviz.sharding.array import WIDE
from shardviz.units import human_bytes

_COLLECTIVE = re.compile(
    r"^\s*(?:ROOT )?%?([\w.\-]+) = [^\n]*? "
    r"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start|-done)?\(",
    re.MULTILINE,
)
_DEVICE = re.compile(r"/device:(?:TPU|GPU):\d+")
Span = tuple[float, float]
"""Begin and end, in nanoseconds."""
RUN_S = 0.02
"""A run takes so long at least, if it may have several passes."""
MAX_PASSES = 20_000
MODULUS = 13
"""Elements count round from 0 to less than this, so that every element of every device has its place."""
Row = tuple[Measurement | NoMeasurement, str]
"""A row, and the text of the final module."""


def measure(report: Callable[[str], None], devices: TargetMesh, case: Case, runs: int) -> Row:
    """Time one operation, `runs` times or fewer. Raises `TargetError` where there are not so many devices,
    and `CompilerError` for what JAX or XLA refuses."""
    with jax.enable_x64(case.dtype in WIDE):
        try:
            return _measured(report, devices, case, runs)
        except TargetError:
            raise
        except Exception as error:
            refusal = refusal_by(error)
            if refusal is not error and NO_ROOM.search(refusal.message):
                return _without_room(case, "does not fit into the memory of a device")
            raise CompilerError(f"{case.op}: {refusal.message}", refusal.hint) from None


def _measured(report: Callable[[str], None], devices: TargetMesh, case: Case, most_runs: int) -> Row:
    report("starting devices")
    loop = _Loop(case, xla.target_mesh(devices, report)[0])
    report("compiling")
    compiled = loop.compiled()
    device = loop.mesh.local_devices[0]
    account, free = compiled.memory_analysis(), _free(device, loop.mesh)
    # While the program runs, and its arrays once more, with which results are checked.
    arrays = account.argument_size_in_bytes + 2 * account.output_size_in_bytes - account.alias_size_in_bytes
    needed = int(arrays + account.temp_size_in_bytes)
    if agree(needed > free):
        needs = f"needs {human_bytes(needed)} on each device, and {human_bytes(free)} are free"
        return _without_room(case, needs)
    report("running")
    state = loop.start()

    def run(passes: int) -> float:
        nonlocal state
        begin = time.perf_counter()
        state = jax.block_until_ready(compiled(*state, *loop.constants, False, np.int32(passes)))
        return time.perf_counter() - begin

    count = _passes(run)
    # All together take about four seconds at most; then there are fewer.
    runs = min(most_runs, max(3, int(4.0 / agree(run(count)))))
    seconds = [run(count) / count for _ in range(runs)]
    text = compiled.as_text()
    row = Measurement(case, tuple(agree(seconds)), device=device.device_kind)
    if device.platform != "cpu":
        # On CPUs a profile takes longer than the operations.
        by_device = _device_seconds(partial(run, min(count, 50)), text)
        by_device = tuple(agree(list(by_device)))
        row = replace(row, seconds=by_device, clock="device") if by_device else row
    return replace(row, wrong=loop.wrong(state[1])), text


def _without_room(case: Case, why: str) -> Row:
    return NoMeasurement(case, f"{case.op} of {human_bytes(case.size)} {why}"), ""


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


def _free(device: Any, mesh: Any) -> int:
    """Bytes that are free on a device; on a CPU its part of what the host has."""
    stats = device.memory_stats() or {}
    limit = stats.get("bytes_limit")
    free = free_bytes() if limit is None else max(0, int(limit - stats.get("bytes_in_use", 0)))
    return free // len(mesh.local_devices) if device.platform == "cpu" else free


class _Loop:
    """The program: an operation in a loop on the devices of `mesh`, and the data that it works on.

    Element i of device d is (d + i) modulo `modulus`, a small whole number that every dtype has, and so are
    the sums of a group, where `modulus` is not 0. Those of a matmul's operands are -1, 0 and 1, and come
    again after three rows and columns."""

    def __init__(self, case: Case, mesh: Any) -> None:
        self.case, self.mesh = case, mesh
        self.dtype = jax_dtype(case.dtype)
        members = case.group_size
        self.modulus = _modulus(self.dtype, members if case.op in ("psum", "psum_scatter") else 1)
        count = case.count * (members if case.op in ("psum_scatter", "all_to_all") else 1)
        self.shape: tuple[int, ...] = (case.side, case.side) if case.side else (count,)
        made = {"all_gather": count * members, "psum_scatter": count // members}.get(case.op, self.shape[0])
        self.result_shape = (made, *self.shape[1:])
        self._spec = P(mesh.axis_names)
        self.constants = (self._made(lambda: self._matrix(2)),) if case.op == "matmul" else ()

    def compiled(self) -> Any:
        """The program of two donated arrays, a matmul's other operand, the flag and the passes."""
        operands = (self._array(self.shape), self._array(self.result_shape))
        more = [jax.ShapeDtypeStruct((), jnp.bool_), jax.ShapeDtypeStruct((), jnp.int32)]
        mapped = jax.shard_map(
            self._passes,
            mesh=self.mesh,
            in_specs=(self._spec, self._spec, *(self._spec,) * len(self.constants), P(), P()),
            out_specs=(self._spec, self._spec),
            check_vma=False,
        )
        return jax.jit(mapped, donate_argnums=(0, 1)).lower(*operands, *self.constants, *more).compile()

    def start(self) -> tuple[Any, Any]:
        """The arrays before the first pass, made on the devices."""
        return self._made(self._operand), self._made(lambda: jnp.zeros(self.result_shape, self.dtype))

    def wrong(self, result: Any) -> int | None:
        """Elements of all devices that are not the exact result; None where rounding leaves none exact."""
        if not self.modulus:
            return None

        def count(own: Any) -> Any:
            return lax.psum((own != self._exact()).sum(dtype=jnp.int32), self.mesh.axis_names)

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
        axes, members = self.case.axes, self.case.group_size
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
                return lax.ppermute(x, axes, [(i, (i + 1) % members) for i in range(members)])
            case "matmul":
                return (x @ constants[0]).astype(self.dtype)
            case _:
                return -x

    def _array(self, shape: tuple[int, ...]) -> Any:
        """All devices' shards of a shape, one behind the other."""
        whole = (shape[0] * self.mesh.size, *shape[1:])
        return jax.ShapeDtypeStruct(whole, self.dtype, sharding=NamedSharding(self.mesh, self._spec))

    def _made(self, shard: Callable[[], Any]) -> Any:
        made = jax.shard_map(shard, mesh=self.mesh, in_specs=(), out_specs=self._spec, check_vma=False)
        return jax.block_until_ready(jax.jit(made)())

    def _own(self) -> Any:
        return lax.axis_index(self.mesh.axis_names)

    def _elements(self, device: Any, index: Any) -> Any:
        return (device + index) % (self.modulus or MODULUS)

    def _matrix(self, factor: int) -> Any:
        row, column = jnp.ogrid[: self.shape[0], : self.shape[1]]
        return ((row + factor * column) % 3 - 1).astype(self.dtype)

    def _operand(self) -> Any:
        if self.case.op == "matmul":
            return self._matrix(1)
        return self._elements(self._own(), jnp.arange(self.shape[0], dtype=jnp.int32)).astype(self.dtype)

    def _exact(self) -> Any:
        """The result of this device, by its numbers alone."""
        op, axes, count = self.case.op, self.case.axes, self.case.group_size
        if op == "matmul":
            # It comes again after three rows and columns, as the operands do.
            rows, inner = self.shape
            along, three = np.arange(inner), np.arange(3)[:, None]
            table = ((three + along) % 3 - 1) @ ((along + 2 * three) % 3 - 1).T
            row, column = jnp.ogrid[:rows, :inner]
            return jnp.asarray(table, jnp.int32)[row % 3, column % 3].astype(self.dtype)
        index = jnp.arange(self.result_shape[0], dtype=jnp.int32)
        if not axes:
            return (-self._elements(self._own(), index)).astype(self.dtype)
        # The numbers of the group's members: as far from this device's as those of the first group are.
        numbers = np.arange(self.mesh.size).reshape(self.mesh.devices.shape)
        first = numbers[tuple(slice(None) if axis in axes else 0 for axis in self.mesh.axis_names)]
        offsets, rank = jnp.asarray(first.ravel(), jnp.int32), lax.axis_index(axes)
        members = self._own() - offsets[rank] + offsets
        match op:
            case "psum" | "psum_scatter":
                # Elements come again after `modulus`, and so do their sums.
                sums = self._elements(members[:, None], jnp.arange(self.modulus, dtype=jnp.int32)).sum(axis=0)
                begin = rank * len(index) if op == "psum_scatter" else 0
                exact = sums[(begin + index) % self.modulus]
            case "all_gather":
                part = self.shape[0]
                exact = self._elements(members[index // part], index % part)
            case "all_to_all":
                part = len(index) // count
                exact = self._elements(members[index // part], rank * part + index % part)
            case _:
                exact = self._elements(members[(rank - 1) % count], index)
        return exact.astype(self.dtype)


def _modulus(dtype: Any, terms: int) -> int:
    """The count of numbers, from 0 on, of which sums of so many terms are exact; 0 where none are."""
    if jnp.issubdtype(dtype, jnp.integer):
        most = int(jnp.iinfo(dtype).max)
    else:
        most = 2 ** (int(jnp.finfo(dtype).nmant) + 1)
    modulus = min(MODULUS, most // terms + 1)
    return modulus if modulus > 1 else 0


def _device_seconds(run: Callable[[], object], text: str) -> tuple[float, ...]:
    """Seconds of each pass of a run of the program with that text; nothing where no profile tells them, as
    where the platform hides the instructions' names, or the profiler does not work here."""
    try:
        with tempfile.TemporaryDirectory(prefix="shardviz-") as folder:
            with jax.profiler.trace(folder):
                run()
            (file,) = Path(folder).rglob("*.xplane.pb")
            return passes(jax.profiler.ProfileData.from_file(str(file)), text)
    except Exception:  # what a profiler raises depends on the platform; there is the wall's clock
        return ()


def passes(profile: Any, text: str) -> tuple[float, ...]:
    """Seconds of each pass: of the collective, from when the last device has come to it until the last one is
    done, or without one of what took longest of all."""
    names = [match[1] for match in _COLLECTIVE.finditer(text)]
    by_device: list[list[Span]] = []
    for plane in profile.planes:
        if _DEVICE.fullmatch(plane.name):
            spans: dict[str, list[Span]] = defaultdict(list)
            for name, span in _events(plane):
                spans[name].append(span)
            own = [name for name in names if name in spans]
            if not names and spans:
                own = [max(spans, key=lambda name: sum(end - begin for begin, end in spans[name]))]
            if own:
                by_device.append(_joined([spans[name] for name in own]))
    if len({len(spans) for spans in by_device}) > 1:
        return ()
    each_pass = (tuple(zip(*pass_spans, strict=True)) for pass_spans in zip(*by_device, strict=True))
    return tuple((max(ends) - max(begins)) / 1e9 for begins, ends in each_pass)


def _joined(spans: list[list[Span]]) -> list[Span]:
    """Start and end of an asynchronous one as one; of several equal parts of a pass the whole."""
    if len({len(span) for span in spans}) > 1:
        return []
    each_pass = (tuple(zip(*parts, strict=True)) for parts in zip(*spans, strict=True))
    return [(min(begins), max(ends)) for begins, ends in each_pass]


def _events(plane: Any) -> Iterator[tuple[str, Span]]:
    """The instructions that ran on a device: on a TPU the line of them, on a GPU those of its streams."""
    for line in plane.lines:
        is_stream = line.name.startswith("Stream")
        for event in line.events if line.name == "XLA Ops" or is_stream else ():
            match = re.match(r"%?([\w.\-]+)", event.name)
            name = dict(event.stats).get("hlo_op") if is_stream else match and match[1]
            if name is not None:
                yield str(name), (event.start_ns, event.start_ns + event.duration_ns)
