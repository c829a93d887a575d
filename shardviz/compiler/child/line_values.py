"""The value of each line of a user's program on every simulated device, as JAX runs it.

The program is traced once and evaluated equation by equation under one `jit` that returns the values of all
lines as well: within `shard_map` as each device has them, side by side along dimensions in front, elsewhere
as the compiler splits them. A call of the user's own function is opened, a loop is not."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun
from jax.sharding import NamedSharding, PartitionSpec as P

from shardviz.errors import QuestionError
from shardviz.reports.lowered_module import LineValue
from shardviz.units import human_bytes

MAX_BYTES = 2**28
"""Bytes of all values together."""
GRADIENT = "gradient"
LOOPS = {"scan": "a scan", "while": "a while loop", "cond": "a conditional"}


@dataclass
class _Recorder:
    """The lines of `is_own` files in the order in which they run, each with its last value; within `axes` of
    a `shard_map` a device's."""

    is_own: Callable[[str], bool]
    axes: tuple[str, ...] = ()
    lines: list[tuple[LineValue, int]] = field(default_factory=list)
    """Each with the number of dimensions in front."""
    values: list[Any] = field(default_factory=list)

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], is_body: bool = False) -> list[Any]:
        """The results of a program; those who call it record its parameters where `is_body`."""
        known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
        if is_body:
            file, line = _place_of(jaxpr)
            for name, value in zip(jaxpr.debug_info.arg_names or (), args, strict=False):
                self.record(file, line, value, str(name))
        for equation in jaxpr.eqns:
            given = [atom.val if isinstance(atom, Literal) else known[atom] for atom in equation.invars]
            made = self._evaluated(jaxpr, equation, given)
            known.update(zip(equation.outvars, made, strict=True))
            frames = equation.source_info.traceback.frames if equation.source_info.traceback else ()
            own = next((frame for frame in frames if self.is_own(frame.file_name)), None)
            if own is not None and made:
                note = GRADIENT if "transpose" in str(equation.source_info.name_stack) else ""
                if loop := LOOPS.get(equation.primitive.name):
                    note = f"{loop}, which is not opened"
                self.record(own.file_name, own.line_num, made[-1], note=note)
        return [atom.val if isinstance(atom, Literal) else known[atom] for atom in jaxpr.outvars]

    def record(self, file: str, line: int, value: Any, name: str = "", note: str = "") -> None:
        """Record a value of a line, or of a parameter that it names, in place of one just before."""
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):  # a key of random numbers has none itself
            return
        start = _statements(file).get(line, line)
        text = linecache.getline(file, start).strip()
        line_value = LineValue(file, start, text, name, note, str(value.dtype), value.shape)
        last = self.lines[-1][0] if self.lines and not name else None
        kind = [file, start, "", note == GRADIENT]
        if last and [last.file, last.line, last.name, last.note == GRADIENT] == kind:
            self.lines.pop()
            self.values.pop()
        self.lines.append((line_value, len(self.axes)))
        self.values.append(value.reshape((1,) * len(self.axes) + value.shape) if self.axes else value)

    def _evaluated(self, jaxpr: Any, equation: Any, given: Sequence[Any]) -> Sequence[Any]:
        primitive, params = equation.primitive, equation.params
        inner = params.get("jaxpr")
        if primitive.name in ("jit", "pjit") and self.is_own(_place_of(inner.jaxpr)[0]):
            taken = [*map(_constrained, given, params["in_shardings"])]
            made = self.run(inner.jaxpr, inner.consts, taken, is_body=True)
            return [*map(_constrained, made, params["out_shardings"])]
        if primitive.name == "shard_map" and not self.axes:
            return self._mapped(params, given)
        # A program of this equation alone, which any version of JAX evaluates.
        pairs = zip(equation.invars, given, strict=True)
        taken = [(atom, value) for atom, value in pairs if not isinstance(atom, Literal)]
        alone = jaxpr.replace(
            constvars=[],
            invars=[atom for atom, _ in taken],
            outvars=equation.outvars,
            eqns=[equation],
            debug_info=jaxpr.debug_info.with_unknown_names(),
        )
        return jaxpr_as_fun(ClosedJaxpr(alone, ()))(*(value for _, value in taken))  # type: ignore[no-any-return]

    def _mapped(self, params: Any, given: Sequence[Any]) -> Sequence[Any]:
        manual = params.get("newly_manual_axes", params.get("manual_axes"))
        axes = tuple(axis for axis in params["mesh"].axis_names if axis in manual)
        inside = _Recorder(self.is_own, axes)

        def body(*args: Any) -> tuple[list[Any], list[Any]]:
            return inside.run(params["jaxpr"], (), args, is_body=True), inside.values

        mapped = jax.shard_map(
            body,
            mesh=params["mesh"],
            in_specs=params["in_specs"],
            out_specs=(list(params["out_specs"]), P(*axes)),
            axis_names=set(axes),
            check_vma=params["check_vma"],
        )
        made, values = mapped(*given)
        self.lines += inside.lines
        self.values += values
        return made  # type: ignore[no-any-return]


def line_values(
    program: Any, args: Sequence[Any], mesh: Any, is_own: Callable[[str], bool]
) -> tuple[LineValue, ...]:
    """The lines of a program with their values, on the devices of a mesh; an argument that is a shape has
    small numbers. Raises `QuestionError` for values that are too large, and what JAX raises."""
    leaves, structure = jax.tree.flatten(tuple(args))
    is_array = [hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves]

    def called(*arrays: Any) -> Any:
        remaining = iter(arrays)
        merged = [next(remaining) if kept else leaf for leaf, kept in zip(leaves, is_array, strict=True)]
        return program(*jax.tree.unflatten(structure, merged))

    given = [leaf for leaf, kept in zip(leaves, is_array, strict=True) if kept]
    traced: ClosedJaxpr = jax.make_jaxpr(called)(*given)
    recorder = _Recorder(is_own)

    def recorded(*arrays: Any) -> list[Any]:
        recorder.lines, recorder.values = [], []
        recorder.run(traced.jaxpr, traced.consts, arrays, is_body=is_own(_place_of(traced.jaxpr)[0]))
        total = sum(math.prod(value.shape) * value.dtype.itemsize for value in recorder.values)
        if total > MAX_BYTES:
            problem = f"the values of all lines take {human_bytes(total)}, more than {human_bytes(MAX_BYTES)}"
            raise QuestionError(problem, "give smaller arguments")
        return recorder.values

    ready = jax.jit(recorded).trace(*given)
    values = ready.lower().compile()(*map(_numbers, given))
    places = {device: number for number, device in enumerate(mesh.devices.flat)}
    pairs = zip(recorder.lines, values, strict=True)
    return tuple(_with_devices(line, front, value, places) for (line, front), value in pairs)


def _with_devices(line: LineValue, front: int, value: Any, places: dict[Any, int]) -> LineValue:
    """The line with the part of every device, in the mesh's order."""
    held = []
    for shard in value.addressable_shards:
        part = np.asarray(shard.data)
        held.append((places[shard.device], part.reshape(part.shape[front:])))
    held.sort(key=lambda one: one[0])
    spec = str(value.sharding.spec) if isinstance(value.sharding, NamedSharding) and not front else ""
    (position, part), *_ = held
    if part.size > 4096:  # of large parts the first numbers, of the first device alone
        held = [(position, part[(slice(4),) * part.ndim])]
    return replace(line, spec=spec, shard_shape=part.shape, devices=tuple(held))


def _constrained(value: Any, sharding: Any) -> Any:
    """The value as a `jit` takes or returns it."""
    is_named = isinstance(sharding, NamedSharding)
    return jax.lax.with_sharding_constraint(value, sharding) if is_named else value


def _numbers(leaf: Any) -> Any:
    """An array, or small numbers in the place of a shape."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    counted = np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 10
    return jax.device_put(counted.astype(leaf.dtype), leaf.sharding)


def _place_of(jaxpr: Any) -> tuple[str, int]:
    """The file and the line of the function that a program was traced from."""
    _, _, location = (jaxpr.debug_info.func_src_info or "").rpartition(" at ")
    file, _, line = location.rpartition(":")
    return file, int(line) if line.isdigit() else 0


@cache
def _statements(file: str) -> dict[int, int]:
    """The first line of the statement that each line belongs to."""
    first = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            first.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.lineno))
    return first
